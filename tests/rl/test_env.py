import asyncio
import time
from typing import Any

import pytest
from pydantic import JsonValue

from infra.tools.base import Schema
from rl.env import Env, EnvError, Limits, Observation
from schemas.answer import EntityAnswer
from schemas.query import Clue, EntityRef, Query
from schemas.task import Lineage, Task
from schemas.trajectory import StopReason
from tests.rl.tiny import FORMAT, sampled

QUERY_SCHEMA: Schema = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
SEARCH = '<tool_call>{"name": "search", "arguments": {"query": "Niger"}}</tool_call><|end|>'
ANSWER = "<answer>Niger</answer><|end|>"
BROKEN = "no call at all<|end|>"
CUT = '<tool_call>{"name": "search"'


class RecordingTool:
    """Answers with what it was asked, and remembers it."""

    schema = QUERY_SCHEMA

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def __call__(self, arguments: dict[str, JsonValue]) -> str:
        self.asked.append(arguments["query"])
        return f"result for {arguments['query']}"


class HangingTool(RecordingTool):
    async def __call__(self, arguments: dict[str, JsonValue]) -> str:
        await asyncio.sleep(3600)
        raise AssertionError


class CrashingTool(RecordingTool):
    async def __call__(self, arguments: dict[str, JsonValue]) -> str:
        raise ConnectionError("index is gone")


def task(*tools: str) -> Task:
    return Task.create(
        family="hard_search",
        stratum="hard_search/1/search/entity/none",
        question="Which country has the capital Niamey?",
        answer=EntityAnswer(entity="country/niger", name="Niger"),
        tools=tools,
        constraints=Query(type="country", clues=(Clue(relation="capital", target=EntityRef(entity="city/niamey")),)),
        lineage=Lineage(generator="test", version="1", seed=0, index=0, knobs={}),
    )


async def play(env: Env, *turns: str) -> list[Observation]:
    """What a scripted policy is told, turn by turn."""
    env.reset(task("search"))
    return [await env.step(sampled(turn)) for turn in turns]


def env(tool: RecordingTool | None = None, **limits: Any) -> Env:
    return Env({"search": tool or RecordingTool()}, FORMAT, Limits(**limits))


async def test_an_answer_ends_the_episode() -> None:
    searched, answered = await play(env(), SEARCH, ANSWER)
    assert searched.text == "result for Niger" and not searched.done
    assert answered.stop is StopReason.ANSWERED and answered.answer == "Niger"


async def test_the_prompt_grows_by_what_was_sampled_and_what_was_shown() -> None:
    it = env()
    first = it.reset(task("search"))
    assert first == it.prompt == FORMAT.opening(task().question, ())
    seen = await it.step(sampled(SEARCH))
    assert it.prompt == first + sampled(SEARCH) + FORMAT.observation(["result for Niger"])
    assert seen.ids == FORMAT.observation(["result for Niger"])


async def test_calls_of_one_turn_are_made_in_order_and_shown_together() -> None:
    tool = RecordingTool()
    twice = '<tool_call>{"name": "search", "arguments": {"query": "a"}}</tool_call>' + SEARCH
    (seen,) = await play(env(tool), twice)
    assert tool.asked == ["a", "Niger"]
    assert seen.text == "result for a\nresult for Niger"


async def test_one_bad_call_among_good_ones_makes_none() -> None:
    tool = RecordingTool()
    (seen,) = await play(env(tool), '<tool_call>{"name": "open", "arguments": {}}</tool_call>' + SEARCH)
    assert tool.asked == []
    assert seen.text == "error: unknown tool"


async def test_the_first_format_error_is_shown_and_the_second_ends_the_episode() -> None:
    first, second = await play(env(), BROKEN, BROKEN)
    assert first.text == "error: text outside" and not first.done
    assert second.stop is StopReason.FORMAT and second.text is None
    assert [seen.stop for seen in await play(env(shown_errors=0), BROKEN)] == [StopReason.FORMAT]


async def test_a_call_cut_by_the_token_limit_is_never_made() -> None:
    tool = RecordingTool()
    complete_call_then_cut = SEARCH.removesuffix("<|end|>") + CUT
    for turn in (CUT, complete_call_then_cut, SEARCH.removesuffix("<|end|>")):
        (seen,) = await play(env(tool), turn)
        assert seen.stop is StopReason.MAX_TOKENS
    assert tool.asked == []


async def test_calls_of_the_last_turn_are_not_made() -> None:
    tool = RecordingTool()
    _, last = await play(env(tool, max_turns=2), SEARCH, SEARCH)
    assert last.stop is StopReason.MAX_TURNS and len(last.calls) == 1
    assert tool.asked == ["Niger"]
    assert (await play(env(max_turns=2), SEARCH, ANSWER))[1].stop is StopReason.ANSWERED


async def test_a_full_window_is_told_from_a_long_turn() -> None:
    prompt = len(FORMAT.opening(task().question, ()))
    shown = prompt + len(sampled(SEARCH)) + len(FORMAT.observation(["result for Niger"]))
    (seen,) = await play(env(context=shown), SEARCH)
    assert seen.stop is StopReason.CONTEXT_OVERFLOW and seen.text == "result for Niger"
    (cut,) = await play(env(context=prompt + 20, max_tokens=21), CUT)
    assert cut.stop is StopReason.CONTEXT_OVERFLOW
    (cut,) = await play(env(context=prompt + 20, max_tokens=20), CUT)
    assert cut.stop is StopReason.MAX_TOKENS


def test_a_question_longer_than_the_window_leaves_no_budget() -> None:
    it = env(context=10)
    assert len(it.reset(task("search"))) > 10
    assert it.budget == 0


async def test_a_tool_that_hangs_is_down_after_its_time() -> None:
    started = time.monotonic()
    (seen,) = await play(env(HangingTool(), tool_seconds=0.05), SEARCH)
    assert seen.stop is StopReason.TOOL_DOWN and seen.error == "search: no answer within 0.05 s"
    assert time.monotonic() - started < 5


async def test_a_tool_that_crashes_is_down_and_says_how() -> None:
    (seen,) = await play(env(CrashingTool()), SEARCH)
    assert (seen.stop, seen.error) == (StopReason.TOOL_DOWN, "search: ConnectionError: index is gone")


async def test_a_task_gets_the_tools_it_names_and_no_others() -> None:
    it = env()
    it.reset(task())
    assert (await it.step(sampled(SEARCH))).text == "error: unknown tool"
    with pytest.raises(EnvError, match=r"tools \['python'\] of task .*: not among \['search'\]"):
        it.reset(task("python"))


async def test_a_step_outside_an_episode_is_refused() -> None:
    it = env()
    with pytest.raises(EnvError, match="call reset first"):
        await it.step(sampled(ANSWER))
    await play(it, ANSWER)
    with pytest.raises(EnvError, match="call reset first"):
        await it.step(sampled(ANSWER))


async def test_a_reset_forgets_the_last_episode() -> None:
    it = env(max_turns=2)
    await play(it, BROKEN, ANSWER)
    assert [seen.stop for seen in await play(it, BROKEN, ANSWER)] == [None, StopReason.ANSWERED]
