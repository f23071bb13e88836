"""The one config tree of curation. Frozen, checked once, every field read somewhere."""

from collections import Counter
from typing import Any

from pydantic import Field, ValidationError, model_validator

from schemas.base import Options
from schemas.episode import Limits, ToolOptions
from schemas.task import Family


class HardSearchConfig(Options):
    """The hard-search sampler."""

    types: tuple[str, ...] = ()
    """Answer types to ask for; empty asks for every type that has enough relations."""
    min_clues: int = Field(default=3, ge=2, le=8)
    max_clues: int = Field(default=5, ge=2, le=8)
    """Top-level clues of a question, both ends included."""
    max_depth: int = Field(default=2, ge=1, le=4)
    """1 names every entity in a clue; 2 lets a clue describe its entity by clues of its own."""

    @model_validator(mode="after")
    def _clue_range(self) -> "HardSearchConfig":
        if self.min_clues > self.max_clues:
            raise ValueError(f"min_clues={self.min_clues} is above max_clues={self.max_clues}")
        return self


class MathConfig(Options):
    """The math generator."""

    templates: tuple[str, ...] = ()
    """Templates to draw from; empty draws from every admitted one."""


class KeepBand(Options):
    """A task is kept when its number of correct samples lies in `low..high` of `n`."""

    n: int = Field(default=8, ge=1, le=64)
    low: int = Field(default=1, ge=0)
    high: int = Field(default=7, ge=0)

    @model_validator(mode="after")
    def _inside_n(self) -> "KeepBand":
        if not self.low <= self.high <= self.n:
            raise ValueError(f"keep band {self.low}..{self.high} of {self.n}: needs low <= high <= n")
        return self


class SequentialTest(Options):
    """Wald's test of H0 `p <= p0` against H1 `p >= p1` (error rates `alpha`, `beta`), cut off after `limit` samples."""

    p0: float = Field(default=0.05, gt=0, lt=1)
    p1: float = Field(default=0.30, gt=0, lt=1)
    alpha: float = Field(default=0.05, gt=0, lt=0.5)
    beta: float = Field(default=0.05, gt=0, lt=0.5)
    limit: int = Field(default=32, ge=1, le=10**4)

    @model_validator(mode="after")
    def _hypotheses_apart(self) -> "SequentialTest":
        if self.p0 >= self.p1:
            raise ValueError(f"p0={self.p0} is not below p1={self.p1}: the test cannot tell them apart")
        return self


class Served(Options):
    """The model behind an arm: a recipe this project can build and serve, or the name it has at `url`."""

    model: str
    url: str | None = None
    """An OpenAI-compatible server, `http://host:port/v1`; absent, the recipe is served here."""
    temperature: float = Field(default=1.0, gt=0, le=2)
    """Of every sample; samples at 0 would all be the same."""


MEMORY = Served(model="memory", temperature=0.5)
"""What a small model knows by heart. At temperature 1 it rambles, and would look as if it knew nothing."""


_READ_BY: dict[str, Family] = {
    "hard_search": "hard_search",
    "world": "hard_search",
    "tools": "hard_search",
    "math": "math",
}
"""Settings of one family. At their defaults they may stand in another's config, as in one that is written out whole."""


LATEST, LATEST_IF_ANY = "latest", "latest-if-any"
FOLLOWED = "p-"
"""How the id of a plan begins."""


class Aim(Options):
    """A stratum to make candidates of."""

    stratum: str
    weight: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    """Its share is this over the sum of all."""
    level: float = Field(default=0.0, ge=-1, le=1)
    """How hard of their kind: 0 takes candidates as they come, 1 the hardest of four, -1 the easiest."""


class CurateConfig(Options):
    """One curation run. Equal configs make equal candidates."""

    family: Family
    candidates: int | None = Field(default=None, ge=1, le=10**9)
    """Candidates to generate; 300 where neither this nor `accept` is given."""
    accept: int | None = Field(default=None, ge=1, le=10**9)
    """Go on, batch by batch, until this many tasks are kept; not one more is published."""
    budget: int | None = Field(default=None, ge=1)
    """Go on, batch by batch, while models have spent fewer tokens than this."""
    tries: int = Field(default=100, ge=1, le=10**6)
    """With `accept`: give up after this many candidates for each task asked for."""
    seed: int = Field(default=0, ge=0, lt=2**63)
    world: str = "atlas"
    aims: tuple[Aim, ...] = ()
    """Strata to make candidates of; empty leaves the mix to the family."""
    plan: str | None = Field(default=None, min_length=1)
    """Whose shares and levels the aims are: a plan's file or id, `latest`, `latest-if-any` (the family's own mix before there is
    one), or `uniform`, all strata alike. A run writes down the id of the plan that it follows."""
    held_out: str | None = None
    """A release whose tasks stay apart: nothing that asks the same, or for the same entity, is kept."""
    earlier: str | None = None
    """A release whose tasks that were too hard are tried again before new ones, and some of those that were too easy."""
    batch: int = Field(default=200, ge=1, le=10**6)
    """Candidates a batch stage handles at once."""
    hard_search: HardSearchConfig = HardSearchConfig()
    math: MathConfig = MathConfig()
    triviality: SequentialTest = SequentialTest()
    keep: KeepBand = KeepBand()
    solver: Served | None = None
    """Pass@N solver; absent, `starter` for hard search and `memory` for math."""
    closed_book: Served = MEMORY
    limits: Limits | None = None
    """What an attempt with tools may spend; what is not set here is what the solver's model folder says."""
    tools: ToolOptions = ToolOptions()
    """Where the tools of such an attempt run."""
    test_share: float = Field(default=0.1, ge=0, le=1)
    """Share of kept tasks that go to the `test` split; 1 makes a set to be held out."""
    concurrency: int = Field(default=128, ge=1, le=4096)
    """Attempts in flight against a model server."""

    @model_validator(mode="before")
    @classmethod
    def _default_candidates(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("candidates") is None and given.get("accept") is None:
            return {**given, "candidates": 300}
        return given

    @model_validator(mode="after")
    def _one_goal(self) -> "CurateConfig":
        if self.candidates is not None and self.accept is not None:
            raise ValueError(f"candidates={self.candidates} and accept={self.accept}: exclude each other; give one")
        return self

    @model_validator(mode="after")
    def _aims_at_something(self) -> "CurateConfig":
        if self.aims and not sum(aim.weight for aim in self.aims):
            raise ValueError("aims: all weights are 0; give one of them more")
        if twice := [name for name, n in Counter(aim.stratum for aim in self.aims).items() if n > 1]:
            raise ValueError(f"aims: name {twice[0]} twice; give it one weight")
        return self

    @model_validator(mode="after")
    def _only_settings_of_the_family(self) -> "CurateConfig":
        for name, family in _READ_BY.items():
            if family != self.family and getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name}: the family {self.family} does not read it; leave it out, or curate {family}")
        return self

    @model_validator(mode="after")
    def _aims_from_one_place(self) -> "CurateConfig":
        if self.aims and self.plan is not None and not self.plan.startswith(FOLLOWED):
            raise ValueError(f"plan={self.plan}: the aims are given already; leave out the one or the others")
        return self

    @property
    def by_batch(self) -> bool:
        """Whether batches go through all stages one after another, because how many there will be is not known before."""
        return self.accept is not None or self.budget is not None

    @property
    def most_candidates(self) -> int:
        """Candidates that are generated at most."""
        return self.candidates if self.candidates is not None else (self.accept or 0) * self.tries

    @property
    def models(self) -> tuple[Served, Served]:
        """Every model the run asks."""
        return self.closed_book, self.resolved_solver()

    def resolved_solver(self) -> Served:
        """The solver of this run."""
        return self.solver or (Served(model="starter") if self.family == "hard_search" else MEMORY)


def describe_errors(error: ValidationError, separator: str = "\n", most: int = 5) -> str:
    """Pydantic's errors as house errors, `field=value: reason`; values and lists of errors are cut where they get long."""
    lines = []
    for item in error.errors()[:most]:
        where = ".".join(str(part) for part in item["loc"]) or "config"
        given = "" if item["type"] in {"missing", "value_error", "json_invalid"} else f"={_shortened(item['input'])}"
        lines.append(f"{where}{given}: {_REASONS.get(item['type']) or item['msg'].removeprefix('Value error, ')}")
    if (more := error.error_count() - most) > 0:
        lines.append(f"and {more} more")
    return separator.join(lines)


_REASONS = {
    "extra_forbidden": "is no known key; correct it or leave it out",
    "model_type": "must be an object of settings",
    "model_attributes_type": "must be an object of settings",
}


def _shortened(value: object, most: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 3]}..."
