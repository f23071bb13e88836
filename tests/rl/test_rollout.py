import dataclasses
import time
from typing import Any

import pytest

from infra.client import ModelClient
from infra.endpoint import EngineDied
from infra.journal import Journal
from pipeline.solver import SolverDown
from rl.env import Env
from rl.rollout import ServedSampler, rollout, turn_seed
from rl.tooling import local_tools
from schemas.episode import Limits
from schemas.trajectory import StopReason, Trajectory
from tests.rl.servers import HangingPolicy, ScriptedPolicy, served
from tests.rl.test_env import ANSWER, BROKEN, CUT, task
from tests.rl.tiny import FORMAT, rendered, sampled
from tests.worlds import toy_world

LOOK_UP = (
    '<think>look</think><tool_call>{"name": "search", "arguments": {"queries": ["capital Niamey"]}}</tool_call><|end|>'
)
OPEN = '<tool_call>{"name": "open", "arguments": {"id": "Niger"}}</tool_call><|end|>'
BOS = sampled("<|bos|>")[0]


async def attempt(
    policy: ScriptedPolicy,
    *,
    seed: int = 5,
    journal: Journal | None = None,
    limits: Limits | None = None,
    temperature: float = 1.0,
    **more: Any,
) -> Trajectory:
    with served(policy) as endpoint:
        async with ModelClient(endpoint, journal) as client:
            env = Env(local_tools(toy_world()), FORMAT, limits)
            asked = task("open", "search")
            sampler = ServedSampler(client, "r1", temperature)
            return await rollout(asked, seed, env=env, sampler=sampler, solver="scripted@r1", **more)


async def test_a_policy_that_looks_up_and_answers_is_recorded_turn_by_turn() -> None:
    found = await attempt(ScriptedPolicy(LOOK_UP, OPEN, ANSWER))
    assert (found.stop, found.answer, found.error) == (StopReason.ANSWERED, "Niger", "")
    assert [turn.text for turn in found.turns] == [LOOK_UP, OPEN, ANSWER]
    assert [[call.name for call in turn.tool_calls] for turn in found.turns] == [["search"], ["open"], []]
    assert found.turns[0].observation is not None and "Niamey" in found.turns[0].observation
    assert found.turns[1].observation is not None and found.turns[1].observation.startswith("Niger, section 1 of")
    assert found.turns[2].observation is None
    assert {turn.version for turn in found.turns} == {"r1"}
    assert all(len(turn.logprobs) == len(turn.output_ids) for turn in found.turns)
    assert len({turn.call_id for turn in found.turns}) == 3


async def test_every_prompt_the_engine_saw_is_a_prefix_of_the_rendered_episode() -> None:
    policy = ScriptedPolicy(LOOK_UP, OPEN, ANSWER)
    found = await attempt(policy)
    ids, mask = rendered(task().question, found.turns)
    prompts = [tuple(request["prompt"]) for request in policy.requests]
    for prompt, turn in zip(prompts, found.turns, strict=True):
        assert turn.prompt_tokens == len(prompt)
        assert ids[: len(prompt) + len(turn.output_ids)] == prompt + turn.output_ids
        assert prompt.count(BOS) == 1
    assert [id for id, sampled_here in zip(ids, mask, strict=True) if sampled_here] == [
        id for turn in found.turns for id in turn.output_ids
    ]
    assert found.tokens == sum(map(len, prompts)) + sum(mask)


async def test_turns_sample_with_their_own_seeds_under_the_version_s_salt() -> None:
    policy = ScriptedPolicy(LOOK_UP, ANSWER)
    await attempt(policy, seed=5, temperature=0.7)
    assert [request["seed"] for request in policy.requests] == [turn_seed(5, 0), turn_seed(5, 1)]
    assert turn_seed(5, 0) != turn_seed(5, 1)
    for request in policy.requests:
        assert (request["cache_salt"], request["temperature"]) == ("r1", 0.7)
        assert request["stop_token_ids"] == list(FORMAT.ends)


async def test_a_repeated_attempt_costs_no_model_call(tmp_path: Any) -> None:
    with Journal(tmp_path / "journal.db") as journal, served(policy := ScriptedPolicy(LOOK_UP, ANSWER)) as endpoint:
        async with ModelClient(endpoint, journal) as client:
            env = Env(local_tools(toy_world()), FORMAT)
            asked = task("open", "search")
            twice = [
                await rollout(asked, 5, env=env, sampler=ServedSampler(client, "r1"), solver="scripted@r1")
                for _ in range(2)
            ]
    assert twice[0] == twice[1]
    assert len(policy.requests) == 2


async def test_a_call_cut_at_the_token_limit_ends_the_attempt_unanswered() -> None:
    found = await attempt(ScriptedPolicy(LOOK_UP), limits=Limits(max_tokens=20))
    assert (found.stop, found.answer, len(found.turns)) == (StopReason.MAX_TOKENS, None, 1)
    assert len(found.turns[0].output_ids) == 20
    assert found.turns[0].tool_calls == () and found.turns[0].observation is None


async def test_a_server_that_stops_without_an_end_token_has_not_finished_the_call() -> None:
    found = await attempt(ScriptedPolicy(CUT))
    assert (found.stop, found.turns[0].tool_calls) == (StopReason.MAX_TOKENS, ())


async def test_format_errors_end_as_format() -> None:
    found = await attempt(ScriptedPolicy(BROKEN, BROKEN))
    assert (found.stop, found.turns[0].observation) == (StopReason.FORMAT, "error: text outside")


async def test_a_question_that_fills_the_window_is_never_sent() -> None:
    policy = ScriptedPolicy(ANSWER)
    found = await attempt(policy, limits=Limits(context=8))
    assert (found.stop, found.turns, policy.requests) == (StopReason.CONTEXT_OVERFLOW, (), [])


async def test_a_model_that_hangs_ends_at_the_time_budget_with_the_turns_so_far() -> None:
    started = time.monotonic()
    found = await attempt(HangingPolicy(LOOK_UP), seconds=1.0)
    assert (found.stop, len(found.turns)) == (StopReason.TIME_BUDGET, 1)
    assert time.monotonic() - started < 10


async def test_an_engine_that_died_takes_the_solver_down() -> None:
    def died() -> None:
        raise EngineDied("starter: its server ended by signal 9")

    with served(ScriptedPolicy(ANSWER)) as endpoint:
        async with ModelClient(dataclasses.replace(endpoint, check=died), None) as client:
            env = Env(local_tools(toy_world()), FORMAT)
            with pytest.raises(SolverDown, match="starter: its server ended by signal 9"):
                await rollout(task("search"), 5, env=env, sampler=ServedSampler(client, "r1"), solver="scripted@r1")
