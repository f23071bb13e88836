"""One interpreter as seen from outside.

Invariants: one request at a time; a box whose request did not end `ok` or `error` is dead before its caller returns, with all its
processes reaped; a box that is dead holds no descriptor. What comes out of it is data of a stranger: frames are bounded and read as
JSON, and one that is not what was asked for means `crashed`.
"""

import asyncio
import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from infra.sandbox.isolation import ENVIRONMENT, NO_UID, Command, Isolation, NoIsolation, take_uid
from infra.sandbox.limits import Limits
from infra.sandbox.outcome import Outcome
from infra.sandbox.watch import children, states, usage

LONGEST = 2**20
"""Bytes of a frame."""
START_S = 60.0
"""For an interpreter to be ready, on a machine that is busy."""
WATCH_S, WATCHED = 0.02, 8
"""Seconds between two looks at what a running call takes, where up to so many run; where more do, each is looked at less often."""
_STEP = 2**16
STOP_S = 5.0
"""For what a call left running to be stopped or ended."""
SPARING = 10
"""How much longer than it took the last look at memory is not repeated."""
_DEAD, _STOPPED = set("ZX"), set("TZX")

_uids: set[int] = set()


@dataclass(frozen=True, slots=True)
class Answer:
    """`value` is the JSON text of a result, where one was asked for; `plain` is false where it was no plain data.

    `fault` is why the code could not be called: `syntax_error` or `no_function`.
    """

    outcome: Outcome
    output: str = ""
    value: str | None = None
    plain: bool = True
    fault: str = ""


class Malformed(Exception):
    """A frame that no honest interpreter sends."""


class Box:
    _running = 0
    """Of all boxes of this process."""

    def __init__(self, isolation: Isolation, limits: Limits, command: Command) -> None:
        """Starts it; `ready` waits for it."""
        self.limits = limits
        self._alone = isolation is Isolation.BUBBLEWRAP
        self._loop = asyncio.get_running_loop()
        self._uid = take_uid(_uids) if self._alone else NO_UID
        self._channel, theirs = socket.socketpair()
        self._channel.setblocking(False)
        self._out, out = os.pipe()
        os.set_blocking(self._out, False)
        try:
            self._process: subprocess.Popen[bytes] = subprocess.Popen(
                command(self._uid),
                stdin=theirs.fileno(),
                stdout=out,
                stderr=out,
                env={} if self._alone else {**ENVIRONMENT, "PATH": os.environ.get("PATH", "")},
                start_new_session=True,
            )
        except BaseException:
            self._close()
            raise
        finally:
            theirs.close()
            os.close(out)
        self._written = bytearray()
        self._too_much: asyncio.Future[None] | None = None
        self._roots: list[int] = []
        self._inside: int | None = None
        self._ending = False
        self._alive = os.pidfd_open(self._process.pid)
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(self._alive, self._reap)

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return not self._ending and not self.gone

    @property
    def gone(self) -> bool:
        """Whether nothing of it is left."""
        return self._gone.done()

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ready(self) -> None:
        """Wait until it can be asked. Raises `NoIsolation` where it does not start."""
        try:
            async with asyncio.timeout(START_S):
                await self._receive()
        except (TimeoutError, OSError, EOFError, Malformed) as error:
            await self.kill()
            said = self._written.decode(errors="replace").strip().splitlines()
            raise NoIsolation(said[-1] if said else f"no interpreter within {START_S:g} s") from error
        except BaseException:
            self.end()
            raise
        # Outside an own namespace the process is the interpreter itself; else its child is the first of the namespace.
        self._roots = children(self.pid) if self._alone else [self.pid]
        if self._alone and not self.gone:
            try:
                (first,) = self._roots
                (interpreter,) = children(first)
                self._inside = os.pidfd_open(interpreter)
            except (ValueError, ProcessLookupError) as error:
                await self.kill()
                raise NoIsolation("the interpreter ended as it started") from error
            self._kept = {first, interpreter}

    async def ask(self, request: Mapping[str, Any], seconds: float) -> Answer:
        """Make the request, within `seconds` and the limits."""
        self._listen()
        self._written.clear()  # of threads that earlier calls left behind
        self._too_much = self._loop.create_future()
        if self._inside is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._inside, signal.SIGCONT)
        self._loop.add_reader(self._out, self._listen)
        exchange = asyncio.ensure_future(self._exchange(request))
        outcome = None
        Box._running += 1
        try:
            outcome = await self._watched(exchange, self._loop.time() + seconds)
            answer = exchange.result() if outcome is None else Answer(outcome)
            self._listen()
            if outcome is None and self._too_much.done():
                answer = Answer(Outcome.OUTPUT_LIMIT)
            if answer.outcome.kept and not await self._stopped():
                answer = Answer(Outcome.CRASHED)
            outcome = answer.outcome
        finally:
            Box._running -= 1
            exchange.cancel()
            if not self.gone:
                self._loop.remove_reader(self._out)
            if outcome is None or not outcome.kept:
                self.end()
        if not outcome.kept:
            await self._gone
        return Answer(outcome, self._written.decode(errors="replace"), answer.value, answer.plain, answer.fault)

    async def _stopped(self) -> bool:
        """Between calls nothing runs, whatever the answer says: the interpreter is stopped, all else is ended. Whether it is so."""
        if not self._alone:
            return True
        deadline = self._loop.time() + STOP_S
        while self._inside is not None and self._loop.time() < deadline:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._inside, signal.SIGSTOP)
            pids = usage(self._roots).pids
            others = [pid for pid in pids if pid not in self._kept and states(pid) - _DEAD]
            if not others and all(states(pid) <= _STOPPED for pid in self._kept.intersection(pids) - set(self._roots)):
                return True
            for parent in pids:
                _signal_children(parent, signal.SIGKILL, self._kept)
            await asyncio.sleep(0.001)
        return False

    async def _watched(self, exchange: "asyncio.Task[Answer]", deadline: float) -> Outcome | None:
        """What ended the call; `None` where it ended by itself within the limits."""
        assert self._too_much is not None
        next_look = 0.0
        while True:
            look = WATCH_S * max(1, Box._running / WATCHED)
            left = deadline - self._loop.time()
            ends: set[asyncio.Future[Any]] = {exchange, self._too_much, self._gone}
            await asyncio.wait(ends, timeout=max(0, min(look, left)), return_when=asyncio.FIRST_COMPLETED)
            if self._too_much.done():
                return Outcome.OUTPUT_LIMIT
            taken = usage(self._roots, self._alone)
            if self._alone and taken.threads > self.limits.processes:
                return Outcome.PROCESS_LIMIT
            started = self._loop.time()
            if taken.resident > self.limits.memory and (exchange.done() or started >= next_look):
                memory = asyncio.ensure_future(asyncio.to_thread(taken.memory))
                ends = {memory, self._too_much, self._gone}
                await asyncio.wait(ends, timeout=max(WATCH_S, deadline - started), return_when=asyncio.FIRST_COMPLETED)
                now = self._loop.time()
                if not memory.done():
                    if now >= deadline:
                        return Outcome.TIMEOUT
                    continue
                if memory.result() > self.limits.memory:
                    return Outcome.MEMORY_LIMIT
                next_look = now + SPARING * (now - started)
            if exchange.done():
                return None
            if not self.alive:
                return Outcome.CRASHED
            if self._loop.time() >= deadline:
                return Outcome.TIMEOUT

    async def _exchange(self, request: Mapping[str, Any]) -> Answer:
        nonce = secrets.token_hex(8)
        body = json.dumps({**request, "nonce": nonce}).encode()
        try:
            await self._loop.sock_sendall(self._channel, len(body).to_bytes(4, "big") + body)
            frame = await self._receive()
            if frame.get("nonce") != nonce:
                return Answer(Outcome.CRASHED)
            status, value = frame["status"], frame.get("value")
            if status == "not_plain":
                return Answer(Outcome.OK, plain=False)
            if status in ("syntax_error", "no_function"):
                return Answer(Outcome.ERROR, fault=status)
            return Answer(Outcome(status), value=value if isinstance(value, str) else None)
        except (OSError, EOFError, Malformed, KeyError, ValueError):
            return Answer(Outcome.CRASHED)

    async def _receive(self) -> dict[str, Any]:
        size = int.from_bytes(await self._exactly(4), "big")
        if size > LONGEST:
            raise Malformed
        body = await self._exactly(size)
        try:
            frame = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise Malformed from error
        if not isinstance(frame, dict):
            raise Malformed
        return frame

    async def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = await self._loop.sock_recv(self._channel, size - len(parts))
            if not part:
                raise EOFError
            parts += part
        return bytes(parts)

    def _listen(self) -> None:
        """Take what was written and lies ready, up to the limit of a call."""
        while not self.gone and len(self._written) <= self.limits.written:
            try:
                part = os.read(self._out, _STEP)
            except BlockingIOError:
                return
            if not part:
                self._loop.remove_reader(self._out)  # closed inside: it would be readable for ever
                return
            self._written += part
        if not self.gone and self._too_much is not None and not self._too_much.done():
            self._too_much.set_result(None)

    async def kill(self) -> None:
        """End it and wait until nothing of it is left."""
        self.end()
        await self._gone

    def end(self) -> None:
        """End it, without waiting: the kernel ends all of a process namespace with its first process."""
        if self.gone:
            return
        self._ending = True
        if not self._alone:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            return
        if not _signal_children(self.pid, signal.SIGKILL):
            self._process.kill()

    def _reap(self) -> None:
        if self._process.poll() is None:
            return
        self._listen()  # its last words
        for descriptor in (self._alive, self._out, self._channel):
            self._loop.remove_reader(descriptor)
        self._loop.remove_writer(self._channel)
        os.close(self._alive)
        if self._inside is not None:
            os.close(self._inside)
            self._inside = None
        self._close()
        if not self._gone.done():
            self._gone.set_result(None)

    def _close(self) -> None:
        _uids.discard(self._uid)
        self._channel.close()
        os.close(self._out)


def _signal_children(pid: int, number: signal.Signals, spared: Collection[int] = ()) -> bool:
    """Whether there was one to signal."""
    signalled = False
    for child in set(children(pid)).difference(spared):
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(child)
            try:
                if child in children(pid):  # and no stranger who got its number meanwhile
                    signal.pidfd_send_signal(handle, number)
                    signalled = True
            finally:
                os.close(handle)
    return signalled
