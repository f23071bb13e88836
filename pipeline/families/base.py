"""What a family of tasks is: a pure function from a candidate's number to a task."""

from typing import Protocol

from schemas.base import Record
from schemas.task import Family, Task


class Miss(Record):
    """A candidate index that yielded no task. Counted by reason, never silent."""

    reason: str


class Generator(Protocol):
    """Equal (configuration, world, seed, index) make a byte-equal task, alone or in a batch: this is what replay does.

    Index `i` depends on no other index, and nothing is drawn from the clock, the network or a set's order.
    """

    @property
    def strata(self) -> tuple[str, ...]:
        """Those that it can be asked for, in order."""
        ...

    def at(self, seed: int, index: int, stratum: str, draw: int = 0) -> Task | Miss:
        """A candidate of one of `strata`, another one for each `draw`; a miss where it found none."""
        ...

    def hardness(self, task: Task) -> float:
        """Of two tasks of one stratum the higher is to be the harder one, before anybody has tried."""
        ...

    @property
    def family(self) -> Family: ...

    @property
    def version(self) -> str: ...

    def __call__(self, seed: int, index: int) -> Task | Miss: ...
