"""What a filter is, what it may look at, and how it writes its verdict."""

from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from pydantic import JsonValue

from pipeline.apart import HeldOut
from pipeline.census import Census
from pipeline.corpora.world import World
from pipeline.sampling import Sampler
from pipeline.tables import Tables
from schemas.certificate import Certificate, Outcome
from schemas.config import SequentialTest
from schemas.errors import TouchstoneError
from schemas.task import Task

T = TypeVar("T")


class FilterError(TouchstoneError):
    """A filter that cannot run at all, unlike one that breaks on a task."""


@dataclass(frozen=True)
class Resources:
    """What filters may look at. A run gives what its family's funnel needs."""

    candidates: Census | None = None
    """Of every candidate of the run, not of a batch: it decides who came first."""
    held_out: HeldOut = field(default_factory=HeldOut)
    world: World | None = None
    closed_book: Sampler | None = None
    """The solver without tools (`closed_book`) or without reasoning (`no_reasoning`)."""
    triviality: SequentialTest = field(default_factory=SequentialTest)

    @cached_property
    def tables(self) -> Tables:
        """The world's facts as tables, made once."""
        return Tables(need(self.world, "world"))


@dataclass(frozen=True, slots=True)
class Filter:
    """A registered filter. `judge` takes what it needs from the resources; one that waits for a model is a coroutine."""

    name: str
    version: str
    judge: Callable[[Task, Resources], Certificate] | Callable[[Task, Resources], Coroutine[None, None, Certificate]]


@dataclass(frozen=True, slots=True)
class Certifier:
    """Writes the certificates of one filter on one task. Keywords that are no field of a certificate go to its `detail`."""

    task: Task
    filter: str
    version: str

    def keep(self, **found: JsonValue) -> Certificate:
        return self.write(Outcome.KEEP, "", **found)

    def reject(self, reason: str, /, **found: JsonValue) -> Certificate:
        return self.write(Outcome.REJECT, reason, **found)

    def undecided(self, reason: str, /, **found: JsonValue) -> Certificate:
        return self.write(Outcome.UNDECIDED, reason, **found)

    def failed(self, error: Exception) -> Certificate:
        return self.write(Outcome.FAILED, f"{type(error).__name__}: {error}")

    def write(self, outcome: Outcome, reason: str, /, **found: JsonValue) -> Certificate:
        measured = {key: value for key, value in found.items() if key in _MEASURED}
        detail = {key: value for key, value in found.items() if key not in _MEASURED}
        return Certificate.model_validate(
            {
                "task_id": self.task.task_id,
                "filter": self.filter,
                "version": self.version,
                "outcome": outcome,
                "reason": reason,
                "detail": detail,
                **measured,
            }
        )


_MEASURED = {"score", "interval", "n", "cost", "calls"}


def need(resource: T | None, name: str) -> T:
    """The resource, or `FilterError` where the run did not give it."""
    if resource is None:
        raise FilterError(f"{name}: a filter of this funnel needs it and the run has none; give it in Resources")
    return resource


def listed(items: Iterable[str]) -> list[JsonValue]:
    """Strings as a JSON list, sorted."""
    found: list[JsonValue] = []
    found += sorted(items)
    return found
