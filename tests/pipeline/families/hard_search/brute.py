"""The two readings of a query by going through every entity and every fact: slow, and without a line of the family's own."""

from functools import lru_cache

from pipeline.corpora.world import World
from schemas.query import Band, Clue, EntityRef, Query
from schemas.world import Object


def satisfy(world: World, query: Query, *, maybe: bool) -> set[str]:
    """Entities of the type that all clues prove, or (`maybe`) that none refutes."""
    return {e for e in world.entities if _is(world, e, query, maybe)}


def _is(world: World, entity: str, query: Query, maybe: bool) -> bool:
    same_type = world.entities[entity].type == query.type
    return same_type and all(_holds(world, entity, clue, maybe) for clue in query.clues)


def _holds(world: World, entity: str, clue: Clue, maybe: bool) -> bool:
    pairs = _pairs(world, clue.relation)
    if isinstance(clue.target, Band):
        known = [float(o) for s, o in pairs if s == entity]
        return any(clue.target.holds(value) for value in known) or (maybe and _unknown(world, entity, clue.relation))
    if maybe and not clue.inverse and _unknown(world, entity, clue.relation):
        return True
    for end in world.entities:
        subject, object = (end, entity) if clue.inverse else (entity, end)
        linked = (subject, object) in pairs or (maybe and clue.inverse and _unknown(world, end, clue.relation))
        if linked and _fits(world, end, clue.target, maybe):
            return True
    return False


def _fits(world: World, entity: str, target: EntityRef | Query, maybe: bool) -> bool:
    return entity == target.entity if isinstance(target, EntityRef) else _is(world, entity, target, maybe)


@lru_cache(maxsize=64)
def _pairs(world: World, relation: str) -> frozenset[tuple[str, Object]]:
    return frozenset((f.subject, f.object) for f in world.facts if f.relation == relation)


def _unknown(world: World, subject: str, relation: str) -> bool:
    """Whether more objects than the recorded ones may exist."""
    declared = world.relations[relation]
    if declared.functional and any(s == subject for s, _ in _pairs(world, relation)):
        return False
    return not declared.complete or (subject, relation) in world.gaps
