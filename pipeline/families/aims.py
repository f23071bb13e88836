"""Candidates that are asked for: of which stratum each one is to be, and how hard of its kind."""

from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate
from random import Random

from pipeline.families.base import Generator, Miss
from schemas.base import content_hash
from schemas.config import Aim
from schemas.task import Family, Task

GOLDEN = (5**0.5 - 1) / 2
MORE = 3
"""Tasks beside the first that the hardest, or easiest, is chosen from at level 1, or -1."""


class Shares:
    """Candidate `index` is of a stratum that depends on nothing but the seed and itself.

    Strata come by a golden-ratio (Kronecker) sequence, so any stretch of indices holds them nearly in proportion.
    """

    def __init__(self, aims: Sequence[Aim]) -> None:
        self._aims = tuple(aims)
        self._ends = list(accumulate(aim.weight for aim in aims))

    def of(self, seed: int, index: int) -> Aim:
        """What candidate `index` is to be."""
        phase = int(content_hash(["aim", seed])[:8], 16) / 2**32
        place = (phase + index * GOLDEN) % 1.0 * self._ends[-1]
        return self._aims[min(bisect(self._ends, place), len(self._aims) - 1)]


class Aimed:
    """A family whose candidates are shared out among its strata."""

    def __init__(self, make: Generator, aims: Sequence[Aim]) -> None:
        self._make = make
        self._shares = Shares(aims)

    @property
    def family(self) -> Family:
        return self._make.family

    @property
    def version(self) -> str:
        return self._make.version

    @property
    def strata(self) -> tuple[str, ...]:
        return self._make.strata

    def at(self, seed: int, index: int, stratum: str, draw: int = 0) -> Task | Miss:
        return self._make.at(seed, index, stratum, draw)

    def hardness(self, task: Task) -> float:
        return self._make.hardness(task)

    def __call__(self, seed: int, index: int) -> Task | Miss:
        return asked_for(self._make, seed, index, self._shares.of(seed, index))


def asked_for(make: Generator, seed: int, index: int, aim: Aim) -> Task | Miss:
    """A candidate of the aim's stratum: as it comes at level 0, else the hardest or the easiest of several, the more the
    further the level is from 0. Its lineage says what it was asked to be, so that it can be made again alone."""
    more = abs(aim.level) * MORE
    draws = 1 + int(more) + (Random(f"{seed}/{index}/draws").random() < more % 1)
    made = [make.at(seed, index, aim.stratum, draw) for draw in range(draws)]
    tasks = [task for task in made if isinstance(task, Task)]
    if not tasks:
        return made[0]
    task = (max if aim.level > 0 else min)(tasks, key=make.hardness) if draws > 1 else tasks[0]
    asked = {"stratum": aim.stratum, "level": aim.level}
    lineage = task.lineage.model_copy(update={"knobs": {**task.lineage.knobs, "aim": asked}})
    return task.model_copy(update={"lineage": lineage})
