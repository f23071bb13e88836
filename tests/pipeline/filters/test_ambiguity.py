import pytest

from pipeline.filters.ambiguity import ambiguity
from pipeline.filters.rederive import rederive_by_joins
from pipeline.tables import Tables
from schemas.certificate import Outcome
from schemas.query import Band, Clue, EntityRef, Query
from tests.pipeline.tasks import MALI, math_task, search_task
from tests.worlds import toy_world

WORLD = toy_world()
TABLES = Tables(WORLD)


def country(*clues: Clue) -> Query:
    return Query(type="country", clues=clues)


def speaks(language: str) -> Clue:
    return Clue(relation="official_language", target=EntityRef(entity=f"language/{language}"))


def borders(name: str) -> Clue:
    return Clue(relation="borders", target=EntityRef(entity=f"country/{name}"))


def test_a_proved_and_only_possible_answer_is_kept_with_its_runners_up() -> None:
    certificate = ambiguity(search_task(), WORLD)
    assert certificate.outcome is Outcome.KEEP
    assert "country/algeria" in certificate.detail["runners_up"]  # type: ignore[operator]
    assert certificate.detail["runners_up_count"] == 6 + 4, "other neighbours of Niger, and of Senegal"


def test_two_proved_answers_are_one_too_many() -> None:
    """Mali borders Niger, and so do Algeria, Benin, Burkina Faso, Chad, Libya and Nigeria."""
    certificate = ambiguity(search_task(country(borders("niger"))), WORLD)
    assert certificate.reason == "several_answers"
    assert certificate.detail["witnesses"][0] == "country/algeria"  # type: ignore[index]


def test_a_missing_fact_never_makes_an_answer_look_unique() -> None:
    """Guinea is the one neighbour of Senegal known to speak French; of Mali, another one, no languages are known."""
    query = country(borders("senegal"), speaks("french"))
    certificate = ambiguity(search_task(query, "country/guinea"), WORLD)
    assert certificate.reason == "several_possible_answers"
    assert certificate.detail["witnesses"] == ["country/mali"]


def test_an_answer_that_no_fact_proves_is_rejected_even_when_it_is_possible() -> None:
    """Egypt's year of independence is missing, and the relation is not complete."""
    band = Clue(relation="independence_year", target=Band(low=1920, high=1925))
    query = country(borders("sudan"), band)
    assert ambiguity(search_task(query, "country/egypt"), WORLD).reason == "answer_not_proved"


def test_a_task_without_clues_about_the_world_breaks_the_filter() -> None:
    with pytest.raises(TypeError, match="problem with an number answer"):
        ambiguity(math_task(), WORLD)


def test_joins_agree_with_the_certificate() -> None:
    wrong = search_task(MALI, "country/chad")
    assert rederive_by_joins(search_task(), TABLES).outcome is Outcome.KEEP
    certificate = rederive_by_joins(wrong, TABLES)
    assert certificate.reason == "other_answer"
    assert certificate.detail["certain"] == ["country/mali"]
    assert ambiguity(wrong, WORLD).reason == "answer_not_proved"
