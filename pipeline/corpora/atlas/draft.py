"""What a world is compiled in: entities under keys, facts between keys, gaps, and the counts of every join."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import metadata

from pipeline.corpora.pages import render
from pipeline.corpora.world import World
from schemas.errors import TouchstoneError
from schemas.world import Entity, Fact, Object, Relation, Source

COVERAGE_FLOOR = 0.95


class CoverageError(TouchstoneError):
    """A join of two sources left too much unmatched to trust what matched."""


class Draft:
    """Collects a world. Keys are "<kind>:<source id>"; ids and titles are given when it is finished.

    A relation's grammar and types are declared up front. An entity may offer several titles, plainest first.
    """

    def __init__(self, name: str, relations: Iterable[Relation], core: Iterable[str]) -> None:
        self.name = name
        self.relations = {r.name: r for r in relations}
        self.core = frozenset(core)
        self.report: Counter[str] = Counter()
        self.sources: list[Source] = []
        self._entities: dict[str, tuple[str, str, tuple[str, ...], tuple[str, ...]]] = {}
        self._facts: dict[tuple[str, str, Object], int] = {}
        self._gaps: set[tuple[str, str]] = set()

    def source(self, package: str, licence: str, as_of: str | None = None) -> int:
        """The index of an installed package among the world's sources."""
        found = Source(package=package, version=_version(package), licence=licence, as_of=as_of)
        if found not in self.sources:
            self.sources.append(found)
        return self.sources.index(found)

    def entity(
        self, key: str, type: str, title: str, *others: str, name: str | None = None, aliases: Iterable[str] = ()
    ) -> str:
        """Declare an entity once; `others` are longer titles for when the plain one is taken. Gives the key back."""
        self._entities.setdefault(key, (type, name or title, (title, *others), tuple(dict.fromkeys(aliases))))
        return key

    def has(self, key: str) -> bool:
        return key in self._entities

    def title(self, key: str) -> str:
        """The plainest title of a declared entity."""
        return self._entities[key][2][0]

    def fact(self, subject: str, relation: str, object: Object, source: int) -> None:
        """Add a fact; a repeated one keeps its first source."""
        declared = self.relations[relation]
        assert isinstance(object, str) == (declared.object_type is not None), (subject, relation, object)
        assert self._entities[subject][0] == declared.subject_type, (subject, relation)
        self._facts.setdefault((subject, relation, float(object) if not isinstance(object, str) else object), source)

    def gap(self, subject: str, relation: str, why: str) -> None:
        """Say that not all of the subject's objects are known, and count why."""
        self._gaps.add((subject, relation))
        self.report[f"{why}: {relation}"] += 1

    def joined(self, what: str, matched: int, total: int) -> None:
        """Record a join. Raises `CoverageError` where less than 95 % matched."""
        self.report[f"join {what}: matched"] = matched
        self.report[f"join {what}: total"] = total
        if matched < COVERAGE_FLOOR * total:
            raise CoverageError(
                f"join {what}: {matched} of {total} matched, below {COVERAGE_FLOOR:.0%}; "
                "a package changed its keys: pin the version of the lock file"
            )

    def finish(self) -> World:
        """Titles, ids, pages and spans. Namesakes that no title tells apart are left out and counted."""
        titles = self._titles()
        ids = {key: f"{slug(self._entities[key][0])}/{slug(title)}" for key, title in titles.items()}
        self.report["entities left out: namesakes"] = len(self._entities) - len(ids)
        facts, gaps = [], {(ids[s], r) for s, r in self._gaps if s in ids}
        used = set()
        for (subject, relation, object), source in self._facts.items():
            if subject not in ids:
                continue
            if isinstance(object, str) and object not in ids:
                gaps.add((ids[subject], relation))
                continue
            facts.append(Fact(ids[subject], relation, ids[object] if isinstance(object, str) else object, source))
            used |= {facts[-1].subject, facts[-1].object}
        entities = []
        for key, title in titles.items():
            type, name, _, aliases = self._entities[key]
            others = tuple(a for a in aliases if a not in (title, name))
            if ids[key] in used:
                entities.append(Entity(id=ids[key], type=type, title=title, name=name, aliases=others))
        declared = list(self.relations.values())
        documents, placed = render(entities, declared, facts, self.sources)
        return World(
            self.name,
            entities=entities,
            relations=declared,
            facts=placed,
            documents=documents,
            sources=self.sources,
            report=dict(sorted(self.report.items())),
            gaps=gaps,
        )

    def _titles(self) -> dict[str, str]:
        """Core entities choose before the others; whoever shares a title at one step tries the next longer one."""
        chosen: dict[str, str] = {}
        taken: set[str] = set()
        is_core = {key: entity[0] in self.core for key, entity in self._entities.items()}
        for core in (True, False):
            waiting = [key for key in self._entities if is_core[key] is core]
            for step in range(4):
                claims: dict[str, list[str]] = defaultdict(list)
                for key in waiting:
                    type, _, titles, _ = self._entities[key]
                    offered = [*titles, f"{titles[0]} ({type})"]
                    if step < len(offered):
                        claims[slug(offered[step])].append(key)
                for claim, keys in claims.items():
                    if len(keys) == 1 and claim not in taken:
                        type, _, titles, _ = self._entities[keys[0]]
                        chosen[keys[0]] = [*titles, f"{titles[0]} ({type})"][step]
                taken |= {slug(title) for title in chosen.values()}
                waiting = [key for key in waiting if key not in chosen]
        return {key: chosen[key] for key in self._entities if key in chosen}


@cache
def _version(package: str) -> str:
    return metadata.version(package)


def slug(text: str) -> str:
    """Lower case, ASCII, words joined by hyphens: "Côte d'Ivoire" is "cote-d-ivoire"."""
    return re.sub(r"[^a-z0-9+]+", "-", plain(text).lower()).strip("-")


def plain(text: str) -> str:
    """The text without accents."""
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def agree(values: Sequence[float], tolerance: float) -> bool:
    """Whether the largest and smallest differ by at most `tolerance` of the largest."""
    return max(values) - min(values) <= tolerance * max(abs(v) for v in values)
