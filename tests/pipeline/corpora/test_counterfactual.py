"""False worlds of real names."""

from collections import Counter

import pytest

from pipeline.corpora import World, counterfactual
from pipeline.corpora.atlas import CORE_TYPES
from tests.worlds import atlas, toy_world


def _shape(world: World) -> list[tuple[str, tuple[int, ...]]]:
    """Per relation, how many objects its subjects have, sorted."""
    counts = Counter((f.relation, f.subject) for f in world.facts)
    return sorted((r, tuple(sorted(n for (name, _), n in counts.items() if name == r))) for r in world.relations)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_relation_keeps_its_shape_and_most_facts_change(seed: int) -> None:
    world = toy_world()
    other = counterfactual(world, seed)
    assert _shape(other) == _shape(world)
    assert len(other.gaps) == len(world.gaps)
    before = {(f.subject, f.relation, f.object) for f in world.facts}
    after = {(f.subject, f.relation, f.object) for f in other.facts}
    assert len(after) == len(before)
    assert len(after & before) < 0.3 * len(before)


def test_borders_stay_symmetric() -> None:
    pairs = {(f.subject, f.object) for f in counterfactual(toy_world(), 5).facts if f.relation == "borders"}
    assert pairs == {(b, a) for a, b in pairs}


def test_pages_tell_the_false_facts_and_nothing_else() -> None:
    world = toy_world()
    other = counterfactual(world, 5)
    assert other.documents.keys() == world.documents.keys()
    assert {e.title for e in other.entities.values()} == {e.title for e in world.entities.values()}
    for fact in other.facts:
        quote = other.documents[fact.subject].text[fact.start : fact.end]
        if isinstance(fact.object, str):
            assert other.entities[fact.object].name.lower() in quote.lower()
    capital = next(iter(other.objects("country/niger", "capital")))
    assert isinstance(capital, str) and capital != "capital-city/niamey"
    assert f"The capital of Niger is {other.entities[capital].name}." in other.documents["country/niger"].text
    assert "Niamey" not in other.documents["country/niger"].text
    assert other.index.search("Niger", 1)[0].id == "country/niger"


def test_equal_seeds_give_equal_worlds_and_others_do_not() -> None:
    world = toy_world()
    assert counterfactual(world, 7).hash == counterfactual(world, 7).hash
    assert len({counterfactual(world, seed).hash for seed in range(5)} | {world.hash}) == 6


def test_the_core_of_the_atlas_comes_with_as_many_distractors_as_asked_for() -> None:
    world = atlas()
    other = counterfactual(world, 1, CORE_TYPES, distractors=500)
    core = sum(len(world.of_type(type)) for type in CORE_TYPES)
    assert len(other.documents) == core + 500
    assert sum(e.type not in CORE_TYPES for e in other.entities.values()) == 500
    plain = counterfactual(world, 1, CORE_TYPES)
    assert {e.type for e in plain.entities.values()} == set(CORE_TYPES)
    assert all(f.object in plain.entities for f in plain.facts if isinstance(f.object, str))
