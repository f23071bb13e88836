"""What a release says of itself, and the counts a curation run closes."""

from pydantic import Field, JsonValue, model_validator

from schemas.base import Record


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


class Manifest(Record):
    """Written last: a directory without it is no release. Rows of a config and split are exactly those of its shards.

    `version` hashes everything else, so equal content is the same version wherever it was made.
    """

    version: str
    schema_version: str
    shards: tuple[Shard, ...]
    ledgers: tuple[Shard, ...] = ()
    """Certificates, rejects and attempts, under `_touchstone/`."""
    worlds: dict[str, str] = {}
    """Content hash by world name."""
    generators: dict[str, str] = {}
    solvers: dict[str, str] = {}
    """Model revision by role."""
    code_revision: str
    parent: str | None = None
    funnel: dict[str, tuple[FunnelStep, ...]]
    configs: dict[str, dict[str, JsonValue]]
    """The run configuration of each family."""
