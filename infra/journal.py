"""A durable log of model calls: the same call is made once, whatever crashed in between.

Invariants: a call whose `put` returned is never lost by killing any process; a key has one response for ever, so two
processes that race on a call both go on with the response that was stored first; one thread owns the database, so
nothing waits for the disk on an event loop.
"""

import asyncio
import json
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from pydantic import JsonValue

from infra.sqlite import connect
from schemas.base import content_hash
from schemas.errors import TouchstoneError

_T = TypeVar("_T")

_SCHEMA = "CREATE TABLE IF NOT EXISTS calls (key TEXT PRIMARY KEY, request TEXT, response TEXT, made REAL)"


class JournalError(TouchstoneError):
    """The journal cannot be read or written. Whatever it already holds is untouched."""


def call_key(call: Any) -> str:
    """The id of a model call: a hash of all that determines its response (weights, prompt, sampling with seed)."""
    return content_hash(call, length=32)


class Journal:
    """The calls of one run, at `path` (SQLite, write-ahead log). Use from any thread, event loop or process.

    `hits` counts responses served without a call and `misses` calls that were made, by this object.
    """

    def __init__(self, path: Path, *, lock_timeout_s: float = 30.0) -> None:
        """Open or create. Raises `JournalError` where `path` is no journal or cannot be written."""
        self.path = path
        self.hits = 0
        self.misses = 0
        self._in_flight: dict[str, Future[None]] = {}
        self._guard = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        try:
            self._db = self._run(lambda: self._open(lock_timeout_s)).result()
        except JournalError:
            self._thread.shutdown()
            raise

    def get(self, key: str) -> JsonValue:
        """The stored response, `None` where the call was never made. Blocks; on an event loop use `once`."""
        return self._run(lambda: self._get(key)).result()

    def put(self, key: str, request: JsonValue, response: JsonValue) -> JsonValue:
        """Store a response and return what the journal now holds for `key`: an earlier response stays. Blocks.

        `request` is a summary for people; nothing reads it back.
        """
        return self._run(lambda: self._put(key, request, response)).result()

    async def once(self, key: str, request: JsonValue, make: Callable[[], Awaitable[JsonValue]]) -> JsonValue:
        """The response to `key`, from the journal or else from `make`, whose result is stored before it is returned.

        Equal calls in flight wait for the first. When that one fails or is cancelled the next one makes the call itself.
        """
        while True:
            with self._guard:
                leader = self._in_flight.get(key)
                if leader is None:
                    mine: Future[None] = Future()
                    self._in_flight[key] = mine
                    break
            await asyncio.shield(asyncio.wrap_future(leader))
        try:
            stored = await asyncio.shield(asyncio.wrap_future(self._run(lambda: self._get(key))))
            if stored is not None:
                self.hits += 1
                return stored
            self.misses += 1
            response = await make()
            # Shielded: a response that was paid for is stored even when its reader is cancelled now.
            return await asyncio.shield(asyncio.wrap_future(self._run(lambda: self._put(key, request, response))))
        finally:
            with self._guard:
                del self._in_flight[key]
            mine.set_result(None)

    def __len__(self) -> int:
        return int(self._run(lambda: self._db.execute("SELECT count(*) FROM calls").fetchone()[0]).result())

    def close(self) -> None:
        """Write what is queued and close. Idempotent."""
        try:
            self._run(lambda: self._db.close())
        except RuntimeError:  # closed before: the thread takes no more work
            return
        self._thread.shutdown(wait=True)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, work: Callable[[], _T]) -> "Future[_T]":
        return self._thread.submit(self._explained, work)

    def _explained(self, work: Callable[[], _T]) -> _T:
        try:
            return work()
        except (sqlite3.Error, OSError) as error:
            raise JournalError(f"{self.path}: {error}; {_way_out(error)}") from error

    def _open(self, lock_timeout_s: float) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        db = connect(self.path, timeout_s=lock_timeout_s)
        try:
            db.execute(_SCHEMA)
            db.execute("SELECT key, request, response, made FROM calls LIMIT 1").fetchone()
        except sqlite3.Error:
            db.close()
            raise
        return db

    def _get(self, key: str) -> JsonValue:
        row = self._db.execute("SELECT response FROM calls WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        stored: JsonValue = json.loads(row[0])
        return stored

    def _put(self, key: str, request: JsonValue, response: JsonValue) -> JsonValue:
        if response is None:
            raise JournalError(f"{key}: a response of None cannot be told from a call never made; store an object")
        row = (key, json.dumps(request), json.dumps(response), time.time())
        added = self._db.execute("INSERT OR IGNORE INTO calls VALUES (?, ?, ?, ?)", row)
        return response if added.rowcount else self._get(key)


def _way_out(error: sqlite3.Error | OSError) -> str:
    message = str(error)
    if "full" in message or "No space" in message:
        return "free some space and run again: the calls stored so far are kept"
    if "locked" in message:
        return "another process writes to it; stop that one or wait, then run again"
    if isinstance(error, sqlite3.OperationalError | OSError):
        return "check the disk and the permissions, then run again: the calls stored so far are kept"
    return "it is damaged or no journal; move it away and run again, which repeats its calls"
