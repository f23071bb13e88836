"""What makes a question of this family sound: unique under both readings, minimal, sourced, and silent about its answer."""

import re
import unicodedata
from collections import Counter, defaultdict

from pipeline.corpora.world import World
from pipeline.families.hard_search.grammar import say
from schemas.answer import EntityAnswer
from schemas.query import Band, Clue, EntityRef, Query
from schemas.task import Evidence, NearMiss
from schemas.world import Fact

NEAR_MISSES = 8
"""Runners-up stored with a task, at most."""
COMMON = 3
"""Names of a type that share a word from which on the word gives none of them away: "Islands", "Republic"."""


def unique(world: World, query: Query, answer: str) -> bool:
    """The certificate: known facts prove `answer` alone, and refute everything else of its type."""
    return world.certain(query) == world.possible(query) == {answer}


def minimal(world: World, query: Query) -> bool:
    """Whether without any one clue, descriptions' clues included, two or more entities provably fit."""
    for i, clue in enumerate(query.clues):
        others = query.clues[:i] + query.clues[i + 1 :]
        if others and len(world.certain(Query(type=query.type, clues=others))) < 2:
            return False
        if isinstance(clue.target, Query) and not minimal(world, clue.target):
            return False
    return True


def facts_used(world: World, query: Query, entity: str) -> list[Fact]:
    """One known fact for every clue, nested ones included, that together prove `entity` to satisfy the query."""
    return [fact for clue in query.clues for fact in _proof(world, clue, entity)]


def _proof(world: World, clue: Clue, entity: str) -> list[Fact]:
    match clue.target:
        case Band() as band:
            facts = world.facts_of(entity, clue.relation)
            return [next(f for f in facts if not isinstance(f.object, str) and band.holds(f.object))]
        case EntityRef(entity=end):
            return [_fact(world, clue, entity, end)]
        case Query() as inner:
            near = world.subjects(clue.relation, entity) if clue.inverse else world.objects(entity, clue.relation)
            end = min(str(o) for o in near & world.certain(inner))
            return [_fact(world, clue, entity, end), *facts_used(world, inner, end)]


def _fact(world: World, clue: Clue, entity: str, end: str) -> Fact:
    subject, object = (end, entity) if clue.inverse else (entity, end)
    return next(f for f in world.facts_of(subject, clue.relation) if f.object == object)


def evidence(world: World, fact: Fact) -> Evidence:
    page = world.documents[fact.subject]
    return Evidence(
        document=page.id,
        document_hash=page.hash,
        start=fact.start,
        end=fact.end,
        quote=page.text[fact.start : fact.end],
    )


def near_misses(world: World, query: Query, answer: EntityAnswer) -> tuple[NearMiss, ...]:
    """Entities that fit all clues but one, with that clue in words; none that the answer's own names would match."""
    right = {normal(name) for name in (answer.name, *answer.aliases)}
    found = [
        NearMiss(answer=world.entities[entity].name.removeprefix("the "), why=f"does not fit: {say(world, clue)}")
        for entity, clue in sorted(world.runners_up(query).items())
        if normal(world.entities[entity].name) not in right
    ]
    return tuple(found[:NEAR_MISSES])


class Names:
    """The names of a world: what is right as an answer, and what a question must not say."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._owners: dict[str, dict[tuple[str, ...], set[str]]] = {}
        self._words: dict[str, Counter[str]] = {}

    def answer(self, entity: str) -> EntityAnswer:
        """The typed gold, without an article. A name that also means another entity of the type is no alias."""
        it = self.world.entities[entity]
        owners = self._owners_of(it.type)
        name = it.name.removeprefix("the ")
        names = dict.fromkeys((it.name, it.title, *it.aliases))
        return EntityAnswer(
            entity=entity,
            name=name,
            aliases=tuple(n for n in names if n != name and owners[normal(n)] == {entity}),
        )

    def called(self, text: str, type: str) -> frozenset[str]:
        """The entities of the type that a text names, with nothing beside the name but an article."""
        words, owners = normal(text), self._owners_of(type)
        bare = words[1:] if words[:1] in {("the",), ("a",), ("an",)} else words
        return frozenset(owners.get(words) or owners.get(bare) or ())

    def leaks(self, question: str, answer: EntityAnswer) -> bool:
        """Whether a question says its answer: a name of it word for word, or a word which only such a name has."""
        words = normal(question)
        names = {normal(name) for name in (answer.name, *answer.aliases)} - {()}
        if any(words[i : i + len(name)] == name for name in names for i in range(len(words) - len(name) + 1)):
            return True
        counts = self._words_of(self.world.entities[answer.entity].type)
        telling = {w for name in names for w in name if len(w) > 3 and counts[w] < COMMON}
        return any(word.startswith(w) for w in telling for word in words)

    def _owners_of(self, type: str) -> dict[tuple[str, ...], set[str]]:
        """For every name of the type, the entities it means."""
        if type not in self._owners:
            found = self._owners[type] = defaultdict(set)
            for e in (self.world.entities[id] for id in self.world.of_type(type)):
                for name in (e.name, e.title, *e.aliases):
                    found[normal(name)].add(e.id)
        return self._owners[type]

    def _words_of(self, type: str) -> Counter[str]:
        """How many names of the type have each word."""
        if type not in self._words:
            names = (self.world.entities[e].name for e in self.world.of_type(type))
            self._words[type] = Counter(word for name in names for word in {*normal(name)})
        return self._words[type]


def normal(text: str) -> tuple[str, ...]:
    """The words of a text without case, accents and punctuation."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode() or text
    return tuple(re.findall(r"\w+", plain.casefold()))
