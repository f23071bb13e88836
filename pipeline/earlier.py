"""Tasks of an earlier release that are worth another try by a policy that has learned since."""

from collections.abc import Mapping, Sequence

from pipeline import passn
from pipeline.release import Release
from pipeline.sequential import TOO_EASY, TOO_HARD
from schemas.base import content_hash
from schemas.config import CurateConfig
from schemas.row import Rejected
from schemas.task import Task

MOST = 0.1
"""Of the new candidates: too hard tasks that are tried again at most. Each costs as much as the dearest candidate."""
POOL = 0.1
"""Of the tasks that the earlier release kept: too easy ones that are tried again, lest what was learned be forgotten."""


def tried_again(release: Release, config: CurateConfig) -> list[Task]:
    """Too hard tasks, as many of each stratum as candidates are made of it, then a pool of too easy ones; which, is drawn by ids.

    What the aims leave out is not tried again.
    """
    family, weights = config.family, {aim.stratum: aim.weight for aim in config.aims}
    fallen = [row for row in release.rejected() if row.filter == passn.NAME and row.task.family == family]
    wanted = weights or {row.task.stratum: 1.0 for row in fallen}
    kept = sum(release.splits(family).values())
    hard = _in_turn(fallen, TOO_HARD, wanted)[: round(MOST * _candidates(release, config))]
    easy = _in_turn(fallen, TOO_EASY, wanted)[: round(POOL * kept)]
    return list({task.task_id: task for task in (*hard, *easy)}.values())


def _candidates(release: Release, config: CurateConfig) -> float:
    """That there will be: as many as are asked for, or as the budget makes at what they cost in the earlier release."""
    asked = float(config.candidates or config.accept or 0)
    counts = release.manifest.strata.values()
    spent, made = sum(each.tokens for each in counts), sum(each.asked for each in counts)
    return min(asked, config.budget * made / spent) if config.budget is not None and spent else asked


def _in_turn(rows: Sequence[Rejected], reason: str, weights: Mapping[str, float]) -> list[Task]:
    by_stratum: dict[str, list[Task]] = {}
    for row in sorted(rows, key=lambda row: content_hash(["again", row.task.task_id])):
        if row.reason == reason and weights.get(row.task.stratum, 0):
            by_stratum.setdefault(row.task.stratum, []).append(row.task)
    turns = [
        ((rank + 1) / weights[stratum], stratum, task)
        for stratum, tasks in by_stratum.items()
        for rank, task in enumerate(tasks)
    ]
    return [task for *_, task in sorted(turns, key=lambda turn: turn[:2])]
