import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from infra.client import ModelClient
from infra.endpoint import Endpoint, EngineDied
from infra.settings import Settings
from pipeline.families.math import Math
from pipeline.solver import Solver, SolverDown
from rl.policy import Policy
from rl.prompts import CHATS
from rl.solvers import AgentSolver, ChatSolver, SolverError, solver_for
from rl.tooling import Opened, local_tools
from schemas.config import MathConfig, Served
from schemas.task import Task
from schemas.trajectory import StopReason, Trajectory
from tests.infra.servers import RefusingServer, running
from tests.rl.servers import ChattyModel, ScriptedPolicy, served
from tests.rl.test_env import ANSWER, task
from tests.rl.test_policy import asked_about, policy_folder
from tests.rl.test_rollout import LOOK_UP
from tests.rl.tiny import FORMAT
from tests.worlds import toy_world

POLICY = Served(model="scripted")


def agent_of(client: ModelClient) -> AgentSolver:
    return AgentSolver(client, toy_world(), Policy(FORMAT), Opened(local_tools(toy_world())))


async def chat(model: ChattyModel, arm: str = "closed_book") -> Trajectory:
    with served(model) as endpoint:
        async with ModelClient(endpoint, None) as client:
            return await ChatSolver(client, arm, CHATS[arm])(task(), 5)


async def test_a_closed_book_model_is_shown_examples_and_its_text_is_the_answer() -> None:
    model = ChattyModel(" Niger\n")
    found = await chat(model)
    assert (found.stop, found.answer, found.arm, found.solver) == (
        StopReason.ANSWERED,
        "Niger",
        "closed_book",
        "scripted@r1",
    )
    assert found.tokens == 9 + 3
    (request,) = model.requests
    roles = [message["role"] for message in request["messages"]]
    assert roles == ["system", *["user", "assistant"] * 3, "user"]
    assert request["messages"][-1]["content"] == task().question
    assert (request["seed"], request["stop"]) == (5, ["\n"])


async def test_the_math_arms_ask_the_same_question_with_and_without_room_to_think() -> None:
    problem = Math(MathConfig())(seed=0, index=0)
    assert isinstance(problem, Task)
    asked = {}
    for arm in ("no_reasoning", "reasoning"):
        model = ChattyModel("Answer: 7")
        with served(model) as endpoint:
            async with ModelClient(endpoint, None) as client:
                found = await ChatSolver(client, arm, CHATS[arm])(problem, 5)
        assert (found.arm, found.answer) == (arm, "Answer: 7")
        (asked[arm],) = model.requests
    assert asked["no_reasoning"]["messages"][-1] == asked["reasoning"]["messages"][-1]
    assert asked["no_reasoning"]["messages"][-1]["content"] == problem.question
    assert asked["no_reasoning"]["max_tokens"] < asked["reasoning"]["max_tokens"]


async def test_a_chat_that_says_nothing_has_no_answer() -> None:
    found = await chat(ChattyModel(" \n"))
    assert (found.stop, found.answer, len(found.turns)) == (StopReason.NO_ANSWER, None, 1)


async def test_a_chat_cut_by_the_token_limit_is_no_answer() -> None:
    found = await chat(ChattyModel("Niger, or", finish="length"))
    assert (found.stop, found.answer) == (StopReason.MAX_TOKENS, None)


async def test_an_engine_that_died_takes_the_solver_down_in_every_arm() -> None:
    def died() -> None:
        raise EngineDied("memory: its server ended by signal 9")

    with served(ChattyModel("x")) as endpoint:
        async with ModelClient(dataclasses.replace(endpoint, check=died), None) as client:
            for solver in (ChatSolver(client, "closed_book", CHATS["closed_book"]), agent_of(client)):
                with pytest.raises(SolverDown, match="memory: its server ended by signal 9"):
                    await solver(task("search"), 5)


@pytest.mark.parametrize(
    ("status", "message", "down"),
    [(400, "no such token", False), (401, "Unauthorized", True), (404, "The model `echo` does not exist.", True)],
)
async def test_a_refused_call_is_an_infra_stop_unless_every_call_would_be_refused(
    status: int, message: str, down: bool
) -> None:
    with running(RefusingServer(status, message)) as url:
        async with ModelClient(Endpoint(url, "", "echo", "r1"), None) as client:
            for solver in (ChatSolver(client, "closed_book", CHATS["closed_book"]), agent_of(client)):
                if down:
                    with pytest.raises(SolverDown, match=message):
                        await solver(task("search"), 5)
                else:
                    assert (await solver(task("search"), 5)).stop is StopReason.INFRA


async def test_attempts_of_one_agent_run_at_once_without_mixing(tmp_path: Path) -> None:
    with served(ScriptedPolicy(LOOK_UP, ANSWER)) as endpoint:
        async with ModelClient(endpoint, None) as client:
            agent: Solver = agent_of(client)
            found = await asyncio.gather(*(agent(task("search"), seed) for seed in range(32)))
    assert [t.seed for t in found] == list(range(32))
    assert {(t.stop, t.answer, len(t.turns)) for t in found} == {(StopReason.ANSWERED, "Niger", 2)}


@contextlib.asynccontextmanager
async def opened(tmp_path: Path, endpoint: dict[str, Any] | None = None, **more: Any) -> AsyncIterator[Solver]:
    """The `tools` arm of a policy that knows the name Niger, on a server that answers at once."""
    folder = policy_folder(tmp_path / "policy", ["Niger"])
    settings = Settings.from_env({"TOUCHSTONE_STORE": str(tmp_path / "store")})
    with served(ScriptedPolicy(ANSWER)) as up:
        up = dataclasses.replace(up, **(endpoint or {}))
        policy = Served(model=str(folder))
        async with solver_for(policy, "tools", endpoint=up, settings=settings, journal=None, **more) as solver:
            yield solver


async def test_the_tools_arm_reads_tokenizer_and_vocabulary_of_the_model_folder(tmp_path: Path) -> None:
    async with opened(tmp_path, world=toy_world()) as solver:
        assert isinstance(solver, AgentSolver)
        assert (await solver(task("search"), 1)).answer == "Niger"
        assert solver.out_of_reach(asked_about("country/togo")) == "Togo"


async def test_the_tools_arm_without_a_world_or_on_a_server_without_token_ids_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SolverError, match="searches a world and none is given"):
        async with opened(tmp_path / "a"):
            pass
    with pytest.raises(SolverError, match="only vllm servers return"):
        async with opened(tmp_path / "b", world=toy_world(), endpoint={"vllm": False}):
            pass


async def test_the_window_is_no_larger_than_the_server_s(tmp_path: Path) -> None:
    prompt = len(FORMAT.opening(task().question, ()))
    async with opened(tmp_path, world=toy_world(), endpoint={"max_model_len": prompt + 2}) as solver:
        found = await solver(task("search"), 1)
    assert (found.stop, len(found.turns[0].output_ids)) == (StopReason.CONTEXT_OVERFLOW, 2)
