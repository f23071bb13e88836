"""What is believed of each stratum, and what that means for the next round: a document that people read, edit and keep."""

from collections import Counter

from pydantic import Field, model_validator

from schemas.base import Options, Record, content_hash
from schemas.task import Family


class SteeringOptions(Options):
    """How a plan is drawn."""

    decay: float = Field(default=0.8, gt=0, le=1)
    """What evidence of a round still counts one round later."""
    floor: float = Field(default=0.1, ge=0, lt=1)
    """Share of the budget that goes to all strata alike, so that none is forgotten."""
    cap: float = Field(default=0.3, gt=0, le=1)
    """Share that a stratum gets at most; where there are fewer strata than it takes to spend all, an equal part."""
    target: float = Field(default=0.5, gt=0, lt=1)
    """The pass rate, over all tasks that were measured, that levels step towards."""
    step: float = Field(default=0.5, ge=0, le=1)
    """Most that a level moves in a round."""
    draws: int = Field(default=400, ge=1, le=100_000)
    """Thompson draws that shares are the mean of."""
    seed: int = Field(default=0, ge=0, lt=2**31)


_MANY = 1e15
"""More than anybody counts, and few enough that sums stay numbers."""
_CLOSE = 1e-9


class Tally(Record):
    """How often something was so, and was not; evidence of earlier rounds counts in part."""

    yes: float = Field(default=0.0, ge=0, le=_MANY)
    no: float = Field(default=0.0, ge=0, le=_MANY)

    @property
    def n(self) -> float:
        return self.yes + self.no


class Line(Record):
    """What a plan says of one stratum."""

    stratum: str
    share: float = Field(ge=0, le=_MANY)
    """Of the next round's budget, over the sum of all shares; budgets are counted in tokens of models."""
    was: float = 0.0
    """Its share in the round before."""
    pin: float | None = Field(default=None, ge=0, le=1)
    """What a user wants its share to be, in this plan and in those drawn after it; 0 is a veto."""
    level: float = Field(default=0.0, ge=-1, le=1)
    """How hard its candidates are chosen to be: 0 as they come, 1 the hardest of several, -1 the easiest."""
    kept: Tally = Tally()
    """Candidates asked for: kept, or not."""
    right: Tally = Tally()
    """Attempts at kept tasks: right, or failed at what was asked."""
    solved: Tally = Tally()
    """Tasks that Pass@N measured, kept or not: what of them was solved, each by the share of its attempts, and what was not."""
    sound: Tally = Tally()
    """Tasks that filters of correctness saw: passed, or found wrong."""
    read: Tally = Tally()
    """Attempts that were shown all of the evidence: right, or failed at what was asked."""
    tokens: float = Field(default=0.0, ge=0, le=_MANY)
    """Spent on the candidates of `kept`."""
    why: str = ""


class Plan(Record):
    """Where the next round's budget goes. It is for one family of one generator on one world."""

    family: Family
    generator: str
    """Its version."""
    world: str = ""
    """Content hash, empty for a family that asks about none."""
    parent: str | None = Field(default=None, pattern=r"^p-[0-9a-f]{12}$")
    """Id of the plan that this one goes on from."""
    release: str
    """Version of the release that it was drawn from."""
    run: str | None = None
    """The training run whose failures it was drawn from."""
    group: int = Field(ge=2)
    """Attempts of a group in training: a task teaches something where not all of them end alike."""
    lines: tuple[Line, ...] = Field(min_length=1)
    advice: dict[str, int] = {}
    """Attempts that failed at something other than what was asked, by outcome: no matter of content, so nothing moves."""

    @property
    def id(self) -> str:
        """`p-` and a hash of the content: a plan that somebody edited is another one."""
        return f"p-{content_hash(self, length=12)}"

    @property
    def shares(self) -> dict[str, float]:
        """By stratum, adding up to 1: pins as they are, and the other shares of what pins leave."""
        pinned = {line.stratum: line.pin for line in self.lines if line.pin is not None}
        free = sum(line.share for line in self.lines if line.stratum not in pinned)
        left = max(0.0, 1 - sum(pinned.values())) / free if free else 0.0
        found = {line.stratum: pinned.get(line.stratum, line.share * left) for line in self.lines}
        total = sum(found.values())
        return {stratum: share / total for stratum, share in found.items()}

    @model_validator(mode="after")
    def _can_be_followed(self) -> "Plan":
        if twice := [name for name, n in Counter(line.stratum for line in self.lines).items() if n > 1]:
            raise ValueError(f"lines: {twice[0]} is there twice; give it one line")
        if all(line.pin == 0 for line in self.lines):
            raise ValueError("lines: all are vetoed, by a pin of 0; leave one of them free")
        if (pinned := sum(line.pin or 0.0 for line in self.lines)) > 1 + _CLOSE:
            raise ValueError(f"lines: the pins add up to {pinned:g}; they are shares of one budget")
        if pinned < 1 - _CLOSE and sum(line.share for line in self.lines if line.pin is None) < _CLOSE:
            raise ValueError(
                f"lines: the shares of what pins leave, {1 - pinned:g}, add up to 0; give one of them more"
            )
        return self
