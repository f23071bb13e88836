"""What stays in the window, in which form, and what the policy is told of the rest."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.tools.base import ToolResult
from rl.context import HELD_BACK, REQUEST, Context
from schemas.episode import ContextOptions
from schemas.trajectory import ToolCall
from tests.rl.tiny import FORMAT, sampled

QUESTION = "Which?"
TURN = 40
DROP = ContextOptions(mode="drop", keep=0.5, memory=0.1, short=3)
SUMMARISE = ContextOptions(mode="summarise", keep=0.5, memory=0.1, short=3)


def context(options: ContextOptions = DROP, window: int = 700) -> Context:
    """Tokens are bytes here, and control tokens."""
    return Context(FORMAT, options, window, QUESTION, ())


def page(name: str, words: int = 20) -> ToolResult:
    """About 5 tokens a word."""
    return ToolResult(f"{name}: " + " ".join(["word"] * words), sources=(name,))


def call(text: str) -> tuple[int, ...]:
    return sampled(f"<tool_call>{text}</tool_call><|end|>")


def read(context: Context, *names: str, words: int = 20) -> None:
    for name in names:
        context.add(call(f"open {name}"), [page(name, words)], TURN)


def text(context: Context) -> str:
    return FORMAT.decode(context.prompt)


def test_off_only_ever_grows() -> None:
    it = context(ContextOptions(), window=300)
    before = it.prompt
    for name in "ABCD":
        read(it, name)
        assert it.prompt[: len(before)] == before and it.state.segment == 0
        before = it.prompt
    assert it.room < 0


def test_what_fits_is_left_as_it_is() -> None:
    it = context()
    read(it, "A", "B", "C")
    assert it.state.segment == 0
    assert it.prompt == FORMAT.opening(QUESTION, ()) + tuple(
        id for name in "ABC" for id in (*call(f"open {name}"), *FORMAT.observation([page(name).text]))
    )
    assert it.shown == FORMAT.observation([page("C").text])


def test_a_rewrite_keeps_the_last_pages_whole_cuts_those_before_and_names_the_rest() -> None:
    it = context()
    read(it, *"ABCDEF")
    assert it.state.segment == 1 and it.room >= TURN
    assert it.shown == it.prompt
    assert page("F").text in text(it)
    assert "E: word word [cut: 3 of 21 words]" in text(it)
    assert text(it).startswith(f"<|bos|><|user|>{QUESTION}\n\nRead before and dropped: A")
    assert "open A" not in text(it)


def test_a_page_that_a_later_turn_names_outlives_newer_ones() -> None:
    it = context()
    read(it, *"ABCD")
    it.add(call("A again"), [page("E")], TURN)
    it.add(call("more"), [page("F")], TURN)
    assert it.state.segment == 1
    assert "A: word" in text(it)
    assert "B" in it.state.gone and "A" not in it.state.gone


def test_sampled_turns_stay_whole_or_go_whole() -> None:
    it = context()
    read(it, *"ABCDEFGH")
    kept = [entry.sampled for entry in it.state.entries]
    assert kept and all(ids in [call(f"open {name}") for name in "ABCDEFGH"] for ids in kept)


def test_plan_and_notes_are_in_sight_after_a_rewrite() -> None:
    it = context()
    assert it.remember(ToolCall(name="plan", arguments={"text": "look"})).text == "written down"
    it.remember(ToolCall(name="note", arguments={"text": "A is it"}))
    it.remember(ToolCall(name="note", arguments={"text": "B is not"}))
    read(it, *"ABCDEF")
    assert f"{QUESTION}\n\nPlan: look\n\nNotes:\nA is it\nB is not\n\nRead before" in text(it)
    it.remember(ToolCall(name="note", arguments={"text": "only this", "replace": True}))
    assert it.state.notes == ("only this",)


def test_notes_that_would_fill_the_window_are_refused_and_change_nothing() -> None:
    it = context()
    result = it.remember(ToolCall(name="note", arguments={"text": "x" * 200}))
    assert result.error and result.text == "error: plan and notes would take 207 of 70 tokens; write them shorter"
    assert it.state.notes == ()


def test_a_page_larger_than_the_window_is_cut_until_it_fits() -> None:
    it = context()
    read(it, "A", words=1000)
    assert it.room >= TURN
    assert "of 1001 words]" in text(it)


def test_a_summary_is_asked_for_and_takes_the_place_of_what_it_sums_up() -> None:
    it = context(SUMMARISE)
    for name in "ABCDEF":
        read(it, name)
        if it.state.owes_summary:
            break
    assert text(it).endswith(f"{HELD_BACK}</tool_response><|end|><|user|>{REQUEST}<|end|><|assistant|>")
    assert it.room >= it.memory_tokens
    last = name
    assert it.summarise(sampled("A is out<|end|>"), TURN)
    assert it.state.segment == 1 and not it.state.owes_summary
    assert f"{QUESTION}\n\nNotes:\nA is out\n\nRead before and dropped: A" in text(it)
    assert page(last).text in text(it) and text(it).count("<tool_response>") == 1


def test_a_summary_that_is_none_leaves_it_to_use() -> None:
    it = context(SUMMARISE)
    while not it.state.owes_summary:
        read(it, "A")
    assert not it.summarise(sampled("<tool_call>{}</tool_call><|end|>"), TURN)
    assert it.state.notes == () and it.state.segment == 1 and it.room >= TURN


@pytest.mark.parametrize("options", [DROP, SUMMARISE], ids=["drop", "summarise"])
@given(pages=st.lists(st.tuples(st.integers(0, 400), st.sampled_from("ABCDEFGH")), max_size=30))
def test_there_is_always_room_for_the_next_turn_and_segments_only_grow(
    options: ContextOptions, pages: Sequence[tuple[int, str]]
) -> None:
    it = context(options)
    seen = it.prompt
    for words, name in pages:
        segment = it.state.segment
        it.add(call(f"open {name}"), [page(name, words)], TURN)
        if it.state.owes_summary:
            assert it.room >= it.memory_tokens
            assert it.prompt == seen + call(f"open {name}") + it.shown
            it.summarise(sampled("noted<|end|>"), TURN)
        assert it.room >= TURN
        if it.state.segment == segment:
            assert it.prompt == seen + call(f"open {name}") + it.shown
        else:
            assert it.shown == it.prompt
        seen = it.prompt
