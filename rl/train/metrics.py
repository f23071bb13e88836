"""The figures of a run: what each one means, and the Parquet file that they are kept in."""

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from schemas.arrow import METRICS
from schemas.errors import TouchstoneError
from schemas.measured import Metric

FILE = "metrics.parquet"


class MetricError(TouchstoneError):
    """A figure that nobody described."""


class Described(NamedTuple):
    """What a figure says, and its unit."""

    meaning: str
    unit: str


POPULATIONS = {
    "batch": "every attempt that the step was made from, once, trained or dropped",
    "graded": "those of them that ended by what the policy did: no tool or server broke, no time ran out",
    "answered": "those of them that gave an answer",
    "right": "those of them whose answer is right",
    "trained": "what the step was taken on",
    "groups": "tasks of the step",
    "targets": "tokens that the policy sampled and is trained on",
    "fresh": "those of them by the very weights that were trained",
    "older": "those of them by older weights",
    "positive": "those of them with an advantage above 0",
    "negative": "those of them with an advantage below 0",
    "run": "the whole run, up to this step",
    "now": "the moment the step was taken",
    "step": "this one step",
}
METRICS_OF = {
    "pass_rate": Described("right answers", "share"),
    "reward": Described("mean reward before decay: format, then correctness", "reward"),
    "return": Described("mean return of a turn, decayed by the turns that followed", "reward"),
    "format_errors": Described("attempts that a broken format ended", "share"),
    "turns": Described("mean turns of an attempt", "turns"),
    "tokens": Described("mean tokens that an attempt sampled", "tokens"),
    "attempts": Described("attempts", "count"),
    "rows": Described("rows: contexts that only grew", "count"),
    "targets": Described("tokens that the policy sampled and is trained on", "count"),
    "signal": Described("groups whose attempts differ in what they are worth", "share"),
    "kept": Described("share of the mass of |advantage| that negative control left", "share"),
    "staleness": Described("mean age of sampled tokens when they are trained", "versions"),
    "staleness_max": Described("greatest age of a sampled token when it is trained", "versions"),
    "loss": Described("the policy gradient's loss, summed by shares", "nats"),
    "entropy": Described("mean entropy of the policy where it sampled", "nats"),
    "push": Described("mean of A * (log pi + H) over all targets, the part of one sign: entropy falls by it", "nats"),
    "clipped": Described("importance weights that were truncated", "share"),
    "ess": Described("effective sample size (sum w)^2 / sum w^2", "share"),
    "log_rho": Described("mean |log pi - log mu| between trained and sampling weights", "nats"),
    "log_rho_max": Described("largest |log pi - log mu|", "nats"),
    "mismatch_kl": Described("mean of rho - 1 - log rho; of fresh targets it is numerics alone", "nats"),
    "gradient_norm": Described("norm of the gradient before it is clipped", "norm"),
    "rate": Described("learning rate", "rate"),
    "tokens_per_second": Described("tokens trained in a second of the trainer's time", "tokens/s"),
    "in_flight": Described("attempts that are played", "count"),
    "suspended": Described("attempts that are saved at a turn and wait for a slot", "count"),
    "waiting": Described("attempts that are over and wait for their group or their batch", "count"),
    "seconds": Described("wall time", "s"),
}
"""By the part of a metric's name before the `/`."""


def describe() -> str:
    """Every figure and every population as Markdown: of the README, and of whoever reads the file."""
    rows = [("metric", "meaning", "unit"), ("---", "---", "---")]
    rows += [(f"`{name}`", found.meaning, found.unit) for name, found in METRICS_OF.items()]
    rows += [(f"`…/{name}`", f"of {meaning}", "") for name, meaning in POPULATIONS.items()]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)


def undescribed(names: Iterable[str]) -> list[str]:
    """Those of `<what>/<population>` that nobody described, in order."""
    return [name for name in names if not _is_described(*name.partition("/")[::2])]


def _is_described(what: str, population: str) -> bool:
    return what in METRICS_OF and population in POPULATIONS


def record(folder: Path, step: int, seconds: float, metrics: Mapping[str, float]) -> None:
    """Add a step to the run's file, which then has no later ones: those were lost with a crash and are taken again.

    Raises `MetricError` for a figure without a description.
    """
    if unknown := undescribed(metrics):
        raise MetricError(f"{', '.join(unknown)}: nobody said what it means; describe it in rl/train/metrics.py")
    rows = []
    for name, value in metrics.items():
        what, population = name.split("/")
        finite = float(value) if math.isfinite(value) else None
        rows.append(Metric(step=step, seconds=seconds, name=what, population=population, value=finite))
    file = folder / FILE
    tables = [METRICS.pack(rows)]
    if file.exists():
        before = pq.read_table(file)
        tables.insert(0, before.filter(pc.less(before["step"], step)))
    aside = file.with_suffix(".new")
    pq.write_table(pa.concat_tables(tables), aside, compression="zstd")
    os.replace(aside, file)


def read(folder: Path) -> list[Metric]:
    """Every figure of the run in the order of its steps; none where no step was taken."""
    return METRICS.unpack(pq.read_table(folder / FILE)) if (folder / FILE).exists() else []
