"""Oracle scripts solve tasks by what the tools show, and go wrong only where told to."""

import random

import pytest
from pydantic import JsonValue

from pipeline.families.hard_search.oracle import GIVEN_UP, Flaw, Move, Oracle, content_words, plain
from schemas.query import Band, Clue, EntityRef, Query
from tests.pipeline.families.hard_search.scripts import followed
from tests.worlds import toy_world

WORLD = toy_world()


def borders(country: str) -> Clue:
    return Clue(relation="borders", target=EntityRef(entity=f"country/{country}"))


def moves(query: Query, flaw: Flaw | None = None) -> list[Move]:
    """All moves of the script, each call answered by the real tool."""
    return followed(Oracle(WORLD).script(query, random.Random(0), flaw), WORLD)


def asked(move: Move) -> dict[str, JsonValue]:
    """The arguments of the move's one call."""
    (call,) = move.calls
    return call.arguments


FLAT = Query(type="country", clues=(borders("sudan"), borders("libya"), borders("niger")))
"""Only Chad borders all three."""


def test_flat_clues_are_combined_in_one_search() -> None:
    search, answer = moves(FLAT)
    assert asked(search) == {"queries": ["Sudan Libya Niger"]}
    assert answer.answer == "Chad"


def test_a_description_is_resolved_before_its_name_is_used() -> None:
    chad = Query(type="country", clues=(Clue(relation="capital", target=EntityRef(entity="capital-city/n'djamena")),))
    query = Query(type="country", clues=(borders("benin"), borders("niger"), Clue(relation="borders", target=chad)))
    first, second, answer = moves(query)
    assert asked(first) == {"queries": ["N'Djamena"]}
    assert (second.thought, asked(second)) == ("Chad", {"queries": ["Benin Niger Chad"]})
    assert answer.answer == "Nigeria"


def test_what_another_page_says_of_the_answer_is_asked_with_words_of_the_relation() -> None:
    query = Query(
        type="language",
        clues=tuple(
            Clue(relation="official_language", inverse=True, target=EntityRef(entity=f"country/{c}"))
            for c in ("chad", "benin")
        ),
    )
    made = moves(query)
    assert asked(made[0]) == {"queries": ["Chad Benin official language"]}
    assert made[-1].answer == "French"


def test_a_number_is_left_out_of_the_search() -> None:
    query = Query(type="country", clues=(borders("libya"), Clue(relation="area", target=Band(high=200_000.0))))
    made = moves(query)
    assert asked(made[0]) == {"queries": ["Libya"]}
    assert "country/tunisia" in WORLD.certain(query)


@pytest.mark.parametrize("flaw", ["wrong_candidate", "gives_up"])
def test_a_flaw_spoils_the_answer(flaw: Flaw) -> None:
    assert moves(FLAT, flaw)[-1].answer != "Chad"


def test_giving_up_says_so() -> None:
    assert moves(FLAT, "gives_up")[-1].answer == GIVEN_UP


def test_an_ignored_clue_is_missing_from_the_search() -> None:
    first = moves(FLAT, "ignored_clue")[0]
    assert len(str(asked(first)["queries"]).split()) == 2


def test_an_unknown_tool_is_called_once_and_the_answer_still_found() -> None:
    first, *_, last = moves(FLAT, "unknown_tool")
    assert [call.name for call in first.calls] == ["find"]
    assert last.answer == "Chad"


def test_equal_random_states_give_equal_scripts() -> None:
    assert moves(FLAT, "ignored_clue") == moves(FLAT, "ignored_clue")


def test_names_lose_their_article_only() -> None:
    names = ["the Gambia", "a unicameral legislature", "an absolute monarchy", "Andorra", "the"]
    assert [plain(n) for n in names] == ["Gambia", "unicameral legislature", "absolute monarchy", "Andorra", "the"]


def test_content_words_leave_out_function_words_and_slots() -> None:
    assert content_words("The official [language|languages] of {s} [is|are] {o}.") == [
        "official",
        "language",
        "languages",
    ]
