"""Worker processes for algebra, which are killed when they overrun.

Invariants: a worker serves one request at a time; at most `SIZE` live at once; one that overran, ran out of memory or died
is reaped before its caller returns; none outlives this process by more than its limit of processor time. What bounds a request
is the processor time it takes, which the kernel counts, so a verdict does not hang on how busy the machine is; nor on what
else the worker was asked before, as one that fails in its second life is replaced by a fresh one that is asked again.
"""

import atexit
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SIZE = 2
DEADLINE = 4.0
"""Seconds of processor time for one comparison."""
PATIENCE = 600.0
"""Seconds by the clock, for a start or a comparison, after which a worker is given up that the machine lets do nothing."""
MEMORY = 512 * 2**20
"""Bytes a worker may grow beyond what it needs to start."""

_ROOT = Path(__file__).parents[2]


class Undecided(Exception):
    """The comparison did not finish: `timeout`, `memory`, `crashed`, `stalled`, `no_worker`, or an error of sympy's."""


class _Worker:
    def __init__(self, memory: int) -> None:
        path = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pipeline.grading.algebra", str(memory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C goes to the owner, who decides what to end
        )
        self.rest = b""
        self.used = False

    def send(self, request: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self, seconds: float) -> dict[str, Any]:
        """The next line. Raises `TimeoutError` after `seconds`, `EOFError` if the process ended."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + seconds
        ready = select.poll()  # unlike `select`, at home with any number of open files
        ready.register(self.process.stdout, select.POLLIN)
        while b"\n" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not ready.poll(left * 1000):
                raise TimeoutError
            data = os.read(self.process.stdout.fileno(), 2**16)
            if not data:
                raise EOFError
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        reply: dict[str, Any] = json.loads(line)
        return reply

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


class Workers:
    """A pool that starts workers when they are needed. Threads may share it; a forked child gets an empty one."""

    def __init__(self, size: int = SIZE, memory: int = MEMORY, patience: float = PATIENCE) -> None:
        self.size = size
        self.memory = memory
        self.patience = patience
        self._reset()
        os.register_at_fork(after_in_child=self._reset)
        atexit.register(self.close)

    def _reset(self) -> None:
        self._free = threading.Semaphore(self.size)
        self._idle: list[_Worker] = []
        self._lock = threading.Lock()

    def compare(
        self,
        golds: Sequence[str],
        texts: Sequence[str],
        variables: Sequence[str] = (),
        tolerance: float | None = None,
        seconds: float = DEADLINE,
    ) -> list[list[str]]:
        """Row by gold, column by text: `equal`, `different`, `unproved` or `unreadable`. Raises `Undecided`."""
        request = {
            "golds": list(golds),
            "texts": list(texts),
            "variables": list(variables),
            "tolerance": tolerance,
            "seconds": seconds,
        }
        with self._free:
            worker = self._ready()
            reply = self._asked(worker, request)
            if worker.used and reply.get("error") in ("memory", "crashed"):
                reply = self._asked(self._started(), request)
        if "error" in reply:
            raise Undecided(reply["error"])
        table: list[list[str]] = reply["table"]
        return table

    def _asked(self, worker: _Worker, request: dict[str, Any]) -> dict[str, Any]:
        """Its reply, or the error that ended it. It is idle afterwards, or dead."""
        healthy = False
        try:
            worker.send(request)
            reply = worker.receive(self.patience)
            healthy = reply.get("error") != "memory"
        except TimeoutError:
            reply = {"error": "stalled"}
        except (EOFError, BrokenPipeError):
            reply = {"error": "timeout" if worker.process.wait() == -signal.SIGXCPU else "crashed"}
        finally:
            if not healthy:
                worker.kill()
        if healthy:
            with self._lock:
                self._idle.append(worker)
        return reply

    def _ready(self) -> _Worker:
        """An idle worker that is alive, else a new one."""
        while True:
            with self._lock:
                worker = self._idle.pop() if self._idle else None
            if worker is None:
                return self._started()
            worker.used = True
            if worker.process.poll() is None:
                return worker
            worker.kill()

    def _started(self) -> _Worker:
        try:
            worker = _Worker(self.memory)
        except OSError as error:
            raise Undecided("no_worker") from error
        try:
            worker.receive(self.patience)
        except (TimeoutError, EOFError) as error:
            worker.kill()
            raise Undecided("no_worker") from error
        except BaseException:
            worker.kill()
            raise
        return worker

    def pids(self) -> list[int]:
        with self._lock:
            return [w.process.pid for w in self._idle]

    def close(self) -> None:
        """End every idle worker; the next comparison starts afresh."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.kill()


WORKERS = Workers()
