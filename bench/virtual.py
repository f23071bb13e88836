"""An event loop on which waiting takes no time: when nothing can run, its clock jumps to the next timer.

Threads take real time, so while one works for the loop the clock stands still and the loop waits for it.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Turns the wait for a timer into a jump of the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.threads = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if found or timeout == 0:
            return found
        if self.threads or timeout is None:
            return super().select(timeout if timeout is None else min(timeout, 0.05))
        self.now += timeout
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """`time` is in virtual seconds from 0."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> "asyncio.Future[Any]":  # type: ignore[override]
        work = super().run_in_executor(executor, func, *args)
        self._virtual.threads += 1
        work.add_done_callback(self._back)
        return work

    def _back(self, work: "asyncio.Future[Any]") -> None:
        self._virtual.threads -= 1


def run(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` on virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)
