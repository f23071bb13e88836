"""Questions read back as what they ask."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.corpora.world import World
from pipeline.families.hard_search import ParseError, parse
from pipeline.families.hard_search.grammar import FRAMES, asked_inversely, fits, question, with_article
from schemas.query import Band, Clue, EntityRef, Query
from schemas.task import Task
from tests.worlds import toy_world


def test_every_question_parses_back_to_its_constraints(world: World, tasks: list[Task]) -> None:
    assert len(tasks) > 150
    for task in tasks:
        assert parse(task.question, world).signature == task.constraints.signature, task.question


def any_query(rng: random.Random, type: str, depth: int) -> Query:
    """A query the grammar can say, true of something or not."""
    world = toy_world()
    clues = []
    for _ in range(rng.randint(1, 4)):
        ways = [(r, False) for r in world.relations.values() if r.subject_type == type]
        ways += [(r, True) for r in world.relations.values() if r.object_type == type and asked_inversely(r)]
        relation, inverse = rng.choice(ways)
        end = relation.subject_type if inverse else relation.object_type
        target: Band | EntityRef | Query
        if end is None:
            lows, highs = (
                ([None, 1810.0], [1900.0]) if relation.unit == "year" else ([None, 0.5, 1250.0], [5_500_000.0])
            )
            low = rng.choice(lows)
            target = Band(low=low, high=rng.choice([*highs, *[None] * (low is not None)]))
        elif depth > 1 and rng.random() < 0.4 and end != "currency unit":
            target = any_query(rng, end, depth - 1)
        else:
            target = EntityRef(entity=rng.choice(world.of_type(end)))
        clues.append(Clue(relation=relation.name, inverse=inverse, target=target))
    return Query(type=type, clues=tuple(clues))


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["country", "capital city", "currency"]))
def test_whatever_fits_a_frame_parses_back(seed: int, type: str) -> None:
    rng = random.Random(seed)
    query = any_query(rng, type, depth=rng.randint(1, 3))
    for frame in FRAMES:
        if fits(query, frame):
            text = question(toy_world(), query, frame, rng.choice([None, "2024"]))
            assert parse(text, toy_world()).signature == query.signature, text


def test_a_description_of_several_clues_has_no_place_in_a_running_list() -> None:
    """In "borders the country that borders Mali and borders Chad and ..." nobody knows what the last clue is about."""
    inner = Query(
        type="country",
        clues=tuple(Clue(relation="borders", target=EntityRef(entity=f"country/{c}")) for c in ("mali", "chad")),
    )
    query = Query(type="country", clues=(Clue(relation="borders", target=inner),))
    assert [fits(query, frame) for frame in FRAMES] == [frame.nested for frame in FRAMES]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Which country borders Atlantis? Give the name of the country.",
        "Which country borders Mali and borders Chad?",
        "What is 2 + 2?",
        "Name the country that borders Mali,.",
    ],
)
def test_what_is_no_question_of_this_world_is_refused(text: str, world: World) -> None:
    with pytest.raises(ParseError, match="has 0 readings"):
        parse(text, world)


@pytest.mark.parametrize(
    ("noun", "told"),
    [
        ("country", "a country"),
        ("element", "an element"),
        ("US state", "a US state"),
        ("unit", "a unit"),
        ("island", "an island"),
    ],
)
def test_articles(noun: str, told: str) -> None:
    assert with_article(noun) == told
