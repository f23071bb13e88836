"""Tasks of an earlier release that are worth another try by a policy that has learned since."""

from collections.abc import Mapping, Sequence

from pipeline import passn
from pipeline.release import Release
from pipeline.sequential import TOO_EASY, TOO_HARD
from schemas.base import content_hash
from schemas.row import Rejected
from schemas.task import Family, Task

MOST = 0.1
"""Of the new candidates: too hard tasks that are tried again at most. Each costs as much as the dearest candidate."""
POOL = 0.1
"""Of the tasks that the earlier release kept: too easy ones that are tried again, lest what was learned be forgotten."""


def tried_again(release: Release, family: Family, weights: Mapping[str, float], candidates: int) -> list[Task]:
    """Too hard tasks, as many of each stratum as candidates are made of it, then a pool of too easy ones; which, is drawn by ids.

    `weights` are those of strata that candidates are made of, empty for all alike: what a plan leaves out is not tried again.
    """
    fallen = [row for row in release.rejected() if row.filter == passn.NAME and row.task.family == family]
    wanted = weights or {row.task.stratum: 1.0 for row in fallen}
    kept = sum(release.splits(family).values())
    hard = _in_turn(fallen, TOO_HARD, wanted)[: round(MOST * candidates)]
    easy = _in_turn(fallen, TOO_EASY, wanted)[: round(POOL * kept)]
    return list({task.task_id: task for task in (*hard, *easy)}.values())


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
