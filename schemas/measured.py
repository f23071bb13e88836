"""What is measured of a training run: one record a figure, one an attempt that is over, and one a kind of ending."""

from enum import StrEnum

from pydantic import Field

from schemas.base import Record


class Metric(Record):
    """One figure of one step. `seconds` are of training since the run began, all resumptions together.

    `population` says what `value` is of; it is absent where it was no finite number.
    """

    step: int
    seconds: float
    name: str
    population: str
    value: float | None


class AttemptOutcome(StrEnum):
    """What an attempt came to. Each attempt has exactly one."""

    RIGHT = "right"
    NEAR_MISS = "near_miss"
    """Answered with an entity that fits every clue but one."""
    WRONG_ENTITY = "wrong_entity"
    WRONG_VALUE = "wrong_value"
    """Another number, date, text or program than the right one, of a question that has it read up."""
    ARITHMETIC = "arithmetic"
    """Computed wrong, with everything in hand."""
    GAVE_UP = "gave_up"
    """Answered that it does not know, or said nothing that is an answer."""
    REPEATED = "repeated"
    TURN_LIMIT = "turn_limit"
    FORMAT = "format"
    TRUNCATED = "truncated"
    """A turn was longer than it may be."""
    OVERFLOW = "overflow"
    """The window was full."""
    TOOL_ERROR = "tool_error"
    INFRA = "infra"
    """The model or its server broke, or time ran out."""
    UNSURE = "unsure"
    """The grader could not tell."""


CONTENT = frozenset(
    {
        AttemptOutcome.NEAR_MISS,
        AttemptOutcome.WRONG_ENTITY,
        AttemptOutcome.WRONG_VALUE,
        AttemptOutcome.ARITHMETIC,
        AttemptOutcome.GAVE_UP,
        AttemptOutcome.REPEATED,
        AttemptOutcome.TURN_LIMIT,
    }
)
"""Failures at what was asked. With `right` they are the attempts that say how hard a question is."""


class Diagnosis(Record):
    """The outcome of one attempt, and what in it shows why."""

    outcome: AttemptOutcome
    named: str = ""
    """The runner-up that it answered with, where it is one."""
    clues: int = Field(default=0, ge=0)
    """Of the question, top-level ones."""
    clues_met: int | None = Field(default=None, ge=0)
    """Of those, how many the entity it answered with provably fits; absent where that is no known entity."""
    pages: int = Field(default=0, ge=0)
    """That the evidence stands on."""
    unread: tuple[str, ...] = ()
    """Of those, what no tool ever showed."""
    calls: dict[str, int] = {}
    """By tool."""
    uncalled: tuple[str, ...] = ()
    """Tools that the task offers and it never called."""
    failed_at: int | None = Field(default=None, ge=1)
    """The turn in which it first went wrong: that was no step or whose call was answered by an error, else its last. Of one
    that is right, or has no turn: absent."""


class Failure(Record):
    """How many attempts of one stratum, in one pass over the tasks and at one version of the weights, ended in one way.

    Numbers are means over them.
    """

    stratum: str
    epoch: int = Field(ge=0)
    """Passes over the tasks before this one: attempts of the first, 0, are at tasks that were never trained on."""
    version: str
    """Of the weights; empty where no turn was sampled."""
    outcome: AttemptOutcome
    n: int = Field(gt=0)
    read: int = Field(ge=0)
    """Of those, attempts that some tool showed every page of the evidence."""
    turns: float
    tokens: float
    """Prompts and completions of all turns."""
    seconds: float
    failed_at: float | None
    clues_met: float | None
    """Share of the clues that the answer fits, of attempts that answered with a known entity."""
    unread: float
    """Share of the evidence's pages that no tool showed; 0 where there are none."""
    calls: dict[str, float]
    """By tool."""
    uncalled: dict[str, float]
    """Share of attempts that never called a tool which they were offered, by tool."""
    pass_a: float
    pass_b: float
    """The pass rate of the stratum in this pass at this version is `Beta(pass_a, pass_b)`: the same in each row of it."""
