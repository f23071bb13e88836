import pytest

from pipeline.filters.form import form
from schemas.answer import AnswerSpec, EntityAnswer, ExpressionAnswer, NumberAnswer
from schemas.certificate import Outcome
from schemas.query import Clue, EntityRef, Query
from tests.pipeline.tasks import math_task, search_task
from tests.worlds import toy_world

WORLD = toy_world()


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("Who is the current CEO of X Corporation?", "relative_time"),
        ("How many days since the moon landing?", "relative_time"),
        ("What is the latest version of Python?", "relative_time"),
        ("Which country hosted the Olympics last year?", "relative_time"),
        ("Which country has recently joined the union?", "relative_time"),
        ("Which country is now the host?", "relative_time"),
        ("Who was the current champion as of 2019?", ""),
        ("Which country had the latest census, in May 2020?", ""),
        ("Which metal carries an electric current best known to us?", "unanchored_superlative"),
        ("Which is the largest country?", "unanchored_superlative"),
        ("Which is the largest country in west Africa?", ""),
        ("Which country is the most populous among those that border Chad?", ""),
        ("Which country, whose highest point is Mount Hombori, borders Niger?", ""),
        ("Which country's largest lake is Lake Debo?", ""),
        ("Which country has a town called Best, and borders Niger?", ""),
        ("Which country borders Niger? And which borders Chad?", "several_questions"),
        ("Which country borders Niger, and what is its capital?", "several_questions"),
        ("Which country borders Niger and which also borders Chad?", ""),
        ("Does Mali border Niger and Senegal?", "yes_no"),
        ("Is it true that Niger borders Mali?", "yes_no"),
        ("Which of the following borders Niger: Mali or Togo?", "multiple_choice"),
        ("Which country borders Niger? (A) Togo (B) Mali (C) Ghana (D) Spain", "multiple_choice"),
        ("True or false: Mali borders Niger.", "multiple_choice"),
        ("What is one of the neighbours of Niger?", "open_list"),
        ("Which country has neighbours such as Niger?", "open_list"),
        ("Name a country that borders Niger.", "open_list"),
        ("Which country, one of whose languages is French, borders Mali?", ""),
        ("Who?", "too_short"),
        ("Which country " + "borders Niger and " * 150 + "borders Chad?", "too_long"),
    ],
)
def test_wording_of_questions_about_the_world(question: str, reason: str) -> None:
    assert form(search_task(question=question), WORLD).reason == reason


@pytest.mark.parametrize(
    ("question", "answer", "reason"),
    [
        ("Prove that the square root of 2 is irrational.", EntityAnswer(entity="", name="Yes"), "proof"),
        ("Show that 7 divides n^7 - n for every n.", NumberAnswer(value="7"), "proof"),
        ("Is the sequence convergent?", EntityAnswer(entity="", name="The sequence is convergent."), "yes_no"),
        ("Consider a_n = 1/n. Is the sequence convergent?", EntityAnswer(entity="", name="Yes"), "yes_no"),
        ("Decide convergence of 1/n:", EntityAnswer(entity="", name="True"), "yes_no"),
        ("Which curve is the locus?", EntityAnswer(entity="", name="the angle bisector of AB and CD"), "prose_gold"),
        ("What is it? A) 1 B) 2 C) 3 D) 4", NumberAnswer(value="1"), "multiple_choice"),
        ("How long is the train?", NumberAnswer(value="120"), "missing_unit"),
        ("How far does it go, in kilometres?", NumberAnswer(value="120", unit="km"), ""),
        ("How far does it go?", NumberAnswer(value="120", unit="km"), "missing_unit"),
        ("What share is that in percent?", NumberAnswer(value="20", unit="%"), ""),
        ("What share is that?", NumberAnswer(value="20", unit="%"), "missing_unit"),
        ("Alice is now twice as old as Bob was last year; how many years separate them?", NumberAnswer(value="3"), ""),
        ("Expand (x + 1)*(x - 1).", ExpressionAnswer(value="x**2 - 1", variables=("x",)), ""),
        ("What is the largest prime below 100?", NumberAnswer(value="97"), ""),
    ],
)
def test_wording_of_computed_questions(question: str, answer: AnswerSpec, reason: str) -> None:
    assert form(math_task(question, answer), None).reason == reason


def test_a_fact_that_moves_with_time_needs_a_date() -> None:
    moving = WORLD.relations["currency"].model_copy(update={"dated": True})

    class World:
        relations = {**WORLD.relations, "currency": moving}

    inner = Query(type="country", clues=(Clue(relation="currency", target=EntityRef(entity="currency/euro")),))
    query = Query(type="country", clues=(Clue(relation="borders", target=inner),))
    undated = search_task(query, question="Which country borders one that uses the euro?", evidence=())
    dated = search_task(query, question="Which country borders one that used the euro as of 2020?", evidence=())
    assert form(undated, World()).reason == "dated_without_as_of"  # type: ignore[arg-type]
    assert form(dated, World()).outcome is Outcome.KEEP  # type: ignore[arg-type]
