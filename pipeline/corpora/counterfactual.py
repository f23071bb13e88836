"""Worlds of real names and false facts, for training a policy that must look things up."""

import random
from collections.abc import Collection

from pipeline.corpora.pages import render
from pipeline.corpora.world import World
from schemas.world import Fact


def counterfactual(world: World, seed: int, types: Collection[str] | None = None, distractors: int = 0) -> World:
    """The world with every entity put in the place of another of its type, and all pages told anew.

    Each type has its own permutation, so Niger takes the facts of Japan while the yen takes those of the peso: every
    relation keeps its shape (functional, symmetric, complete, gaps), and so does every join of several. Numbers go with
    the place. `types` restricts the world to entities of these types and facts among them; `distractors` adds that many
    pages of other types, chosen by the seed.
    """
    kept = _kept(world, seed, types, distractors)
    role: dict[str, str] = {}
    for type in world.types:
        members = [id for id in world.of_type(type) if id in kept]
        shuffled = list(members)
        random.Random(f"{seed}/counterfactual/{type}").shuffle(shuffled)
        role.update(zip(members, shuffled, strict=True))
    facts = [
        Fact(role[f.subject], f.relation, role[f.object] if isinstance(f.object, str) else f.object, f.source)
        for f in world.facts
        if f.subject in kept and (not isinstance(f.object, str) or f.object in kept)
    ]
    entities = [e for e in world.entities.values() if e.id in kept]
    documents, placed = render(entities, world.relations.values(), facts, world.sources)
    return World(
        f"{world.name}-counterfactual-{seed}",
        entities=entities,
        relations=world.relations.values(),
        facts=placed,
        documents=documents,
        sources=world.sources,
        gaps=[(role[s], relation) for s, relation in world.gaps if s in kept],
    )


def _kept(world: World, seed: int, types: Collection[str] | None, distractors: int) -> frozenset[str]:
    if types is None:
        return frozenset(world.entities)
    inside = [e.id for e in world.entities.values() if e.type in types]
    outside = [e.id for e in world.entities.values() if e.type not in types]
    drawn = random.Random(f"{seed}/distractors").sample(outside, min(distractors, len(outside)))
    return frozenset(inside + drawn)
