"""A family whose candidates are shared out among its strata."""

from bisect import bisect
from collections.abc import Mapping
from itertools import accumulate

from pipeline.families.base import Generator, Miss
from schemas.base import content_hash
from schemas.task import Family, Task

GOLDEN = (5**0.5 - 1) / 2


class Aimed:
    """Candidate `index` is of a stratum that depends on nothing but the seed and itself; `aims` are weights.

    Strata come by a golden-ratio (Kronecker) sequence, so any stretch of indices holds them nearly in proportion.
    """

    def __init__(self, make: Generator, aims: Mapping[str, float]) -> None:
        self._make = make
        self._strata = tuple(aims)
        self._ends = list(accumulate(aims.values()))

    @property
    def family(self) -> Family:
        return self._make.family

    @property
    def version(self) -> str:
        return self._make.version

    @property
    def strata(self) -> tuple[str, ...]:
        return self._make.strata

    def stratum(self, seed: int, index: int) -> str:
        """What candidate `index` is to be."""
        phase = int(content_hash(["aim", seed])[:8], 16) / 2**32
        place = (phase + index * GOLDEN) % 1.0 * self._ends[-1]
        return self._strata[min(bisect(self._ends, place), len(self._strata) - 1)]

    def at(self, seed: int, index: int, stratum: str) -> Task | Miss:
        return self._make.at(seed, index, stratum)

    def __call__(self, seed: int, index: int) -> Task | Miss:
        return self._make.at(seed, index, self.stratum(seed, index))
