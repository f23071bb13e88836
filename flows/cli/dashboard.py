"""How a training run looks while it goes on: a panel in a terminal, a line now and then where there is none."""

import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from flows.cli.console import err
from rl.train.progress import Progress, every

FIGURES = (
    ("pass rate", "pass_rate/valid", "{:.2f}"),
    ("reward", "reward/valid", "{:+.3f}"),
    ("entropy", "entropy/targets", "{:.3f}"),
    ("staleness", "lag_mean/trained", "{:.1f}"),
    ("tokens/s", "tokens_per_second/step", "{:,.0f}"),
)
BARS = "▁▂▃▄▅▆▇█"
WIDTH = 48
"""Steps of the curve that are shown."""


class Dashboard:
    """A `Watch`. Numbers, and names of stages that the run itself gives: nothing that a policy or a page wrote."""

    def __init__(
        self, title: str, console: Console = err, *, seconds: float = 15.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`seconds` lie between two lines; a new stage has one at once."""
        self._title = title
        self._live = Live(console=console, refresh_per_second=4) if console.is_terminal else None
        self._rates: deque[float] = deque(maxlen=WIDTH)
        self._step = 0
        self._say = every(seconds, lambda progress: console.print(line(progress), highlight=False), clock)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, progress: Progress) -> None:
        if progress.step != self._step and "pass_rate/valid" in progress.metrics:
            self._rates.append(progress.metrics["pass_rate/valid"])
        self._step = progress.step
        if self._live is not None:
            self._live.update(self._panel(progress))
        else:
            self._say(progress)

    def _panel(self, progress: Progress) -> Panel:
        grid = Table.grid(padding=(0, 2))
        grid.add_row("stage", progress.stage, "step", _steps(progress), "time", _minutes(progress))
        for pairs in (_figures(progress), [(name, f"{n:,}") for name, n in _counts(progress)]):
            for i in range(0, len(pairs), 3):
                grid.add_row(*(cell for pair in pairs[i : i + 3] for cell in pair))
        grid.add_row("pass rate", Text(sparkline(list(self._rates)), style="green"))
        return Panel(grid, title=Text(self._title), title_align="left", expand=False)


def line(progress: Progress) -> str:
    """The same in one line."""
    parts = [progress.stage, f"step {_steps(progress)}", _minutes(progress)]
    parts += [f"{name} {text}" for name, text in _figures(progress)]
    parts += [f"{name} {n:,}" for name, n in _counts(progress) if n]
    return "  ".join(parts)


def sparkline(values: list[float]) -> str:
    """One bar a value, from the lowest of them to the highest."""
    if not values:
        return ""
    low, span = min(values), max(values) - min(values)
    return "".join(BARS[round((value - low) / span * (len(BARS) - 1)) if span else 0] for value in values)


def _steps(progress: Progress) -> str:
    return f"{progress.step}" if progress.steps is None else f"{progress.step} of {progress.steps}"


def _minutes(progress: Progress) -> str:
    most = "" if progress.of_minutes is None else f" of {progress.of_minutes:g}"
    return f"{progress.minutes:.1f}{most} min"


def _figures(progress: Progress) -> list[tuple[str, str]]:
    return [(name, form.format(progress.metrics[key])) for name, key, form in FIGURES if key in progress.metrics]


def _counts(progress: Progress) -> list[tuple[str, int]]:
    return [
        ("in flight", progress.in_flight),
        ("suspended", progress.suspended),
        ("waiting groups", progress.waiting),
        ("admitted", progress.admitted),
        ("trained", progress.trained),
        ("dropped", progress.dropped),
    ]
