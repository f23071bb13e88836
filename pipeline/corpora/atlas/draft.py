"""What a world is compiled in: entities under keys, facts between keys, gaps, and the counts of every join."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
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

    A relation's grammar and types are declared up front. An entity may offer several titles, plainest first; types of an
    earlier tier choose before those of a later one, and all others come last.
    """

    def __init__(self, name: str, relations: Iterable[Relation], tiers: Sequence[Collection[str]] = ()) -> None:
        self.name = name
        self.relations = {r.name: r for r in relations}
        self.tiers = tiers
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
        """Whoever shares a title within its tier at one step tries its next longer one; the type in brackets is the last."""
        chosen: dict[str, str] = {}
        taken: set[str] = set()
        tiers: list[list[str]] = [[] for _ in range(len(self.tiers) + 1)]
        for key, (type, *_) in self._entities.items():
            tiers[next((i for i, types in enumerate(self.tiers) if type in types), -1)].append(key)
        for waiting in tiers:
            for step in range(_LONGEST_OFFER):
                claims: dict[str, list[tuple[str, str]]] = defaultdict(list)
                for key in waiting:
                    type, _, titles, _ = self._entities[key]
                    offered = [*titles, f"{titles[0]} ({type})"]
                    if step < len(offered):
                        claims[slug(offered[step])].append((key, offered[step]))
                won = {
                    claim: claimants[0]
                    for claim, claimants in claims.items()
                    if len(claimants) == 1 and claim not in taken
                }
                chosen.update(won.values())
                taken |= won.keys()
                waiting = [key for key in waiting if key not in chosen]
        return {key: chosen[key] for key in self._entities if key in chosen}


_LONGEST_OFFER = 4


@cache
def _version(package: str) -> str:
    return metadata.version(package)


def slug(text: str) -> str:
    """Lower case, ASCII, words joined by hyphens: "Côte d'Ivoire" is "cote-d-ivoire"."""
    return re.sub(r"[^a-z0-9+]+", "-", plain(text).lower()).strip("-")


def plain(text: str) -> str:
    """The text without accents."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def agree(values: Sequence[float], tolerance: float) -> bool:
    """Whether the largest and smallest differ by at most `tolerance` of the largest."""
    return max(values) - min(values) <= tolerance * max(abs(v) for v in values)
