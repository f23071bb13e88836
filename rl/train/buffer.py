"""The durable memory of a training run: every attempt that was admitted, and every batch, in one SQLite file.

Invariants: an attempt is open, finished, trained or dropped, and only ever moves on in this order; a task is admitted at most
once an epoch; a batch is written down before it is trained, so that a step can be taken again from the very same attempts;
what a method returned from survives the death of any process. One thread owns the database, so nothing waits for the disk
on an event loop.
"""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from infra.sqlite import connect
from rl.learn.records import Batch, Graded
from rl.train.parts import Order
from schemas.errors import TouchstoneError
from schemas.measured import Diagnosis

T = TypeVar("T")

_TABLES = """
CREATE TABLE IF NOT EXISTS groups (
    name TEXT PRIMARY KEY, number INTEGER UNIQUE NOT NULL, epoch INTEGER NOT NULL, task_id TEXT NOT NULL,
    size INTEGER NOT NULL, step INTEGER,
    UNIQUE (epoch, task_id));
CREATE INDEX IF NOT EXISTS by_step ON groups (step);
CREATE TABLE IF NOT EXISTS attempts (
    uid TEXT PRIMARY KEY, grp TEXT NOT NULL REFERENCES groups (name), seed INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'finished', 'trained', 'dropped')),
    reason TEXT, turns INTEGER, tokens INTEGER, version TEXT, diagnosis TEXT,
    spent REAL NOT NULL DEFAULT 0, content TEXT);
CREATE INDEX IF NOT EXISTS by_group ON attempts (grp);
CREATE INDEX IF NOT EXISTS by_state ON attempts (state);
CREATE TABLE IF NOT EXISTS steps (step INTEGER PRIMARY KEY, seconds REAL, metrics TEXT);
"""


_VERSION = 1
"""Of these tables; raised when one changes."""
_MAKE = f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {_VERSION}; COMMIT;"
"""As one transaction: whoever opens the file meanwhile sees neither the tables nor their version, or both."""


class BufferError(TouchstoneError):
    """The buffer cannot be read or written. What it holds is untouched."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """An attempt that is open. `saved` is where it stands, `None` where it is to begin."""

    uid: str
    group: str
    task_id: str
    seed: int
    saved: Order | None


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of every attempt: `admitted` = `trained` + the sum of `dropped` + `suspended`.

    Admitted are as many as groups were begun with, the others those that are there. Suspended are those that the run still
    holds, to be played on or trained.
    """

    admitted: int
    trained: int
    dropped: Mapping[str, int]
    suspended: int

    @property
    def missing(self) -> int:
        """Attempts that nothing is known of; 0, or something was lost."""
        return self.admitted - self.trained - sum(self.dropped.values()) - self.suspended


@dataclass(frozen=True, slots=True)
class Ended:
    """What stays of an attempt that is over, trained or not."""

    task_id: str
    epoch: int
    turns: int
    tokens: int
    version: str
    """Of its last turn; empty where it has none."""
    diagnosis: Diagnosis
    spent: float
    """Seconds of play, all its stints together."""


class Buffer:
    """At `path`, or in memory with `None`. Use from one event loop at a time."""

    def __init__(self, path: Path | None) -> None:
        """Open or create. Raises `BufferError`."""
        self.path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="buffer")
        try:
            self._db = self._thread.submit(self._explained, self._open).result()
        except BufferError:
            self._thread.shutdown()
            raise

    def close(self) -> None:
        """Idempotent."""
        try:
            self._thread.submit(self._db.close).result()
        except RuntimeError:
            return
        self._thread.shutdown()

    async def admit(self, number: int, epoch: int, task_id: str, seeds: Sequence[int]) -> list[Waiting]:
        """Begin a group, one attempt a seed. Raises `BufferError` for a task that was admitted in this epoch."""
        name = f"{epoch}-{task_id}"
        members = [Waiting(f"{name}/{i}", name, task_id, seed, None) for i, seed in enumerate(seeds)]

        def work(db: sqlite3.Connection) -> list[Waiting]:
            group = (name, number, epoch, task_id, len(members))
            db.execute("INSERT INTO groups (name, number, epoch, task_id, size) VALUES (?, ?, ?, ?, ?)", group)
            rows = [(member.uid, name, member.seed) for member in members]
            db.executemany("INSERT INTO attempts (uid, grp, seed, state) VALUES (?, ?, ?, 'open')", rows)
            return members

        return await self._do(work)

    async def save(self, order: Order) -> None:
        """Keep where an open attempt stands."""
        await self._move(order.uid, "open", {"content": order.model_dump_json(), "spent": order.spent})

    async def finish(self, graded: Graded, diagnosis: Diagnosis, spent: float) -> None:
        """An open attempt is over."""
        trajectory = graded.trajectory
        await self._move(
            graded.uid,
            "finished",
            {
                "content": graded.model_dump_json(),
                "spent": spent,
                "diagnosis": diagnosis.model_dump_json(),
                "turns": len(trajectory.turns),
                "tokens": trajectory.tokens,
                "version": trajectory.turns[-1].version if trajectory.turns else "",
            },
        )

    async def take(self, step: int, groups: Sequence[str]) -> None:
        """Write down the batch of a step."""

        def work(db: sqlite3.Connection) -> None:
            db.execute("INSERT INTO steps (step) VALUES (?)", (step,))
            for name in groups:
                moved = db.execute("UPDATE groups SET step = ? WHERE name = ? AND step IS NULL", (step, name))
                if moved.rowcount != 1:
                    raise BufferError(
                        f"group {name}: is unknown or in a batch already; the run is used by two processes"
                    )

        await self._do(work)

    async def settle(self, step: int, batch: Batch, metrics: Mapping[str, float], seconds: float) -> None:
        """A step was taken: its attempts are trained or dropped. The same step taken again says the same."""

        def work(db: sqlite3.Connection) -> None:
            moved: list[tuple[str, str | None, str]] = [("trained", None, uid) for uid in batch.trained]
            moved += [("dropped", reason, uid) for uid, reason in batch.dropped.items()]
            sql = (
                "UPDATE attempts SET state = ?, reason = ? WHERE uid = ? AND state != 'open' "
                "AND grp IN (SELECT name FROM groups WHERE step = ?)"
            )
            if db.executemany(sql, [(*move, step) for move in moved]).rowcount != len(moved):
                raise BufferError(f"step {step}: settles attempts that are not of its batch; nothing was written")
            db.execute(
                "UPDATE steps SET seconds = coalesce(seconds, ?), metrics = coalesce(metrics, ?) WHERE step = ?",
                (seconds, json.dumps(metrics), step),
            )

        await self._do(work)

    async def open(self) -> list[Waiting]:
        """Every attempt that is not over, saved ones first, each in the order of admission."""

        def work(db: sqlite3.Connection) -> list[Waiting]:
            rows = db.execute(
                "SELECT uid, grp, task_id, seed, content FROM attempts JOIN groups ON grp = name WHERE state = 'open' "
                "ORDER BY content IS NULL, number, uid"
            )
            return [
                Waiting(uid, group, task_id, seed, Order.model_validate_json(content) if content else None)
                for uid, group, task_id, seed, content in rows.fetchall()
            ]

        return await self._do(work)

    async def ready(self) -> list[str]:
        """Groups that are in no batch yet and all of whose attempts are over, in the order of admission."""
        sql = (
            "SELECT name FROM groups WHERE step IS NULL AND NOT EXISTS "
            "(SELECT 1 FROM attempts WHERE grp = name AND state = 'open') ORDER BY number"
        )
        return await self._do(lambda db: [row[0] for row in db.execute(sql)])

    async def batch(self, step: int) -> list[list[Graded]]:
        """The attempts of a step's batch, group by group."""
        sql = (
            "SELECT grp, content FROM attempts JOIN groups ON grp = name WHERE step = ? "
            "ORDER BY number, CAST(substr(uid, instr(uid, '/') + 1) AS INTEGER)"
        )

        def work(db: sqlite3.Connection) -> list[list[Graded]]:
            found: dict[str, list[Graded]] = {}
            for name, content in db.execute(sql, (step,)):
                if content is None:
                    raise BufferError(
                        f"{self.path}: step {step} was archived with a checkpoint that is gone; remove this file to go on "
                        "from the last checkpoint that is there"
                    )
                found.setdefault(name, []).append(Graded.model_validate_json(content))
            return list(found.values())

        return await self._do(work)

    async def begun(self) -> int:
        """Groups that were ever admitted."""
        return await self._do(lambda db: int(db.execute("SELECT count(*) FROM groups").fetchone()[0]))

    async def last_step(self) -> int:
        """The last step whose batch was written down."""
        return await self._do(lambda db: int(db.execute("SELECT coalesce(max(step), 0) FROM steps").fetchone()[0]))

    async def seconds(self) -> float:
        """Of all steps that were taken."""
        return await self._do(lambda db: float(db.execute("SELECT total(seconds) FROM steps").fetchone()[0]))

    async def metrics(self) -> list[tuple[int, float, dict[str, float]]]:
        """Step, seconds and metrics of every step that was taken."""
        sql = "SELECT step, seconds, metrics FROM steps WHERE metrics IS NOT NULL ORDER BY step"
        return await self._do(lambda db: [(row[0], row[1], json.loads(row[2])) for row in db.execute(sql)])

    async def counts(self) -> Counts:
        def work(db: sqlite3.Connection) -> Counts:
            states = dict(db.execute("SELECT state, count(*) FROM attempts GROUP BY state").fetchall())
            dropped = db.execute("SELECT reason, count(*) FROM attempts WHERE state = 'dropped' GROUP BY reason")
            return Counts(
                admitted=int(db.execute("SELECT total(size) FROM groups").fetchone()[0]),
                trained=states.get("trained", 0),
                dropped=dict(dropped.fetchall()),
                suspended=states.get("open", 0) + states.get("finished", 0),
            )

        return await self._do(work)

    async def ended(self) -> list[Ended]:
        """Every attempt that is over, in the order of admission."""
        sql = (
            "SELECT task_id, epoch, turns, tokens, version, diagnosis, spent FROM attempts JOIN groups ON grp = name "
            "WHERE state != 'open' ORDER BY number, uid"
        )

        def work(db: sqlite3.Connection) -> list[Ended]:
            return [
                Ended(task_id, epoch, turns, tokens, version, Diagnosis.model_validate_json(diagnosis), spent)
                for task_id, epoch, turns, tokens, version, diagnosis, spent in db.execute(sql)
            ]

        return await self._do(work)

    async def archive(self, through: int, write: Callable[[Iterable[Graded]], None]) -> None:
        """Hand the attempts of all steps up to `through` to `write`, then forget their turns."""
        where = "grp IN (SELECT name FROM groups WHERE step <= ?) AND content IS NOT NULL"

        def work(db: sqlite3.Connection) -> None:
            rows = db.execute(f"SELECT content FROM attempts WHERE {where} ORDER BY uid", (through,)).fetchall()  # noqa: S608 - ours
            if rows:
                write(Graded.model_validate_json(row[0]) for row in rows)
                db.execute(f"UPDATE attempts SET content = NULL WHERE {where}", (through,))  # noqa: S608

        await self._do(work)

    async def copy(self, path: Path) -> None:
        """Write a copy of the buffer as it stands."""

        def work(db: sqlite3.Connection) -> None:
            with sqlite3.connect(path) as copy:
                db.backup(copy)
            copy.close()

        await self._do(work, transaction=False)

    async def _move(self, uid: str, state: str, values: Mapping[str, object]) -> None:
        sets = ", ".join(f"{name} = ?" for name in values)

        def work(db: sqlite3.Connection) -> None:
            sql = f"UPDATE attempts SET state = ?, {sets} WHERE uid = ? AND state = 'open'"  # noqa: S608 - names are ours
            if db.execute(sql, (state, *map(_plain, values.values()), uid)).rowcount != 1:
                raise BufferError(f"attempt {uid}: is unknown or over already; the run is used by two processes")

        await self._do(work)

    async def _do(self, work: Callable[[sqlite3.Connection], T], *, transaction: bool = True) -> T:
        """Run it on the thread, as one transaction; shielded, so that a caller who is cancelled leaves nothing half done."""

        def whole() -> T:
            if not transaction:
                return work(self._db)
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                return work(self._db)

        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, self._explained, whole))

    def _explained(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except (sqlite3.Error, OSError) as error:
            raise BufferError(f"{self.path}: {error}; {_way_out(error)}") from error

    def _open(self) -> sqlite3.Connection:
        db = connect(self.path)
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'attempts'").fetchone():
            db.executescript(_MAKE)
        if db.execute("PRAGMA user_version").fetchone() != (_VERSION,):
            raise BufferError(f"{self.path}: is of another version of this project; begin the run anew")
        return db


def _way_out(error: Exception) -> str:
    kind = getattr(error, "sqlite_errorname", "")
    if kind in {"SQLITE_CORRUPT", "SQLITE_NOTADB"}:
        return "remove it to go on from the copy in the run's last checkpoint, if it has one"
    if kind.startswith(("SQLITE_FULL", "SQLITE_IOERR")) or "space" in str(error):
        return "see that there is space and run again: what it holds is kept"
    return "run again: what it holds is kept"


def _plain(value: object) -> object:
    return str(value) if isinstance(value, str) else value
