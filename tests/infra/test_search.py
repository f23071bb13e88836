"""Search over frozen pages."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infra.search import Hit, SearchIndex, split_sentences
from schemas.world import Document
from tests.worlds import atlas, toy_world


def _titles(query: str, k: int = 3) -> list[str]:
    return [hit.title for hit in toy_world().index.search(query, k)]


def test_pages_that_satisfy_both_clauses_rank_above_the_page_about_one_name() -> None:
    # Benin, Ivory Coast, Senegal and Togo have French and border Burkina Faso or Mali; "French" and "Mali" have pages of their own.
    assert set(_titles("borders Mali official language French")) <= {"Ivory Coast", "Guinea", "Senegal"}
    assert _titles("borders Ghana currency West African CFA franc official language French", 2) in (
        ["Togo", "Ivory Coast"],
        ["Ivory Coast", "Togo"],
    )


def test_a_name_alone_finds_its_own_page_first() -> None:
    for title in ("Niger", "Nigeria", "Guinea", "Guinea-Bissau", "West African CFA franc", "French"):
        assert _titles(title, 1) == [title]


def test_accents_case_and_endings_do_not_matter() -> None:
    assert _titles("LOME", 1) == _titles("Lomé", 1)
    assert _titles("bordering algerias", 2) == _titles("borders Algeria", 2)


def test_a_snippet_is_the_sentences_that_answer_the_query() -> None:
    hit = toy_world().index.search("borders Algeria and Benin, currency", 1)[0]
    assert hit.title == "Niger"
    assert hit.snippet == (
        "Niger borders Algeria, Benin, Burkina Faso, Chad, Libya, Mali and Nigeria. The currency of Niger is the West African CFA franc."
    )


def test_a_snippet_never_exceeds_the_words_allowed() -> None:
    for words in (1, 5, 12, 40):
        for hit in atlas().index.search("language currency borders population of Niger", 10, words=words):
            assert 0 < len(hit.snippet.split()) <= words


def test_k_bounds_the_number_of_pages() -> None:
    assert [len(toy_world().index.search("country", k)) for k in (-1, 0, 1, 5)] == [0, 0, 1, 5]


HOSTILE = [
    "", " ", "\x00", "\x00\x01\x02", "\ud800", "Niger \udfff", "AND", "OR NOT", "title:", "body:(", '"', '"unclosed phrase', "a:b^",
    "[* TO *]", "{x TO", "~5", "*", "?", "+-+-", "\\", "NOT NOT", "IN [", "/regex(/", "'" * 99, "(" * 5_000, "Niger " * 5_000,
    "x" * 10_000, "é" * 10_000, "Von Der The Of And " * 500, "A B " * 2_000, "🇳🇪", "ﷺ" * 3000, "\n\t\r", "\u202eregiN",
]  # fmt: skip


@pytest.mark.parametrize("query", HOSTILE)
def test_hostile_strings_never_raise(query: str) -> None:
    assert isinstance(toy_world().index.search(query, 3), list)


@given(st.text(st.characters(exclude_categories=()), max_size=300))
@settings(max_examples=200, deadline=None)
def test_no_string_raises(query: str) -> None:
    assert all(isinstance(hit, Hit) for hit in toy_world().index.search(query, 3))


def test_query_syntax_is_read_as_words() -> None:
    assert _titles("Niger -borders +NOT (currency:*)", 1) == _titles("Niger borders NOT currency", 1)
    assert _titles('title:"Niger"', 5) == _titles("title Niger", 5)


def test_a_stored_index_answers_like_one_in_memory(tmp_path: Path) -> None:
    documents = toy_world().documents.values()
    SearchIndex.build(documents, tmp_path / "index")
    stored, memory = SearchIndex.open(tmp_path / "index"), SearchIndex.build(documents)
    for query in ("borders Niger", "West African CFA franc", "capital"):
        assert stored.search(query, 5) == memory.search(query, 5)


def test_an_empty_index_finds_nothing() -> None:
    assert SearchIndex.build([]).search("anything", 3) == []


def test_sentences_are_lines_and_long_lines_are_cut_after_stops() -> None:
    assert split_sentences("The capital is St. John's.\n\nIt rains.") == ["The capital is St. John's.", "It rains."]
    long = "A first sentence of some length. " * 12
    assert split_sentences(long) == ["A first sentence of some length."] * 12


def test_a_long_page_without_lines_still_gives_a_short_snippet() -> None:
    text = "Nothing here is of any use. " * 30 + "The password is swordfish. " + "More of the same follows. " * 30
    index = SearchIndex.build([Document(id="a", title="A", text=text, hash="")])
    assert index.search("what is the password", 1)[0].snippet.startswith("The password is swordfish.")
