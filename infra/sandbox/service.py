"""Many Python sessions behind one object.

Invariants: everything runs on one event loop; a session makes one call at a time and others of it wait; sessions share nothing. The
journal of a session is its calls that were kept, in order, and its state is always that after them: an interpreter that died or was
evicted is replaced by a fresh one that makes them again. At most `live` interpreters are kept for idle sessions; the one used least
recently goes first. What the loop awaits has a deadline.
"""

import asyncio
import contextlib
import hashlib
import os
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from infra.sandbox.box import Answer, Box
from infra.sandbox.isolation import Command, Isolation, NoIsolation, command
from infra.sandbox.limits import Limits
from infra.sandbox.outcome import Outcome, Ran, cut
from schemas.errors import TouchstoneError

CORES = os.cpu_count() or 1
RUNNING = 4 * CORES
"""Calls that run at once. Others wait, before their seconds are counted: more would only slow each other beyond their deadlines."""


class Closed(TouchstoneError):
    """A sandbox that was not entered, or is closed."""


class JournalFull(TouchstoneError):
    """A session whose calls are too long to be made again from."""


class SessionLost(TouchstoneError):
    """A session whose calls, made again, did not end as they had."""

    def __init__(self, session: str, reason: str) -> None:
        super().__init__(f"session {session}: {reason}; call again to retry, or end the session to start anew")
        self.reason = reason


@dataclass
class _Session:
    name: str
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    box: Box | None = None
    seeded: bool = False
    """Whether the interpreter was told the session's seed."""
    journal: list[tuple[str, Outcome, bytes]] = field(default_factory=list)
    """The code of each call, how it ended, and the hash of what it wrote."""
    size: int = 0


class Sandbox:
    """`pool` interpreters stand ready for new sessions, `running` calls run at once. Use as a context manager, or `close` it."""

    def __init__(
        self,
        isolation: Isolation = Isolation.BUBBLEWRAP,
        limits: Limits | None = None,
        *,
        pool: int = 2,
        live: int = 128,
        running: int = RUNNING,
    ) -> None:
        self.limits = limits or Limits()
        self._isolation, self._pool_size, self._live = isolation, pool, live
        self._sessions: dict[str, _Session] = {}
        """Least recently used first."""
        self._pool: list[Box] = []
        self._starting = asyncio.Semaphore(CORES)
        self._running = asyncio.Semaphore(running)
        self._command: Command | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._boxes: set[Box] = set()

    async def __aenter__(self) -> Self:
        """Raises `NoIsolation` where this machine cannot isolate code."""
        self._command = await command(self._isolation, self.limits)
        self._pool.append(await self._started())
        self._refill()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def run(self, session: str, code: str, seconds: float | None = None) -> Ran:
        """Run a cell. The first call of a session opens it; a call that is cancelled changed nothing.

        Raises `JournalFull`, `SessionLost` and `NoIsolation`; the call was then not made.
        """
        state = self._sessions.setdefault(session, _Session(session))
        async with state.lock, self._running:
            self._sessions[session] = self._sessions.pop(session, state)  # the most recently used stands last
            size = len(code.encode("utf-8", "surrogatepass"))
            if state.size + size > self.limits.journal:
                raise JournalFull(
                    f"journal={self.limits.journal}: the calls of session {session} hold more bytes of code than that; "
                    "end the session, or raise the limit"
                )
            restored = False
            changed: tuple[int, ...] = ()
            if state.box is None or not state.box.alive:
                changed = await self._restore(state)
                restored = bool(state.journal)
            answer = await self._asked(state, code, self.limits.seconds if seconds is None else seconds)
            if answer.outcome.kept:
                state.journal.append((code, answer.outcome, _hash(answer.output)))
                state.size += size
            if self._sessions.get(session) is not state and state.box is not None:
                await state.box.kill()  # the session was ended meanwhile
        await self._evict()
        return Ran(cut(answer.output, self.limits.shown), answer.outcome, restored, changed)

    async def end(self, session: str) -> None:
        """Forget the session; a call of it that is running ends as `crashed`."""
        state = self._sessions.pop(session, None)
        if state is not None:
            state.journal.clear()
            state.size = 0
            if state.box is not None:
                await state.box.kill()

    async def close(self) -> None:
        """End everything. Nothing of it is left afterwards, and calls that were running end as `crashed`."""
        self._command = None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._sessions.clear()
        self._pool.clear()
        await asyncio.gather(*(box.kill() for box in self._boxes))

    @property
    def boxes(self) -> list[Box]:
        """The interpreters that live, ready ones included."""
        return [box for box in self._boxes if box.alive]

    async def take(self) -> Box:
        """An interpreter for the caller alone, who kills it. Raises `NoIsolation`."""
        while self._pool:
            box = self._pool.pop()
            if box.alive:
                break
        else:
            box = await self._started()
        self._refill()
        return box

    async def _restore(self, state: _Session) -> tuple[int, ...]:
        """Give the session an interpreter in which its journal was made again. The calls that gave another output than before.

        Raises `SessionLost`.
        """
        changed: list[int] = []
        state.box, state.seeded = await self.take(), False
        deadline = asyncio.get_running_loop().time() + self.limits.replay
        for number, (code, before, output) in enumerate(state.journal, 1):
            answer = await self._asked(state, code, deadline - asyncio.get_running_loop().time())
            if answer.outcome is not before:
                if state.box.alive:
                    await state.box.kill()
                raise SessionLost(
                    state.name,
                    f"call {number} of {len(state.journal)}, made again, ended as {answer.outcome} and not as {before}, "
                    f"with {self.limits.replay:g} s for all",
                )
            if _hash(answer.output) != output:
                changed.append(number)
        return tuple(changed)

    async def _asked(self, state: _Session, code: str, seconds: float) -> Answer:
        assert state.box is not None
        request: dict[str, object] = {"code": code}
        if not state.seeded:
            state.seeded = True
            request["seed"] = 0  # one for all: a session that moves to another sandbox has another name there
        return await state.box.ask(request, seconds)

    async def _started(self) -> Box:
        async with self._starting:
            if self._command is None:
                raise Closed("sandbox: it is closed; make another one")
            box = Box(self._isolation, self.limits, self._command)
            self._boxes = {other for other in self._boxes if not other.gone} | {box}
            await box.ready()
            return box

    def _refill(self) -> None:
        for _ in range(self._pool_size - len(self._pool) - len(self._tasks)):
            task = asyncio.get_running_loop().create_task(self._add())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _add(self) -> None:
        with contextlib.suppress(NoIsolation):  # whoever needs one next is told
            self._pool.append(await self._started())

    async def _evict(self) -> None:
        idle = [s for s in self._sessions.values() if s.box is not None and s.box.alive and not s.lock.locked()]
        for state in idle[: max(0, len(idle) - self._live)]:
            assert state.box is not None
            await state.box.kill()


def _hash(output: str) -> bytes:
    return hashlib.sha256(output.encode()).digest()
