"""Compiling a world: joins, titles, gaps."""

import pytest

from pipeline.corpora.atlas.draft import CoverageError, Draft, agree, slug
from schemas.world import Relation

IN = Relation(
    name="in",
    subject_type="city",
    object_type="country",
    functional=True,
    complete=True,
    sentence="{s} is in {o}.",
    clue="is in {o}",
)


def _draft() -> Draft:
    return Draft("test", [IN], [("country",)])


def test_a_join_below_95_percent_raises_with_its_counts() -> None:
    draft = _draft()
    draft.joined("enough", 95, 100)
    with pytest.raises(CoverageError, match="join little: 94 of 100 matched, below 95%"):
        draft.joined("little", 94, 100)
    assert draft.report["join enough: matched"] == 95


def test_namesakes_get_longer_titles_and_the_first_tier_keeps_the_plain_one() -> None:
    draft = _draft()
    source = draft.source("polars", "MIT")
    mexico = draft.entity("c:MX", "country", "Mexico")
    cities = [
        draft.entity("1", "city", "Mexico", "Mexico, Mexico"),
        draft.entity("2", "city", "Leon", "Leon, Mexico"),
        draft.entity("3", "city", "León", "León, Spain"),
    ]
    for city in cities:
        draft.fact(city, "in", mexico, source)
    world = draft.finish()
    assert [e.title for e in world.entities.values()] == ["Mexico", "Mexico, Mexico", "Leon, Mexico", "León, Spain"]
    assert world.documents["city/leon-spain"].text == "León is a city.\nLeón is in Mexico."


def test_namesakes_that_nothing_tells_apart_are_left_out_and_leave_a_gap() -> None:
    draft = _draft()
    source = draft.source("polars", "MIT")
    for key in ("c:1", "c:2"):
        draft.entity(key, "country", "Atlantis")
    draft.fact(draft.entity("1", "city", "Poseidonis"), "in", "c:1", source)
    draft.fact(draft.entity("2", "city", "Paris"), "in", draft.entity("c:3", "country", "France"), source)
    world = draft.finish()
    assert [e.title for e in world.entities.values()] == ["Paris", "France"]
    assert world.report["entities left out: namesakes"] == 2
    assert draft.report["entities left out: namesakes"] == 2


def test_a_fact_between_wrong_types_cannot_be_added() -> None:
    draft = _draft()
    france = draft.entity("c:FR", "country", "France")
    with pytest.raises(AssertionError):
        draft.fact(france, "in", france, draft.source("polars", "MIT"))


def test_values_agree_within_a_share_of_the_larger() -> None:
    assert agree((90, 100), 0.1)
    assert not agree((89, 100), 0.1)


def test_slugs_are_ascii_and_keep_plus_signs() -> None:
    assert slug("Côte d'Ivoire") == "cote-d-ivoire"
    assert slug("UTC+5:30") == "utc+5-30"
