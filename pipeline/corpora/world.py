"""A frozen world of typed facts, and the two readings of a query that make a question certain.

Three-valued: a fact is known, denied, or unknown. `certain(q)` holds the entities that known facts prove; `possible(q)`
those that no known fact refutes. A question is unique only where both are the same single entity, so that a missing fact
never makes an answer look unique.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path

from infra.search import SearchIndex
from schemas.base import content_hash
from schemas.query import Band, Clue, EntityRef, Query
from schemas.world import Document, Entity, Fact, Object, Relation, Source


class World:
    """Entities with pages, facts with sources, and relation declarations. Immutable; equal content has an equal `hash`."""

    def __init__(
        self,
        name: str,
        *,
        entities: Iterable[Entity] = (),
        relations: Iterable[Relation] = (),
        facts: Iterable[Fact] = (),
        documents: Iterable[Document],
        sources: Iterable[Source] = (),
        report: Mapping[str, int | float] | None = None,
        gaps: Iterable[tuple[str, str]] = (),
        index: SearchIndex | None = None,
        folder: Path | None = None,
    ) -> None:
        self.name = name
        self.folder = folder
        """Where the world is stored; `None` for one in memory."""
        self.entities = {e.id: e for e in entities}
        self.relations = {r.name: r for r in relations}
        self.facts = tuple(facts)
        self.documents = {d.id: d for d in documents}
        self.sources = tuple(sources)
        self.report = dict(report or {})
        """Counts of the build: join coverage, facts dropped because sources disagree."""
        self.gaps = frozenset(gaps)
        """(subject, relation) pairs of complete relations whose objects are not all known, such as disputed borders."""
        self._index = index
        self._facts_of: dict[tuple[str, str], list[Fact]] = defaultdict(list)
        self._subjects: dict[tuple[str, Object], set[str]] = defaultdict(set)
        for fact in self.facts:
            self._facts_of[fact.subject, fact.relation].append(fact)
            self._subjects[fact.relation, fact.object].add(fact.subject)
        self._of_type: dict[str, list[str]] = defaultdict(list)
        for entity in self.entities.values():
            self._of_type[entity.type].append(entity.id)
        self._values: dict[str, list[tuple[float, str]]] = defaultdict(list)
        for fact in self.facts:
            if not isinstance(fact.object, str):
                self._values[fact.relation].append((fact.object, fact.subject))

    @cached_property
    def index(self) -> SearchIndex:
        """Full-text index over every document; made in memory where the world was not loaded with one."""
        return self._index or SearchIndex.build(self.documents.values())

    @cached_property
    def hash(self) -> str:
        """Content hash of pages, facts, relations, sources and gaps: the identity that lineage and releases record."""
        return content_hash(
            [
                sorted((d.id, d.hash) for d in self.documents.values()),
                sorted((f.subject, f.relation, str(f.object), f.source) for f in self.facts),
                [r.model_dump(mode="json") for r in self.relations.values()],
                [s.model_dump(mode="json") for s in self.sources],
                sorted(self.gaps),
            ]
        )

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(self._of_type)

    def of_type(self, type: str) -> tuple[str, ...]:
        """Ids of every entity of the type, in build order; empty for an unknown type."""
        return tuple(self._of_type.get(type, ()))

    def facts_of(self, subject: str, relation: str) -> tuple[Fact, ...]:
        return tuple(self._facts_of.get((subject, relation), ()))

    def objects(self, subject: str, relation: str) -> frozenset[Object]:
        return frozenset(f.object for f in self._facts_of.get((subject, relation), ()))

    def subjects(self, relation: str, object: Object) -> frozenset[str]:
        return frozenset(self._subjects.get((relation, object), ()))

    def closed(self, subject: str, relation: str) -> bool:
        """Whether no object beyond the known ones can exist.

        So it is where the relation is functional with its value known, or complete and the subject is no gap in it.
        """
        declared = self.relations[relation]
        if declared.functional and (subject, relation) in self._facts_of:
            return True
        return declared.complete and (subject, relation) not in self.gaps

    def certain(self, query: Query) -> frozenset[str]:
        """Entities of the type that known facts prove to satisfy every clue."""
        found = frozenset(self._of_type.get(query.type, ()))
        for clue in query.clues:
            found &= self.proved(clue)
        return found

    def possible(self, query: Query) -> frozenset[str]:
        """Entities of the type that no known fact refutes. A superset of `certain`."""
        found = frozenset(self._of_type.get(query.type, ()))
        for clue in query.clues:
            found = self.unrefuted(clue, found)
        return found

    def proved(self, clue: Clue) -> frozenset[str]:
        """Every entity, of whatever type, for which known facts prove the clue."""
        match clue.target:
            case Band() as band:
                return frozenset(s for value, s in self._values[clue.relation] if band.holds(value))
            case EntityRef(entity=entity):
                ends = frozenset({entity})
            case Query() as inner:
                ends = self.certain(inner)
        if clue.inverse:
            return frozenset(o for end in ends for o in self.objects(end, clue.relation) if isinstance(o, str))
        return frozenset(s for end in ends for s in self.subjects(clue.relation, end))

    def unrefuted(self, clue: Clue, among: frozenset[str]) -> frozenset[str]:
        """Those of `among` for which no known fact refutes the clue."""
        match clue.target:
            case Band() as band:
                return frozenset(
                    e
                    for e in among
                    if not self.closed(e, clue.relation)
                    or any(band.holds(o) for o in self.objects(e, clue.relation) if not isinstance(o, str))
                )
            case EntityRef(entity=entity):
                ends = frozenset({entity})
            case Query() as inner:
                ends = self.possible(inner)
        if clue.inverse:
            open_ends = any(not self.closed(end, clue.relation) for end in ends)
            return (
                among if open_ends else among & frozenset(o for end in ends for o in self.objects(end, clue.relation))
            )
        return frozenset(e for e in among if not self.closed(e, clue.relation) or ends & self.objects(e, clue.relation))

    def runners_up(self, query: Query) -> dict[str, Clue]:
        """Entities that provably satisfy all clues but one, each with the clue that rules it out."""
        proved = [self.proved(clue) for clue in query.clues]
        everything = frozenset(self._of_type.get(query.type, ()))
        found: dict[str, Clue] = {}
        for i, clue in enumerate(query.clues):
            rest = everything.intersection(*(p for j, p in enumerate(proved) if j != i))
            for entity in sorted(rest - proved[i]):
                found.setdefault(entity, clue)
        return found
