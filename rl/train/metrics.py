"""The figures of a run, and what each one means."""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from schemas.errors import TouchstoneError
from schemas.measured import Metric


class MetricError(TouchstoneError):
    """A figure that nobody described."""


class Described(NamedTuple):
    """What a figure says, and its unit."""

    meaning: str
    unit: str


POPULATIONS = {
    "valid": "attempts of the step's batch that have a reward: no tool or server broke, no time ran out, no grader was unsure",
    "right": "those of them whose answer is right",
    "groups": "tasks of the step's batch with two such attempts or more",
    "trained": "attempts that the step was taken on",
    "shown": "what the policy was shown in their contexts",
    "negative": "what has an advantage below 0: attempts for `negative_kept`, else tokens",
    "positive": "tokens with an advantage above 0",
    "targets": "tokens that the policy sampled and is trained on",
    "fresh": "those of them by the very weights that are trained",
    "older": "those of them by older weights",
    "step": "the step itself",
    "attempts": "attempts of the whole run when the step began",
}
METRICS_OF = {
    "pass_rate": Described("right answers", "share"),
    "reward": Described("mean reward before decay: format, then correctness", "reward"),
    "turns": Described("mean turns of an attempt", "turns"),
    "format_errors": Described(
        "attempts that ended by a broken format, a full window, too many turns or a loop", "share"
    ),
    "solved": Described("groups with a right attempt", "share"),
    "no_signal": Described("groups whose attempts are all worth the same, which teach nothing", "share"),
    "negative_kept": Described("mass of negative advantages that negative control left", "share"),
    "trajectories": Described("attempts", "count"),
    "rows": Described("rows: contexts that only grew", "count"),
    "tokens": Described("tokens", "count"),
    "forked": Described("attempts whose context was rewritten, and which are several rows", "share"),
    "lag_mean": Described("mean age of an attempt's oldest turn when it is trained", "versions"),
    "lag_max": Described("greatest age of a turn when it is trained", "versions"),
    "targets": Described("tokens that the policy sampled and is trained on", "count"),
    "loss": Described("the policy gradient's loss", "nats"),
    "clipped": Described("importance weights that were truncated", "share"),
    "ess": Described("effective sample size, (sum w)^2 / sum w^2", "share"),
    "log_rho": Described("mean |log pi - log mu| between trained and sampling weights", "nats"),
    "log_rho_max": Described("largest |log pi - log mu|", "nats"),
    "mismatch_kl": Described("mean of rho - 1 - log rho; of fresh targets it is numerics alone", "nats"),
    "entropy": Described("mean entropy of the policy where it sampled", "nats"),
    "push_positive": Described(
        "part of positive advantages in the mean of A (log pi + H), by which entropy falls", "nats"
    ),
    "push_negative": Described("part of negative advantages in it", "nats"),
    "gradient_norm": Described("norm of the gradient before it is clipped", "norm"),
    "rate": Described("learning rate", "rate"),
    "skipped_steps": Described("1 where the gradient was no finite number and nothing was changed", "count"),
    "passes": Described("packed sequences that went through the model", "count"),
    "tokens_per_second": Described("tokens that went through the trainer in a second", "tokens/s"),
    "seconds": Described("the trainer's time", "s"),
    "in_flight": Described("attempts that are played", "count"),
    "suspended": Described("attempts that are saved at a turn and wait for a slot", "count"),
    "waiting": Described("groups that are complete and wait for a batch", "count"),
}
"""By the part of a metric's name before the `/`."""


def undescribed(names: Iterable[str]) -> list[str]:
    """Those of `<what>/<population>` that nobody described, in order."""
    return [name for name in names if not _is_described(*name.partition("/")[::2])]


def _is_described(what: str, population: str) -> bool:
    return what in METRICS_OF and population in POPULATIONS


def tabled(steps: Iterable[tuple[int, float, Mapping[str, float]]]) -> list[Metric]:
    """Figures of steps that are given as number, seconds of each, and `<what>/<population>`; in the order of the steps.

    Raises `MetricError` for a figure without a description.
    """
    rows, elapsed = [], 0.0
    for step, seconds, metrics in steps:
        if unknown := undescribed(metrics):
            raise MetricError(f"{', '.join(unknown)}: nobody said what it means; describe it in rl/train/metrics.py")
        elapsed += seconds
        for name, value in metrics.items():
            what, population = name.split("/")
            finite = float(value) if math.isfinite(value) else None
            rows.append(Metric(step=step, seconds=elapsed, name=what, population=population, value=finite))
    return rows
