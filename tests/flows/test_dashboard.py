"""What a person sees of a run while it goes on: a panel, or lines that a file can hold."""

import io

from rich.console import Console

from flows.cli.console import _Screen
from flows.cli.dashboard import Dashboard, line, sparkline
from rl.train.progress import Progress, every

METRICS = {
    "pass_rate/valid": 0.314,
    "reward/valid": 0.25,
    "entropy/targets": 0.7071,
    "lag_mean/trained": 1.25,
    "tokens_per_second/step": 2410.0,
}


def progress(step: int = 12, stage: str = "train", **more: object) -> Progress:
    return Progress(stage, step, 90, 1.26, 8.0, **{"metrics": METRICS, **more})  # type: ignore[arg-type]


def test_a_line_has_every_figure() -> None:
    assert line(progress(in_flight=64, suspended=3, waiting=2, admitted=2000, trained=1024, dropped=40)) == (
        "train  step 12 of 90  1.3 of 8 min  pass rate 0.31  reward +0.250  entropy 0.707  staleness 1.2  tokens/s 2,410  "
        "in flight 64  suspended 3  waiting groups 2  admitted 2,000  trained 1,024  dropped 40"
    )


def test_before_the_first_step_a_line_has_what_is_known() -> None:
    assert line(Progress("evaluate step 0", 0, None, 0.0, None)) == "evaluate step 0  step 0  0.0 min"


def test_where_there_is_no_terminal_a_line_is_written_now_and_then() -> None:
    sink, now = io.StringIO(), 0.0
    console = Console(file=sink, width=400)
    with Dashboard("run", console, seconds=15, clock=lambda: now) as dashboard:
        for now, stage in ((0.0, "evaluate"), (1.0, "train"), (2.0, "train"), (15.9, "train"), (16.1, "train")):  # noqa: B007
            dashboard(progress(stage=stage))
    lines = sink.getvalue().splitlines()
    assert [each.split()[0] for each in lines] == ["evaluate", "train", "train"]
    assert "\x1b" not in sink.getvalue()


def test_a_watch_that_looks_now_and_then_sees_every_new_stage() -> None:
    seen, times = [], iter([0.0, 1.0, 2.0, 31.0])
    watch = every(30, lambda told: seen.append(told.stage), clock=lambda: next(times))
    for stage in ("a", "a", "b", "b"):
        watch(progress(stage=stage))
    assert seen == ["a", "b"]


def test_in_a_terminal_it_is_a_panel_with_a_curve_and_obeys_no_name() -> None:
    screen, sink = _Screen(), io.StringIO()
    screen.file, screen.width, screen._force_terminal = sink, 120, True
    with Dashboard("train-\x1b]0;x\x07", screen) as dashboard:
        for step in range(1, 9):
            dashboard(progress(step, metrics={**METRICS, "pass_rate/valid": step / 8}))
    shown = sink.getvalue()
    assert "▁▂▃▄▅▆▇█" in shown and "2,410" in shown
    assert "\x1b]0;x" not in shown and "\x07" not in shown


def test_a_curve_that_does_not_move_is_flat() -> None:
    assert (sparkline([]), sparkline([0.5, 0.5]), sparkline([0, 1, 0.5])) == ("", "▁▁", "▁█▅")
