"""The scheduling of a run on virtual time: our own loop, buffer and rules over 1,000 slots, and parts that only wait."""

import asyncio
from dataclasses import dataclass
from statistics import fmean
from typing import Any, cast

from bench import virtual
from bench.figures import Figure, Row
from bench.simulated import NoCheckpoints, Pace, SimulatedParts, tasks
from rl.train.buffer import Buffer
from rl.train.loop import Loop
from rl.train.stepper import Stepper
from schemas.training import Mode, TrainConfig

PACE = Pace(turn=2.0, tool=5.0, train=30.0, swap=1.0)
SLOTS, GROUPS, GROUP, STEPS = 1000, 64, 16, 12
TITLE = ("mode", "virtual minutes", "slots busy", "speed-up", "ceiling", "lag mean", "lag max", "turns trained/played")
MODES: tuple[Mode, ...] = ("sync", "partial", "async")


async def measure() -> tuple[list[Row], list[Figure]]:
    """A row for each mode, and the figures."""
    found = {mode: await asyncio.to_thread(_on_virtual_time, mode) for mode in MODES}
    base, rows = found["sync"], list[Row]()
    most = ceiling(base.played, SLOTS, GROUPS * GROUP, PACE.train + PACE.swap)
    for mode, run in found.items():
        lags = [said["lag_mean/trained"] for said in run.metrics]
        drawn = (fmean(said["turns/trained"] for said in run.metrics), run.turns)
        rows.append(
            (
                mode,
                round(run.seconds / 60, 1),
                f"{sum(run.played) / SLOTS / run.seconds:.0%}",
                round(base.seconds / run.seconds, 2),
                round(most, 2),
                round(fmean(lags), 2),
                int(max(said["lag_max/trained"] for said in run.metrics)),
                f"{drawn[0]:.2f}/{drawn[1]:.2f}",
            )
        )
    figures = [
        Figure("virtual_partial_speedup", base.seconds / found["partial"].seconds, ">= 1.5"),
        Figure("virtual_async_speedup", base.seconds / found["async"].seconds, ">= 2"),
        Figure("virtual_async_of_ceiling", base.seconds / found["async"].seconds / most, "> 0 (reported)"),
        Figure("virtual_attempts_lost", sum(run.lost for run in found.values()), "== 0"),
    ]
    return rows, figures


def _on_virtual_time(mode: Mode) -> "Simulated":
    return virtual.run(simulated(mode, PACE, slots=SLOTS, groups=GROUPS, group=GROUP, steps=STEPS))


@dataclass(frozen=True, slots=True)
class Simulated:
    """A run by the clock of its loop. `turns` are the mean of all attempts that ended, trained or not."""

    seconds: float
    played: list[float]
    turns: float
    lost: int
    metrics: list[dict[str, float]]


async def simulated(mode: Mode, pace: Pace, *, slots: int, groups: int, group: int, steps: int) -> Simulated:
    """A run of so many steps on the running loop's clock."""
    config = TrainConfig.model_validate(
        {
            "rollout": {"mode": mode, "slots": slots, "group": group},
            "groups": groups,
            "steps": steps,
            "negatives": {"cap": None},
        }
    )
    clock = asyncio.get_running_loop().time
    parts, buffer = SimulatedParts(pace), Buffer(None)
    stepper = Stepper(config, buffer=buffer, parts=parts, checkpoints=cast(Any, NoCheckpoints()), clock=clock)
    await Loop(config, tasks(4 * groups), buffer=buffer, parts=parts, stepper=stepper).run()
    counts, metrics, ended = await buffer.counts(), await buffer.metrics(), await buffer.ended()
    buffer.close()
    return Simulated(
        seconds=sum(seconds for _, seconds, _ in metrics),
        played=parts.played,
        turns=fmean(each.turns for each in ended),
        lost=counts.missing,
        metrics=[said for _, _, said in metrics],
    )


def ceiling(durations: list[float], slots: int, batch: int, train: float) -> float:
    """Most that any schedule can gain over `sync` (ALGORITHMS: S <= (makespan + T) / max(sum L / K, T)), for these attempts.

    The makespan is that of list scheduling: every attempt goes to the slot that is free first.
    """
    steps = len(durations) // batch
    sync = free = 0.0
    for step in range(steps):
        some = durations[step * batch : (step + 1) * batch]
        sync += makespan(some, slots) + train
        free += max(sum(some) / slots, train)
    return sync / free


def makespan(durations: list[float], slots: int) -> float:
    busy = [0.0] * slots
    for each in durations:
        first = min(range(slots), key=busy.__getitem__)
        busy[first] += each
    return max(busy)
