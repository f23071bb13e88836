"""One token a name, exact text back, and no way for a text to become a control token."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.families.hard_search.oracle import plain
from rl.formats import TurnFormat, load_format
from rl.formats.ours import CONTROL_TOKENS
from rl.starter.tokenizer import SCAFFOLD, build_tokenizer
from rl.tokens import Answer, ToolCalls
from schemas.trajectory import ToolCall
from tests.worlds import toy_world

WORLD = toy_world()
NAMES = sorted({plain(e.name) for e in WORLD.entities.values()})
TEXTS = [d.text for d in WORLD.documents.values()]


@pytest.fixture(scope="module")
def format(tmp_path_factory: pytest.TempPathFactory) -> TurnFormat:
    folder: Path = tmp_path_factory.mktemp("tokenizer")
    build_tokenizer(NAMES, TEXTS, words=100, pieces=200, context=512).save_pretrained(folder)
    return load_format(folder)


@given(
    st.text()
    | st.lists(st.sampled_from([*NAMES, *CONTROL_TOKENS, *SCAFFOLD, " ", "\n", ", ", "1,960", "é"])).map("".join)
)
@settings(max_examples=300, deadline=None)
def test_any_text_comes_back_as_it_was(format: TurnFormat, text: str) -> None:
    assert format.decode(format.encode(text)) == text


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_one_token_wherever_it_stands(format: TurnFormat, name: str) -> None:
    (id,) = format.encode(name)
    assert [format.encode(f"It borders {name}, or not.").count(id), format.encode(f"{name}: x").index(id)] == [1, 0]


def test_a_longer_name_is_not_cut_at_a_shorter_one(format: TurnFormat) -> None:
    assert len({format.encode(name) for name in ("Niger", "Nigeria", "Guinea", "Guinea-Bissau")}) == 4
    assert format.encode("Niger")[0] not in format.encode("Nigerien")


@given(st.lists(st.sampled_from([*CONTROL_TOKENS, "x", " "]), min_size=1).map("".join))
def test_a_text_that_spells_control_tokens_stays_text(format: TurnFormat, text: str) -> None:
    controls = {format.end, *format.turn(Answer("x"))[:1], *format.observation([""])}
    assert not controls & set(format.encode(text))


def test_the_frame_of_a_call_is_two_tokens(format: TurnFormat) -> None:
    """`<tool_call>`, frame, two names and a space, frame, `</tool_call>`, `<|end|>`: 8 tokens."""
    call = ToolCall(name="search", arguments={"queries": ["Niger Hausa"]})
    turn = format.turn(ToolCalls((call,)))
    assert len(turn) == 8
    assert (
        format.decode(turn)
        == '<tool_call>{"name": "search", "arguments": {"queries": ["Niger Hausa"]}}</tool_call><|end|>'
    )


def test_a_frequent_word_is_one_token_and_a_rare_one_several(format: TurnFormat) -> None:
    assert len(format.encode(" borders")) == 1
    assert len(format.encode(" quizzical")) > 1


def test_equal_texts_make_equal_tokenizers() -> None:
    one, two = (build_tokenizer(NAMES, TEXTS, words=50, pieces=150, context=512) for _ in range(2))
    assert one.backend_tokenizer.to_str() == two.backend_tokenizer.to_str()
