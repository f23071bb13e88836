"""Tasks of an earlier release that are worth another try by a policy that has learned since."""

from collections.abc import Collection, Sequence
from itertools import chain, zip_longest

from pipeline import passn
from pipeline.release import Release
from schemas.base import content_hash
from schemas.row import Rejected
from schemas.task import Family, Task

TOO_HARD, TOO_EASY = "too_hard", "too_easy"
MOST = 0.25
"""Of the new candidates: too hard tasks that are tried again at most. Each costs as much as the dearest candidate."""
POOL = 0.1
"""Of the tasks that the earlier release kept: too easy ones that are tried again, lest what was learned be forgotten."""


def tried_again(release: Release, family: Family, strata: Collection[str], candidates: int) -> list[Task]:
    """Too hard tasks in turn from each of the strata, then a pool of too easy ones; which, is drawn by their ids.

    `strata` are those that candidates are made of, empty for any: what a plan leaves out is not tried again either.
    """
    fallen = [row for row in release.rejected() if row.filter == passn.NAME and row.task.family == family]
    wanted = [row for row in fallen if not strata or row.task.stratum in strata]
    kept = sum(release.splits(family).values())
    hard = _in_turn(wanted, TOO_HARD)[: round(MOST * candidates)]
    easy = _in_turn(wanted, TOO_EASY)[: round(POOL * kept)]
    return list({task.task_id: task for task in (*hard, *easy)}.values())


def _in_turn(rows: Sequence[Rejected], reason: str) -> list[Task]:
    by_stratum: dict[str, list[Task]] = {}
    for row in rows:
        if row.reason == reason:
            by_stratum.setdefault(row.task.stratum, []).append(row.task)
    shuffled = [sorted(tasks, key=lambda task: content_hash(["again", task.task_id])) for tasks in by_stratum.values()]
    return [task for task in chain.from_iterable(zip_longest(*shuffled)) if task is not None]
