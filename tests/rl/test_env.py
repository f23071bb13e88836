import asyncio
import time
from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import JsonValue, ValidationError

from infra.tools.base import Effect, ToolResult, ToolSpec
from infra.tools.local import LocalTools
from rl.env import Env, EnvError, Observation, Snapshot
from schemas.answer import EntityAnswer
from schemas.episode import ContextOptions, Limits
from schemas.query import Clue, EntityRef, Query
from schemas.task import Lineage, Task
from schemas.trajectory import StopReason
from tests.rl.tiny import FORMAT, sampled

SEARCH = '<tool_call>{"name": "search", "arguments": {"query": "Niger"}}</tool_call><|end|>'
ANSWER = "<answer>Niger</answer><|end|>"
BROKEN = "no call at all<|end|>"
CUT = '<tool_call>{"name": "search"'


class RecordingTool:
    """Answers with what it was asked, and remembers it."""

    effect = Effect.READ

    def __init__(self) -> None:
        self.asked: list[Any] = []
        schema = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
        self.specs = (ToolSpec("search", "Search.", schema, self.effect),)

    async def call(self, session: str, name: str, arguments: Mapping[str, JsonValue]) -> ToolResult:
        self.asked.append(arguments["query"])
        return ToolResult(f"result for {arguments['query']}", sources=(str(arguments["query"]),))

    async def end(self, session: str) -> None:
        pass

    async def close(self) -> None:
        pass


class CrashingTool(RecordingTool):
    async def call(self, session: str, name: str, arguments: Mapping[str, JsonValue]) -> ToolResult:
        raise ConnectionError("index is gone")


class RememberingTool(RecordingTool):
    """Answers with everything its session has asked so far."""

    effect = Effect.SESSION

    def __init__(self) -> None:
        super().__init__()
        self.sessions: dict[str, list[str]] = {}

    async def call(self, session: str, name: str, arguments: Mapping[str, JsonValue]) -> ToolResult:
        self.sessions.setdefault(session, []).append(str(arguments["query"]))
        return ToolResult(" ".join(self.sessions[session]))

    async def end(self, session: str) -> None:
        self.sessions.pop(session, None)


def search(query: str) -> str:
    """A turn that asks for it."""
    return SEARCH.replace("Niger", query)


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
    """What a scripted policy is told, turn by turn, in an episode of its own."""
    await env.close()
    env.reset(task("search"))
    return [await env.step(sampled(turn)) for turn in turns]


def env(tool: RecordingTool | None = None, **limits: Any) -> Env:
    return Env(LocalTools([tool or RecordingTool()]), FORMAT, Limits(**limits))


async def test_an_answer_ends_the_episode() -> None:
    searched, answered = await play(env(), SEARCH, ANSWER)
    assert searched.text == "result for Niger" and not searched.done
    assert answered.stop is StopReason.ANSWERED and answered.answer == "Niger"


async def test_the_prompt_grows_by_what_was_sampled_and_what_was_shown() -> None:
    it = env()
    first = it.reset(task("search"))
    assert first == it.prompt == FORMAT.opening(task().question, ())
    seen = await it.step(sampled(SEARCH))
    assert it.shown == FORMAT.observation(["result for Niger"])
    assert it.prompt == first + sampled(SEARCH) + it.shown
    assert seen.text == "result for Niger" and it.segment == 0


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


async def test_a_tool_that_crashes_is_down_and_says_how() -> None:
    (seen,) = await play(env(CrashingTool()), SEARCH)
    assert seen.stop is StopReason.TOOL_DOWN and "ConnectionError: index is gone" in seen.error


async def test_the_same_calls_over_and_over_end_the_episode_as_a_loop() -> None:
    tool = RecordingTool()
    seen = await play(env(tool, repeats=2), SEARCH, SEARCH, search("Mali"), SEARCH, SEARCH, SEARCH)
    assert [s.stop for s in seen] == [None, None, None, None, None, StopReason.LOOP]
    assert tool.asked == ["Niger", "Niger", "Mali", "Niger", "Niger"]


@pytest.mark.parametrize(("turn", "fault"), [("<|end|>", "no_action"), ("<answer> </answer><|end|>", "empty_answer")])
async def test_a_policy_that_goes_on_saying_nothing_has_no_answer(turn: str, fault: str) -> None:
    first, second = await play(env(), turn, turn)
    assert (first.stop, first.fault, second.stop, second.fault) == (None, fault, StopReason.NO_ANSWER, fault)


async def test_side_by_side_reads_are_shown_in_the_order_of_their_calls() -> None:
    class SlowerFirst(RecordingTool):
        async def call(self, session: str, name: str, arguments: Mapping[str, JsonValue]) -> ToolResult:
            await asyncio.sleep(0.2 if arguments["query"] == "a" else 0.1)
            return await super().call(session, name, arguments)

    tool = SlowerFirst()
    started = time.monotonic()
    (seen,) = await play(env(tool), search("a").removesuffix("<|end|>") + search("b"))
    assert (tool.asked, seen.text) == (["b", "a"], "result for a\nresult for b")
    assert time.monotonic() - started < 0.3


async def test_calls_that_change_a_session_are_made_in_order() -> None:
    (seen,) = await play(env(RememberingTool()), search("a").removesuffix("<|end|>") + search("b"))
    assert seen.text == "a\na b"


async def test_a_restored_episode_goes_on_as_if_it_had_never_stopped() -> None:
    def fresh() -> Env:
        return env(RememberingTool(), shown_errors=1, repeats=2)

    whole = fresh()
    through = await play(whole, search("a"), BROKEN, search("b"), search("b"))
    first = fresh()
    await play(first, search("a"), BROKEN, search("b"))
    stored = first.snapshot().model_dump_json()
    again = fresh()
    assert again.restore(task("search"), Snapshot.model_validate_json(stored)) == first.prompt
    seen = await again.step(sampled(search("b")))
    assert seen == through[-1] and seen.text == "a b b"
    assert again.prompt == whole.prompt
    assert (await again.step(sampled(search("b")))).stop is StopReason.LOOP


async def test_a_snapshot_of_another_task_is_refused() -> None:
    it = env()
    it.reset(task("search"))
    other = it.snapshot().model_copy(update={"task_id": "f" * 16})
    await it.close()
    with pytest.raises(EnvError, match="snapshot of task ffffffffffffffff: is not one of"):
        it.restore(task("search"), other)


def test_a_window_too_small_for_what_is_kept_is_refused() -> None:
    with pytest.raises(ValidationError, match="max_tokens=300: a window of 1000 is too small"):
        Limits(context=1000, max_tokens=300, management=ContextOptions(mode="drop", keep=0.6, memory=0.2))


def test_a_tool_called_like_one_of_the_environment_s_own_is_refused() -> None:
    tool = RecordingTool()
    tool.specs = (ToolSpec("note", "", {}),)
    with pytest.raises(EnvError, match=r"tools \['note'\]: the environment has tools of that name"):
        Env(LocalTools([tool]), FORMAT, Limits(management=ContextOptions(mode="drop")))


async def test_a_task_gets_the_tools_it_names_and_no_others() -> None:
    it = env()
    it.reset(task())
    assert (await it.step(sampled(SEARCH))).text == "error: unknown tool"
    await it.close()
    with pytest.raises(EnvError, match=r"tools \['python'\] of task .*: not among \['search'\]"):
        it.reset(task("python"))


async def test_a_step_outside_an_episode_is_refused() -> None:
    it = env()
    with pytest.raises(EnvError, match="call reset first"):
        await it.step(sampled(ANSWER))
    await play(it, ANSWER)
    with pytest.raises(EnvError, match="the episode is over"):
        await it.step(sampled(ANSWER))
    with pytest.raises(EnvError, match="an episode is running; close it first"):
        it.reset(task("search"))


async def test_a_reset_forgets_the_last_episode() -> None:
    it = env(max_turns=2)
    await play(it, BROKEN, ANSWER)
    assert [seen.stop for seen in await play(it, BROKEN, ANSWER)] == [None, StopReason.ANSWERED]


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("turns", -5),
        ("errors", -1),
        ("repeated", -1),
        ("context.turns", -1),
        ("context.unsampled", -3),
        ("context.unsampled", 10**9),
        ("context.opening", (10**9,)),
        ("context.opening", (-1,)),
    ],
)
async def test_a_snapshot_that_is_no_state_of_an_episode_is_refused(where: str, value: Any) -> None:
    env = Env(LocalTools([RecordingTool()]), FORMAT)
    env.reset(task("search"))
    await env.step(sampled(SEARCH))
    good = env.snapshot()
    await env.close()
    *outer, name = where.split(".")
    changed = {name: value}
    bad = good.model_copy(update={"context": good.context.model_copy(update=changed)} if outer else changed)
    with pytest.raises(EnvError, match=r"^snapshot of task "):
        env.restore(task("search"), bad)
    env.restore(task("search"), good)
    await env.close()


async def test_a_snapshot_that_owes_a_summary_of_nothing_is_refused() -> None:
    env = Env(LocalTools([RecordingTool()]), FORMAT)
    env.reset(task("search"))
    good = env.snapshot()
    await env.close()
    bad = good.model_copy(update={"context": good.context.model_copy(update={"owes_summary": True})})
    with pytest.raises(EnvError, match="owes_summary=true: there is no turn"):
        env.restore(task("search"), bad)


@pytest.mark.parametrize("id", [-1, 10**6, 2**40])
async def test_a_sampled_id_that_is_no_token_ends_the_episode(id: int) -> None:
    env = Env(LocalTools([RecordingTool()]), FORMAT)
    env.reset(task("search"))
    assert await env.step((id, FORMAT.end)) == Observation(stop=StopReason.FORMAT, fault="unknown_token")
    await env.close()
