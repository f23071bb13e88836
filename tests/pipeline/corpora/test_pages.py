"""Sentences."""

import pytest

from pipeline.corpora.pages import join, render, say_band, say_number
from schemas.world import Entity, Fact, Relation, Source
from tests.worlds import toy_world


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (1_267_000.0, "km²", "1,267,000 km²"),
        (17.1, "%", "17.1%"),
        (-12.5, "°", "-12.5°"),
        (1962.0, "year", "1962"),
        (3.0, None, "3"),
        (0.0, "km", "0 km"),
    ],
)
def test_numbers_are_said_with_their_unit(value: float, unit: str | None, said: str) -> None:
    assert say_number(value, unit) == said


@pytest.mark.parametrize(
    ("low", "high", "unit", "said"),
    [
        (1_000, 2_000, "km²", "between 1,000 and 2,000 km²"),
        (20, None, "%", "20% or more"),
        (None, 5, None, "5 or less"),
        (1900, 1950, "year", "a year between 1900 and 1950"),
        (1900, None, "year", "1900 or later"),
        (None, 1950, "year", "1950 or earlier"),
    ],
)
def test_bands_are_said_where_a_number_would_stand(
    low: float | None, high: float | None, unit: str | None, said: str
) -> None:
    assert say_band(low, high, unit) == said


def test_names_are_joined_as_in_speech() -> None:
    assert [join(["A"]), join(["A", "B"]), join(["A", "B", "C"])] == ["A", "A and B", "A, B and C"]


def test_spans_quote_the_sentence_that_states_the_fact() -> None:
    world = toy_world()
    quotes = {
        fact.relation: world.documents[fact.subject].text[fact.start : fact.end]
        for fact in world.facts
        if fact.subject == "country/niger"
    }
    assert quotes == {
        "capital": "The capital of Niger is Niamey.",
        "borders": "Niger borders Algeria, Benin, Burkina Faso, Chad, Libya, Mali and Nigeria.",
        "official_language": "The official language of Niger is Hausa.",
        "currency": "The currency of Niger is the West African CFA franc.",
        "area": "Niger has an area of 1,267,000 km².",
        "independence_year": "Niger became independent in 1960.",
    }


def test_grammar_follows_number_articles_dates_and_final_stops() -> None:
    entities = [
        Entity(id="n", type="area", title="Netherlands", name="the Netherlands"),
        Entity(id="w", type="US city", title="Washington, D.C.", name="Washington, D.C."),
        Entity(id="h", type="city", title="The Hague", name="The Hague"),
    ]
    relation = Relation(
        name="seat", subject_type="area", object_type="city", functional=False, complete=True, dated=True,
        sentence="the [seat|seats] of {s} [is|are] {o}.", clue="",
    )  # fmt: skip
    sources = [Source(package="p", version="1", licence="MIT", as_of="2025-03-01")]
    documents, _ = render(entities, [relation], [Fact("n", "seat", "h", 0), Fact("n", "seat", "w", 0)], sources)
    assert (
        documents[0].text
        == "The Netherlands is an area.\nAs of 2025, the seats of the Netherlands are The Hague and Washington, D.C."
    )
    assert documents[0].links == ("h", "w")
    assert documents[1].text == "Washington, D.C. is a US city."
