"""How good a policy is on held-out tasks: counts that close, and rates with their intervals."""

from collections.abc import Iterable
from typing import Self

from pydantic import Field, model_validator

from schemas.base import Record
from schemas.episode import Limits, ToolOptions
from schemas.task import Family
from schemas.training import EvaluationOptions


class EvaluateConfig(EvaluationOptions):
    """One evaluation of a policy on a release's split or on a user's file of a published benchmark."""

    temperature: float = Field(default=1.0, gt=0, le=2)
    """Of the sampled attempts. At 0 they would all be the same; the greedy attempt is there without asking."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    concurrency: int = Field(default=128, ge=1, le=4096)
    """Attempts in flight."""
    seconds: float = Field(default=600.0, gt=0)
    """One attempt ends here, with `time_budget`."""
    family: Family = "hard_search"
    """Of a release."""
    offered: tuple[str, ...] = ("search", "open")
    """Of a benchmark file: tools that its tasks are given."""
    world: str = "atlas"
    """Of a benchmark file: what search and browser look in, unless `tools.pages` names something else."""
    limits: Limits | None = None
    """What an attempt may spend; what is not set here is what the policy was built with."""
    tools: ToolOptions = ToolOptions()


class Counts(Record):
    """What became of attempts. `undecided` (the grader could not tell) and `lost` (the model or a tool broke, or time ran
    out) say nothing about the policy, and no rate counts them."""

    right: int = 0
    wrong: int = 0
    """Answered wrong, or not at all."""
    undecided: int = 0
    lost: int = 0
    attempts: int

    @property
    def decided(self) -> int:
        return self.right + self.wrong

    @model_validator(mode="after")
    def _closes(self) -> Self:
        if (found := self.right + self.wrong + self.undecided + self.lost) != self.attempts:
            raise ValueError(
                f"attempts={self.attempts}: the parts add up to {found}; each attempt ends in exactly one way"
            )
        return self


class Estimate(Record):
    """A mean over `tasks` with its 95 % interval."""

    value: float
    low: float
    high: float
    tasks: int


class StratumScore(Record):
    counts: Counts
    rate: Estimate | None
    """Pass@1; absent where no attempt was decided."""


class Block(Record):
    """All attempts that were sampled in one way."""

    each: int
    """Attempts at a task."""
    counts: Counts
    rate: Estimate | None
    """Avg@k: the mean over tasks of the share of their attempts that are right, which estimates pass@1."""
    pass_at: dict[int, Estimate]
    """Pass@k by k, over the tasks with at least k decided attempts."""
    strata: dict[str, StratumScore]
    by_task: dict[str, Counts]
    turns_right: float | None
    """Mean turns of right attempts."""
    format_errors: float | None
    """Share of turns that were no step."""
    stops: dict[str, int]

    @model_validator(mode="after")
    def _closes(self) -> Self:
        for parts, name in ((self.by_task.values(), "tasks"), ([s.counts for s in self.strata.values()], "strata")):
            if total(parts) != self.counts:
                raise ValueError(f"counts={self.counts}: those of {name} add up to {total(parts)}")
        if (stops := sum(self.stops.values())) != self.counts.attempts:
            raise ValueError(f"attempts={self.counts.attempts}: the stops add up to {stops}")
        return self


class Evaluation(Record):
    """A policy on a set of tasks. `rows` of the file or split are `tasks` and those that were `skipped`, by reason."""

    policy: str
    """Model and revision."""
    on: str
    """Release and split, or benchmark and content hash of its file."""
    rows: int
    tasks: int
    skipped: dict[str, int] = {}
    seed: int
    sampled: Block
    greedy: Block

    @model_validator(mode="after")
    def _closes(self) -> Self:
        if self.rows != (found := self.tasks + sum(self.skipped.values())):
            raise ValueError(f"rows={self.rows}: tasks and skipped ones add up to {found}")
        return self


class Comparison(Record):
    """How far one evaluation is above another, on the tasks that both have: differences, with intervals, paired by task."""

    before: str
    after: str
    sampled: Estimate | None
    greedy: Estimate | None


def total(counts: Iterable[Counts]) -> Counts:
    fields = Counts.model_fields
    found = [one.model_dump() for one in counts]
    return Counts(**{name: sum(one[name] for one in found) for name in fields})
