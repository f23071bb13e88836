"""Rounds that are steered beside rounds that are not, at equal cost: what steering brings, seed by seed."""

import sys
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import fmean, stdev
from typing import Any

from bench.figures import Figure, Row
from flows.cli.local import Here
from infra.settings import Settings
from pipeline.estimates import difference
from rl.history import COLUMNS, Told, history
from rl.rounds import begin, go_on
from schemas.config import CurateConfig, Served
from schemas.evaluation import Counts, Estimate
from schemas.rounds import RoundsConfig

SEEDS, ROUNDS = (0, 1, 2), 3
BUDGET = 800_000
"""Tokens that models spend on curation in a round."""
STEPS = 24
"""So many that tasks are met again and again: then it shows what more of them are worth."""
ATTEMPTS = 8
"""At each held-out task."""
T95 = 4.303
"""Of Student's t with two degrees of freedom."""
CURATE: dict[str, Any] = {
    "family": "hard_search",
    "candidates": 2000,
    "budget": BUDGET,
    "batch": 100,
    "plan": "uniform",
    "tools": {"replicas": 0},
    "hard_search": {"types": ["country", "US state", "element"], "min_clues": 3, "max_clues": 3},
    "triviality": {"p0": 0.05, "p1": 0.6, "alpha": 0.2, "beta": 0.2, "limit": 4},
}
TRAIN: dict[str, Any] = {
    "steps": STEPS,
    "rollout": {"slots": 128},
    "optimiser": {"rate": 3e-4, "warmup": 3},
    "reward": {"gamma": 0.8},
    "tools": {"replicas": 0},
    "evaluation": {"attempts": ATTEMPTS},
}
"""By steps and not by the clock, so that both twins train as much whatever else the machine does."""
SHOWN = len(COLUMNS) - 2
TITLE = ("seed", "twin", *COLUMNS[:SHOWN])


@dataclass(frozen=True, slots=True)
class Twin:
    """One side of a pair, after its last round."""

    rounds: tuple[Told, ...]

    @property
    def per_token(self) -> float:
        """Tasks kept for a million tokens after the first round, which is the same on both sides."""
        later = self.rounds[1:]
        return sum(each.kept + each.revived for each in later) / sum(each.tokens for each in later) * 1e6

    @property
    def by_task(self) -> dict[str, Counts]:
        last = self.rounds[-1].after
        assert last is not None
        return last.sampled.by_task


async def measure() -> tuple[list[Row], list[Figure]]:
    """A row for each round of each side, and the figures. What was done before is found again."""
    settings = Settings.from_env()
    held_out = await _held_out(settings)
    pairs = [[await _played(seed, steered, held_out, settings) for steered in (True, False)] for seed in SEEDS]
    rows: list[Row] = [
        (seed, name, *told.row()[:SHOWN])
        for seed, pair in zip(SEEDS, pairs, strict=True)
        for name, twin in zip(("steered", "uniform"), pair, strict=True)
        for told in twin.rounds
    ]
    ratios = [steered.per_token / uniform.per_token for steered, uniform in pairs]
    gains = [_gain(steered, uniform) for steered, uniform in pairs]
    mean = fmean(gain.value for gain in gains)
    # Seeds differ in tasks and in training: the interval is over seeds, and that over held-out tasks stands in the rows below.
    half = T95 * stdev(gain.value for gain in gains) / sqrt(len(gains))
    rows += [
        (seed, "steered - uniform", "", "", f"{ratio:.2f} times per token", "", "", "", "", _said(gain))
        for seed, ratio, gain in zip(SEEDS, ratios, gains, strict=True)
    ]
    figures = [
        Figure("twin_kept_per_token_ratio", exp(fmean(map(log, ratios))), ">= 1.5"),
        Figure("twin_kept_per_token_ratio_least", min(ratios), "> 1"),
        Figure("twin_pass_at_1_gain", mean, ">= 0"),
        Figure("twin_pass_at_1_gain_low", mean - half, "> -1"),
        Figure("twin_pass_at_1_gain_high", mean + half, "< 1"),
    ]
    return rows, figures


def config(seed: int, steered: bool, held_out: str) -> RoundsConfig:
    """Twins differ in one word. No task is tried again: that is no matter of steering, and would cost both the same."""
    return RoundsConfig.model_validate(
        {
            "rounds": ROUNDS,
            "seed": 1000 * (seed + 1),
            "steered": steered,
            "held_out": held_out,
            "again": False,
            "curate": CURATE,
            "train": TRAIN,
        }
    )


async def _held_out(settings: Settings) -> str:
    """The same for every seed: of the family's own mix of strata, which is nobody's plan."""
    own = {name: value for name, value in CURATE.items() if name not in ("plan", "budget")}
    made = CurateConfig.model_validate({**own, "candidates": 600, "batch": 200, "seed": 7, "test_share": 1.0})
    return await Here(settings).curate(made.model_copy(update={"solver": Served(model="starter")}))


async def _played(seed: int, steered: bool, held_out: str, settings: Settings) -> Twin:
    rounds = begin(config(seed, steered, held_out), settings)

    def said(number: int, step: str) -> None:
        print(
            f"seed {seed}, {'steered' if steered else 'uniform'}, round {number}: {step}", file=sys.stderr, flush=True
        )

    await go_on(rounds, Here(settings), settings, said)
    return Twin(history(rounds, settings).rounds)


def _gain(steered: Twin, uniform: Twin) -> Estimate:
    found = difference(uniform.by_task, steered.by_task)
    assert found is not None
    return found


def _said(gain: Estimate) -> str:
    return f"{gain.value:+.3f} ({gain.low:+.3f} to {gain.high:+.3f})"
