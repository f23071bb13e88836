"""The draw: vague clues that cut deep together."""

import random

import pytest

from pipeline.corpora.world import World
from pipeline.families.hard_search.clues import Kinds, clear, number_steps, round_ends, year_steps
from pipeline.families.hard_search.sampler import BROAD, Sampler, evenly, pair_floor, single_floor
from schemas.config import HardSearchConfig
from schemas.query import Band, Clue, EntityRef, Query
from schemas.task import Task
from tests.pipeline.families.hard_search.brute import satisfy


def count(world: World, type: str, *clues: Clue) -> int:
    return len(satisfy(world, Query(type=type, clues=clues), maybe=False))


def test_no_clue_and_no_pair_of_clues_comes_near_the_answer(world: World, tasks: list[Task]) -> None:
    """Of 26 countries one clue leaves 3 or more (3 % of 26 is 1, the floor is 3) and two leave 2 or more."""
    assert (single_floor(26), pair_floor(26)) == (3, 2)
    for task in tasks[:60]:
        query = task.constraints
        assert isinstance(query, Query)
        for i, clue in enumerate(query.clues):
            assert 3 <= count(world, query.type, clue) <= BROAD * 26, task.question
            for other in query.clues[:i]:
                assert count(world, query.type, clue, other) >= 2, task.question


@pytest.mark.parametrize(("size", "single", "pair"), [(51, 3, 2), (250, 8, 2), (340, 10, 3), (34_000, 1020, 340)])
def test_floors_grow_with_the_type(size: int, single: int, pair: int) -> None:
    """3 % and 1 % of the type, rounded, and never under 3 and 2."""
    assert (single_floor(size), pair_floor(size)) == (single, pair)


def test_masks_are_the_sets_of_the_world(world: World) -> None:
    kinds = Kinds(world)
    for entity in world.of_type("country"):
        kind = kinds.of(entity)
        widened = [kind.widened(saying, about) for saying in kind.named(entity) for about in kind.abouts(saying)]
        for saying in [*kind.named(entity), *kind.bands(entity), *widened]:
            everyone = frozenset(kind.members)
            assert saying.proved == kind.mask(world.proved(saying.clue))
            assert saying.possible == kind.mask(world.unrefuted(saying.clue, everyone))
            assert saying.proved & kind.bit(entity)


def test_a_band_holds_its_value_has_round_ends_and_keeps_clear_of_others(world: World) -> None:
    kind = Kinds(world)["country"]
    areas = sorted(float(f.object) for f in world.facts if f.relation == "area")
    bands = [s.clue.target for s in kind.bands("country/niger") if s.clue.relation == "area"]
    assert bands
    for band in bands:
        assert isinstance(band, Band)
        assert band.holds(1_267_000)
        for end in (band.low, band.high):
            assert end is None or (end % 100_000 == 0 and all(abs(a - end) >= 0.01 * end for a in areas))


def test_round_ends_step_in_one_two_five() -> None:
    """1,267,000: steps 100,000, 200,000, 500,000, 1,000,000, ... and the next multiple of each above and below."""
    steps = number_steps(1_267_000, whole=True)
    assert steps == (1e5, 2e5, 5e5, 1e6, 2e6, 5e6)
    assert round_ends(1_267_000, steps, up=True) == [1.3e6, 1.4e6, 1.5e6, 2e6, 5e6]
    assert round_ends(1_267_000, steps, up=False) == [1.2e6, 1e6]
    assert round_ends(1807, year_steps(), up=True) == [1810, 1820, 1850, 1900]
    assert number_steps(0, whole=True) == ()
    assert number_steps(3, whole=True) == (1, 2, 5)


def test_an_end_beside_a_value_is_not_clear() -> None:
    assert clear(100, [98.9, 150], near=1)
    assert not clear(100, [99.5, 150], near=1)


def test_relations_take_turns(world: World) -> None:
    sayings = Kinds(world)["country"].named("country/niger")
    order = evenly(random.Random(1), sayings)
    relations = {s.relation for s in sayings}
    assert sorted(s.clue.model_dump_json() for s in order) == sorted(s.clue.model_dump_json() for s in sayings)
    assert {s.relation for s in order[: len(relations)]} == relations


def test_a_description_never_touches_the_answer(world: World) -> None:
    sampler = Sampler(Kinds(world), HardSearchConfig())
    rng = random.Random(0)
    for _ in range(60):
        entity, answer = rng.sample(world.of_type("country"), 2)
        clue = Clue(relation="borders", target=EntityRef(entity=entity))
        query = sampler.description(rng, clue, answer, depth=3)
        if query is not None:
            assert answer not in named_in(query)
            assert satisfy(world, query, maybe=True) == {entity}


def named_in(query: Query) -> set[str]:
    found: set[str] = set()
    for clue in query.clues:
        match clue.target:
            case EntityRef(entity=entity):
                found.add(entity)
            case Query() as inner:
                found |= named_in(inner)
    return found
