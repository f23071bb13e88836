from pipeline.filters.shortcuts import shortcuts, without_one
from schemas.certificate import Outcome
from schemas.query import Clue, EntityRef, Query
from tests.pipeline.tasks import MALI, search_task
from tests.worlds import toy_world

WORLD = toy_world()


def borders(target: str | Query) -> Clue:
    return Clue(relation="borders", target=EntityRef(entity=target) if isinstance(target, str) else target)


def country(*clues: Clue) -> Query:
    return Query(type="country", clues=clues)


def test_a_question_that_needs_every_clue_is_kept_with_what_is_left_without_one() -> None:
    """Niger has seven neighbours and Senegal five: dropping the other clue leaves no fewer than five."""
    certificate = shortcuts(search_task(), WORLD)
    assert (certificate.outcome, certificate.score) == (Outcome.KEEP, 5)


def test_a_clue_that_adds_nothing_is_named() -> None:
    capital = Clue(relation="capital", target=EntityRef(entity="capital-city/bamako"))
    certificate = shortcuts(search_task(country(*MALI.clues, capital)), WORLD)
    assert certificate.reason == "redundant_clue"
    assert certificate.detail["clue"] == MALI.clues[0].model_dump(mode="json")


def test_a_clue_inside_a_description_must_be_needed_too() -> None:
    """France borders Andorra and "the country that borders Portugal and Andorra". Only Spain borders Portugal, so "and Andorra"
    inside is idle; "borders Portugal" is not: without it, Spain, which borders France, would fit as well.
    """
    spain = country(borders("country/portugal"), borders("country/andorra"))
    query = country(borders("country/andorra"), borders(spain))
    assert WORLD.certain(query) == {"country/france"}
    certificate = shortcuts(search_task(query, "country/france", "Which one is it?", evidence=()), WORLD)
    assert certificate.reason == "redundant_clue"
    assert certificate.detail["clue"] == spain.clues[1].model_dump(mode="json")


def test_leaving_out_reaches_every_depth() -> None:
    deep = country(borders(country(borders("country/mali"), borders(country(borders("country/togo"))))))
    left_out = [clue.target for clue, _ in without_one(deep)]
    assert len(left_out) == deep.hops == 4
    assert all(rest.hops < deep.hops for _, rest in without_one(deep))
