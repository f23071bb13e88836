"""Whether the code of a text does what a gold asks: it runs in the sandbox, and what it gives is compared here.

Invariants: one event loop, on a thread of its own, serves the sandbox; callers on any thread wait for it. What a case should give
never enters the sandbox, and a case that gave nothing back is failed.
"""

import asyncio
import atexit
import contextlib
import json
import math
import os
import re
import threading
from typing import Any

from infra.sandbox import NoIsolation, Outcome, Sandbox
from infra.sandbox.cases import run_cases
from pipeline.grading.workers import Undecided
from schemas.answer import CodeAnswer
from schemas.errors import TouchstoneError

SECONDS = 10.0
"""For one case, by the clock."""
CLOSENESS = 1e-9
"""Where a float is expected, relative to it: sums in another order differ in the last digits."""
NEAR_ZERO = 1e-12
"""Absolute, where 0.0 is expected, to which nothing is near by the relative one."""
SIZE = 4
"""Texts that are judged at once."""
LONGEST = 200_000
"""Characters of code that are run."""

_BLOCK = re.compile(r"^[ \t]*(`{3,})[\w+-]*[ \t]*\r?\n(.*?)^[ \t]*\1`*[ \t]*\r?$", re.MULTILINE | re.DOTALL)
# Of a text without one, so that an answer in words is told from code that is mistyped.
_STATEMENT = re.compile(r"^[ \t]*(def|async def|class|import) |=|```", re.MULTILINE)


def candidate(text: str) -> str:
    """The last fenced block of the text that is closed, by as many backticks as opened it or more; else all of it."""
    blocks = _BLOCK.findall(text)
    return blocks[-1][1] if blocks else text


def same(value: Any, expected: Any) -> bool:
    """Whether two values read from JSON are equal. A truth value is no number; 2.0 is the integer 2, and NaN is NaN.

    Only a float that is expected may be missed, by `CLOSENESS`: an integer is exact.
    """
    if isinstance(value, bool) or isinstance(expected, bool):
        return value is expected
    if isinstance(value, list) and isinstance(expected, list):
        return len(value) == len(expected) and all(map(same, value, expected))
    if isinstance(value, dict) and isinstance(expected, dict):
        return value.keys() == expected.keys() and all(same(value[key], expected[key]) for key in value)
    if isinstance(value, int | float) and isinstance(expected, float):
        try:
            near = math.isclose(value, expected, rel_tol=CLOSENESS, abs_tol=0.0 if expected else NEAR_ZERO)
            return near or (value != value and expected != expected)
        except OverflowError:  # an integer beyond every float
            return False
    kinds = type(value), type(expected)
    return (kinds[0] is kinds[1] or kinds == (float, int)) and bool(value == expected)


class Code:
    """The sandbox of this process's graders, started when it is first needed. A forked child gets its own."""

    def __init__(self) -> None:
        self._reset()
        os.register_at_fork(after_in_child=self._reset)
        atexit.register(self.close)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._sandbox: Sandbox | None = None
        self._free = threading.Semaphore(SIZE)

    def failing(self, spec: CodeAnswer, text: str) -> str:
        """Why the code of the text is wrong; empty where every case is right. Raises `Undecided` where it cannot be run."""
        code = candidate(text)
        if not code.strip():
            return "no_code"
        if len(code) > LONGEST:
            raise Undecided("too_long")
        with self._free:
            try:
                loop, sandbox = self._started()
                return asyncio.run_coroutine_threadsafe(_failing(sandbox, spec, code), loop).result()
            except NoIsolation as error:
                raise Undecided("no_isolation") from error
            except (TouchstoneError, OSError) as error:
                raise Undecided("no_sandbox") from error

    def _started(self) -> tuple[asyncio.AbstractEventLoop, Sandbox]:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="sandbox", daemon=True)
                self._thread.start()
            if self._sandbox is None:
                sandbox = Sandbox(pool=1)
                asyncio.run_coroutine_threadsafe(sandbox.__aenter__(), self._loop).result()
                self._sandbox = sandbox
            return self._loop, self._sandbox

    def close(self) -> None:
        """End the sandbox; the next text starts it again."""
        with self._lock:
            loop, thread, sandbox = self._loop, self._thread, self._sandbox
            self._loop = self._thread = self._sandbox = None
        if loop is None or thread is None:
            return
        if sandbox is not None:
            asyncio.run_coroutine_threadsafe(sandbox.close(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


CODE = Code()


async def _failing(sandbox: Sandbox, spec: CodeAnswer, code: str) -> str:
    arguments = [json.loads(case) for case, _ in spec.cases]
    right = 0
    async with contextlib.aclosing(run_cases(sandbox, code, spec.entry, arguments, SECONDS)) as answers:
        async for answer in answers:
            if answer.fault == "syntax_error" and not _STATEMENT.search(code):
                return "no_code"
            if answer.outcome is not Outcome.OK:
                return answer.fault or str(answer.outcome)
            if not answer.plain:
                return "not_plain"
            if answer.value is None or not same(_read(answer.value), json.loads(spec.cases[right][1])):
                return "other_value"
            right += 1
    return "" if right == len(spec.cases) else "other_value"


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return object()  # equal to nothing that is expected
