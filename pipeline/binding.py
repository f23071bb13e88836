"""What the clues of a query stand for at its answer: the facts behind them, and how the entities found on the way are called."""

from pipeline.corpora.world import World
from schemas.query import Band, Clue, EntityRef, Query
from schemas.world import Fact


def facts_behind(clue: Clue, entity: str, world: World) -> list[tuple[Fact, str]]:
    """Facts that satisfy the clue for `entity`, each with the entity at the clue's far end ("" for a number)."""
    match clue.target:
        case Band() as band:
            facts = world.facts_of(entity, clue.relation)
            return [(fact, "") for fact in facts if not isinstance(fact.object, str) and band.holds(fact.object)]
        case EntityRef(entity=target):
            ends = frozenset({target})
        case Query() as inner:
            ends = world.certain(inner)
    if clue.inverse:
        near = sorted(ends & world.subjects(clue.relation, entity))
        return [(fact, end) for end in near for fact in world.facts_of(end, clue.relation) if fact.object == entity]
    facts = world.facts_of(entity, clue.relation)
    return [(fact, fact.object) for fact in facts if isinstance(fact.object, str) and fact.object in ends]


def described(query: Query, entity: str, world: World) -> frozenset[str]:
    """Entities that the nested queries stand for when `entity` is the answer: a reader finds them on the way."""
    found: frozenset[str] = frozenset()
    for clue in query.clues:
        if isinstance(clue.target, Query):
            for _, end in facts_behind(clue, entity, world):
                found |= {end} | described(clue.target, end, world)
    return found


def names_of(entity: str, world: World) -> tuple[str, ...]:
    """Everything the entity may be called, its title included."""
    found = world.entities[entity]
    return tuple(dict.fromkeys((found.name, found.title, *found.aliases)))
