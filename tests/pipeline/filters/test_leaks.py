import pytest

from pipeline.filters.leaks import leaks, mentions
from schemas.answer import CollectionAnswer, ExpressionAnswer, NumberAnswer
from schemas.certificate import Outcome
from schemas.query import Clue, EntityRef, Query
from tests.pipeline.tasks import MALI, math_task, search_task
from tests.worlds import toy_world

WORLD = toy_world()


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        ("Which country borders Nigeria?", "Niger", False),
        ("Which country borders NIGER?", "Niger", True),
        ("Which country has Lome as its capital?", "Lomé", True),
        ("Which country uses the West-African CFA franc?", "West African CFA franc", True),
        ("Which state is in the US Midwest?", "US", True),
        ("Tell us which state it is.", "US", False),
        ("Which country lies in Africa?", "IN", False),
        ("Is it?", "?!", False),
    ],
)
def test_names_are_found_as_whole_words(text: str, name: str, found: bool) -> None:
    assert mentions(text, name) is found


def test_the_answer_in_the_question_is_a_leak() -> None:
    certificate = leaks(search_task(question="Which country, Mali or Chad, borders Niger and Senegal?"), WORLD)
    assert certificate.reason == "answer_in_question"
    assert leaks(search_task(), WORLD).outcome is Outcome.KEEP


def test_an_entity_that_the_question_only_describes_may_not_be_named() -> None:
    inner = Query(type="country", clues=MALI.clues)
    query = Query(type="capital city", clues=(Clue(relation="capital", inverse=True, target=inner),))
    named = search_task(query, "capital-city/bamako", "Which city is the capital of Mali?", evidence=())
    assert leaks(named, WORLD).reason == "described_entity_named"
    described = search_task(
        query, "capital-city/bamako", "Which city is the capital of the country that ...?", evidence=()
    )
    assert leaks(described, WORLD).outcome is Outcome.KEEP


def test_the_name_inside_a_longer_one_that_the_question_gives_is_no_leak() -> None:
    """Guinea borders Guinea-Bissau: naming the second does not name the first."""
    query = Query(type="country", clues=(Clue(relation="borders", target=EntityRef(entity="country/guinea-bissau")),))
    inside = search_task(query, "country/guinea", "Which country borders Guinea-Bissau?")
    assert leaks(inside, WORLD).outcome is Outcome.KEEP
    beside = search_task(query, "country/guinea", "Which country, Guinea or Senegal, borders Guinea-Bissau?")
    assert leaks(beside, WORLD).reason == "answer_in_question"


def test_a_short_number_is_no_leak_and_a_long_one_is() -> None:
    assert leaks(math_task("What is 17 mod 5?", NumberAnswer(value="5")), None).outcome is Outcome.KEEP
    assert leaks(math_task("Is 40961 the product?", NumberAnswer(value="40961")), None).reason == "answer_in_question"


def test_an_expression_that_is_its_own_answer_is_a_leak() -> None:
    spec = ExpressionAnswer(value="x**2 + 2*x", variables=("x",))
    assert leaks(math_task("Simplify x**2 + 2*x.", spec), None).reason == "answer_in_question"
    assert leaks(math_task("Expand x*(x + 2).", spec), None).outcome is Outcome.KEEP
    pair = CollectionAnswer(shape="set", items=("2", "3"))
    assert leaks(math_task("Which numbers x solve x^2 - 5x + 6 = 0?", pair), None).outcome is Outcome.KEEP
