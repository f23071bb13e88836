"""The formal side of a question: a tree of clues over typed facts."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from schemas.base import Record, canonical_json, content_hash


class EntityRef(Record):
    """Exactly this entity."""

    kind: Literal["entity"] = "entity"
    entity: str


class Band(Record):
    """A closed interval of a number, in the relation's unit. An absent end is open."""

    kind: Literal["band"] = "band"
    low: float | None = None
    high: float | None = None

    @model_validator(mode="after")
    def _is_an_interval(self) -> "Band":
        if self.low is None and self.high is None:
            raise ValueError("band without ends: it excludes nothing; give low, high or both")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"band {self.low}..{self.high}: low is above high")
        return self

    def holds(self, value: float) -> bool:
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


class Query(Record):
    """Every entity of `type` that satisfies all `clues`. Nested, it stands for some member of that set."""

    kind: Literal["query"] = "query"
    type: str
    clues: "tuple[Clue, ...]"

    @property
    def signature(self) -> str:
        """A hash that does not depend on the order of clues: two questions with one signature ask the same."""
        return content_hash(_sorted(self.model_dump(mode="json")))

    @property
    def depth(self) -> int:
        """1 for flat clues, one more for each level of description inside."""
        return 1 + max((c.target.depth for c in self.clues if isinstance(c.target, Query)), default=0)

    @property
    def hops(self) -> int:
        """Number of facts that have to be found: one a clue, nested clues included."""
        return sum(1 + (c.target.hops if isinstance(c.target, Query) else 0) for c in self.clues)


class Clue(Record):
    """One constraint on an entity: its `relation` leads to `target`, or (`inverse`) `target`'s relation leads to it."""

    relation: str
    inverse: bool = False
    target: Annotated[EntityRef | Band | Query, Field(discriminator="kind")]


def named(query: Query) -> Iterator[str]:
    """The entities that the clues name, those of inner queries included."""
    for clue in query.clues:
        match clue.target:
            case EntityRef(entity=entity):
                yield entity
            case Query() as inner:
                yield from named(inner)


def _sorted(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _sorted(value) for key, value in node.items()}
    if isinstance(node, list):
        return sorted((_sorted(item) for item in node), key=canonical_json)
    return node


class Problem(Record):
    """The formal side of a computed question: a named template and the parameters that were drawn for it."""

    kind: Literal["problem"] = "problem"
    template: str
    parameters: dict[str, Any]

    @property
    def signature(self) -> str:
        return content_hash(self.model_dump(mode="json"))
