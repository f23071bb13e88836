"""Oracle scripts solve tasks by what the tools show, and go wrong only where told to."""

import asyncio
import random

import pytest

from pipeline.families.hard_search.oracle import GIVEN_UP, Flaw, Move, Oracle, content_words, plain
from rl.tools import world_tools
from schemas.query import Band, Clue, EntityRef, Query
from tests.worlds import toy_world

WORLD = toy_world()
TOOLS = world_tools(WORLD)


def borders(country: str) -> Clue:
    return Clue(relation="borders", target=EntityRef(entity=f"country/{country}"))


def moves(query: Query, flaw: Flaw | None = None) -> list[Move]:
    """All moves of the script, each call answered by the real tool."""

    async def follow() -> list[Move]:
        script = Oracle(WORLD).script(query, random.Random(0), flaw)
        made = [next(script)]
        while made[-1].call is not None:
            call = made[-1].call
            shown = await TOOLS[call.name](call.arguments) if call.name in TOOLS else "error: unknown tool"
            made.append(script.send(shown))
        return made

    return asyncio.run(follow())


FLAT = Query(type="country", clues=(borders("sudan"), borders("libya"), borders("niger")))
"""Only Chad borders all three."""


def test_flat_clues_are_combined_in_one_search() -> None:
    search, answer = moves(FLAT)
    assert search.call is not None
    assert search.call.arguments == {"queries": ["Sudan Libya Niger"]}
    assert answer.answer == "Chad"


def test_a_description_is_resolved_before_its_name_is_used() -> None:
    chad = Query(type="country", clues=(Clue(relation="capital", target=EntityRef(entity="capital-city/n'djamena")),))
    query = Query(type="country", clues=(borders("benin"), borders("niger"), Clue(relation="borders", target=chad)))
    first, second, answer = moves(query)
    assert first.call is not None and second.call is not None
    assert first.call.arguments == {"queries": ["N'Djamena"]}
    assert (second.thought, second.call.arguments) == ("Chad", {"queries": ["Benin Niger Chad"]})
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
    assert made[0].call is not None
    assert made[0].call.arguments == {"queries": ["Chad Benin official language"]}
    assert made[-1].answer == "French"


def test_a_number_is_left_out_of_the_search() -> None:
    query = Query(type="country", clues=(borders("libya"), Clue(relation="area", target=Band(high=200_000.0))))
    made = moves(query)
    assert made[0].call is not None
    assert made[0].call.arguments == {"queries": ["Libya"]}
    assert "country/tunisia" in WORLD.certain(query)


@pytest.mark.parametrize("flaw", ["wrong_candidate", "gives_up"])
def test_a_flaw_spoils_the_answer(flaw: Flaw) -> None:
    assert moves(FLAT, flaw)[-1].answer != "Chad"


def test_giving_up_says_so() -> None:
    assert moves(FLAT, "gives_up")[-1].answer == GIVEN_UP


def test_an_ignored_clue_is_missing_from_the_search() -> None:
    first = moves(FLAT, "ignored_clue")[0]
    assert first.call is not None
    assert len(str(first.call.arguments["queries"]).split()) == 2


def test_an_unknown_tool_is_called_once_and_the_answer_still_found() -> None:
    first, *_, last = moves(FLAT, "unknown_tool")
    assert first.call is not None and first.call.name not in TOOLS
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
