"""What a release says of itself, and the counts a curation run closes."""

from enum import StrEnum

from pydantic import Field, JsonValue, model_validator

from schemas.base import Record
from schemas.world import Source


class FunnelStep(Record):
    """One filter's row of the funnel. `reasons` breaks down everything that was not kept."""

    filter: str
    seen: int
    kept: int
    rejected: int
    failed: int
    undecided: int
    cost: int = 0
    """Model tokens spent here."""
    reasons: dict[str, int] = {}

    @model_validator(mode="after")
    def _closes(self) -> "FunnelStep":
        if self.seen != self.kept + self.rejected + self.failed + self.undecided:
            raise ValueError(
                f"funnel step {self.filter}: seen={self.seen} but kept+rejected+failed+undecided="
                f"{self.kept}+{self.rejected}+{self.failed}+{self.undecided}"
            )
        return self


class Shard(Record):
    """One Parquet file of a release; `path` is relative to it."""

    path: str
    config: str
    split: str
    rows: int = Field(gt=0)
    bytes: int
    sha256: str


class Ending(StrEnum):
    """Why curation came to its end."""

    CANDIDATES = "candidates"
    """All were made."""
    ACCEPTED = "accepted"
    """As many tasks were kept as were asked for."""
    BUDGET = "budget"
    """Its tokens were spent."""
    STOPPED = "stopped"
    """Somebody stopped it, and published what there was."""


class StratumCounts(Record):
    """What became of a stratum: new tasks `generated` and `kept`, and of the kept ones `correct` of `samples` attempts."""

    generated: int = 0
    missed: int = 0
    """Candidates that were to be of this stratum and became no task."""
    kept: int = 0
    samples: int = 0
    correct: int = 0
    too_hard: int = 0
    """New tasks that Pass@N found to be so; `too_easy` likewise."""
    too_easy: int = 0
    judged: int = 0
    """New tasks that a filter of correctness saw."""
    wrong: int = 0
    """Of those, what one found wrong."""
    tokens: int = 0
    """Of models, spent on new tasks."""
    carried: int = 0
    """Tasks of an earlier release that were tried again; in no other count here."""
    revived: int = 0
    """Of those, kept this time."""

    @property
    def asked(self) -> int:
        """New candidates."""
        return self.generated + self.missed


class Manifest(Record):
    """Written last: a directory without it is no release. Rows of a config and split are exactly those of its shards.

    Equal content has an equal `content` wherever it was made, and is the same version unless someone chose a name.
    """

    version: str
    """`content`, or a chosen name."""
    content: str
    """`r-` and a hash of everything here but `version` and itself."""
    card: str
    """SHA-256 of README.md."""
    schema_version: str
    shards: tuple[Shard, ...]
    ledgers: tuple[Shard, ...] = ()
    """Certificates, rejects and attempts, under `_touchstone/`."""
    worlds: dict[str, str] = {}
    """Content hash by world name."""
    sources: tuple[Source, ...] = ()
    """Where the worlds' facts come from, with the licences that a release passes on."""
    generators: dict[str, str] = {}
    solvers: dict[str, str] = {}
    """Model revision by role."""
    code_revision: str
    parent: str | None = None
    funnel: dict[str, tuple[FunnelStep, ...]]
    """By family, from the first candidate to the last kept row."""
    endings: dict[str, Ending] = {}
    """By family."""
    strata: dict[str, StratumCounts] = {}
    guess: dict[str, float] = {}
    """Share of a `config/split` that one always gets right who always gives its most frequent answer."""
    configs: dict[str, dict[str, JsonValue]]
    """The run configuration of each family."""
