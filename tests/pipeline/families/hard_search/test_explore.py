"""Explorer scripts read pages until an entity fits every clue, whatever the kind of clue."""

import random

import pytest

from pipeline.families.hard_search.explore import Explorer
from pipeline.families.hard_search.oracle import GIVEN_UP, Move
from schemas.query import Band, Clue, EntityRef, Query
from tests.pipeline.families.hard_search.scripts import followed
from tests.worlds import toy_world

WORLD = toy_world()
NIAMEY = Clue(relation="capital", target=EntityRef(entity="capital-city/niamey"))


def explored(query: Query, *, notes: bool = False, exhaustive: bool = False) -> list[Move]:
    script = Explorer(WORLD).script(query, random.Random(0), notes=notes, exhaustive=exhaustive)
    return followed(script, WORLD)


def borders(target: EntityRef | Query) -> Clue:
    return Clue(relation="borders", target=target)


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        (Query(type="country", clues=(NIAMEY,)), "Niger"),
        (Query(type="country", clues=(Clue(relation="area", target=Band(low=2_000_000, high=3_000_000)),)), "Algeria"),
        (
            Query(
                type="country",
                clues=(borders(Query(type="country", clues=(NIAMEY,))), borders(EntityRef(entity="country/tunisia"))),
            ),
            "Algeria or Libya",
        ),
        (
            Query(
                type="capital city",
                clues=(
                    Clue(
                        relation="capital",
                        inverse=True,
                        target=Query(type="country", clues=(borders(EntityRef(entity="country/france")),)),
                    ),
                    Clue(relation="capital", inverse=True, target=EntityRef(entity="country/spain")),
                ),
            ),
            "Madrid",
        ),
        (Query(type="country", clues=(borders(EntityRef(entity="country/togo")), NIAMEY)), GIVEN_UP),
    ],
    ids=["named", "band", "described", "inverse", "nothing fits"],
)
def test_what_it_answers_is_proved_by_the_pages_it_read(query: Query, answer: str) -> None:
    assert explored(query)[-1].answer in answer.split(" or ")


def test_a_name_inside_another_is_not_taken_for_it() -> None:
    query = Query(type="country", clues=(borders(EntityRef(entity="country/guinea-bissau")),))
    found = {explored(query)[-1].answer for _ in range(3)}
    assert found <= {"Guinea", "Senegal"}


def test_an_exhaustive_script_looks_at_every_candidate_and_notes_the_one_that_fits() -> None:
    query = Query(type="country", clues=(NIAMEY,))
    made = explored(query, notes=True, exhaustive=True)
    opened = {call.arguments["id"] for move in made for call in move.calls if call.name == "open"}
    titles = {WORLD.entities[id].title for id in (*WORLD.of_type("country"), "capital-city/niamey")}
    assert opened == titles
    noted = [call.arguments["text"] for move in made for call in move.calls if call.name == "note"]
    assert noted == ["Niger fits all clues"]
    assert made[-1].answer == "Niger"


def test_equal_seeds_make_equal_scripts() -> None:
    query = Query(type="country", clues=(NIAMEY,))
    assert explored(query, exhaustive=True) == explored(query, exhaustive=True)
