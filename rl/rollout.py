"""Episodes of a policy, turn by turn, in one go or in stints.

Invariants: an episode changes its state only between turns; one model call at a time, whose prompt is exactly
`env.prompt`; a turn is recorded once what it led to is known; an episode ends within `seconds`, however slow the model or a
tool is; a broken call ends it with `infra`, and only a server that will never answer raises, `SolverDown`; an episode that is
put aside between two turns and restored goes on with the prompt and the seed it would have had.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Protocol

from infra.client import Completion, ModelClient
from infra.endpoint import HopelessError, ModelError
from pipeline.solver import SolverDown
from rl.env import Env, Observation
from schemas.task import Task
from schemas.trajectory import StopReason, Trajectory, Turn

Watch = Callable[[Turn], None]
"""Hears of every turn as soon as it is over."""


def unwatched(turn: Turn) -> None:
    """A `Watch` that looks away."""


def never() -> bool:
    """Of an episode that is played to its end."""
    return False


class Sampler(Protocol):
    """Where turns come from."""

    async def sample(self, prompt: Sequence[int], *, ends: Sequence[int], max_tokens: int, seed: int) -> Completion:
        """Continue the prompt up to one of `ends`, which is kept, or `max_tokens`, all of it by the weights it names.

        Raises `ModelError`.
        """
        ...


class ServedSampler:
    """A policy behind a model server. `version` names its weights, and keeps its prefix cache apart."""

    def __init__(self, client: ModelClient, version: str, temperature: float = 1.0) -> None:
        self._version = version
        self._client = client
        self._temperature = temperature

    async def sample(self, prompt: Sequence[int], *, ends: Sequence[int], max_tokens: int, seed: int) -> Completion:
        completion = await self._client.complete(
            prompt,
            max_tokens=max_tokens,
            seed=seed,
            temperature=self._temperature,
            stop_token_ids=tuple(ends),
            cache_salt=self._version,
        )
        return completion.model_copy(update={"version": self._version})


async def rollout(
    task: Task,
    seed: int,
    *,
    env: Env,
    sampler: Sampler,
    solver: str,
    arm: str = "tools",
    seconds: float = 600.0,
    watch: Watch = unwatched,
) -> Trajectory:
    """One attempt at the task. Equal (task, seed, version) makes equal model calls.

    Past `seconds` the attempt ends with `time_budget` and keeps the turns it has.
    """
    turns: list[Turn] = []
    try:
        env.reset(task)
        last = await play(env, sampler, seed, turns, seconds=seconds, watch=watch)
    finally:
        await env.close()
    assert last is not None
    return ended(task, seed, turns, last, solver, arm)


def ended(task: Task, seed: int, turns: Sequence[Turn], last: Observation, solver: str, arm: str) -> Trajectory:
    """The attempt that `last` was the end of."""
    assert last.stop is not None
    return Trajectory(
        task_id=task.task_id,
        solver=solver,
        arm=arm,
        seed=seed,
        turns=tuple(turns),
        stop=last.stop,
        answer=last.answer,
        error=last.error,
        tokens=sum(turn.prompt_tokens + len(turn.output_ids) for turn in turns),
    )


async def play(
    env: Env,
    sampler: Sampler,
    seed: int,
    turns: list[Turn],
    *,
    seconds: float,
    watch: Watch = unwatched,
    enough: Callable[[], bool] = never,
) -> Observation | None:
    """Play the running episode on; `turns` are those it already has, and grows.

    Gives how it ended, within `seconds`, or `None` where it is put aside: `enough` is asked after each turn.
    """
    try:
        async with asyncio.timeout(seconds):
            return await _play(env, sampler, seed, turns, watch, enough)
    except TimeoutError:
        return Observation(stop=StopReason.TIME_BUDGET)
    except HopelessError as error:
        raise SolverDown(str(error)) from error
    except ModelError as error:
        return Observation(stop=StopReason.INFRA, error=str(error))


async def _play(
    env: Env, sampler: Sampler, seed: int, turns: list[Turn], watch: Watch, enough: Callable[[], bool]
) -> Observation | None:
    while env.budget:
        seen = await _turn(env, sampler, seed, turns)
        watch(turns[-1])
        if seen.done:
            return seen
        if enough():
            return None
    error = "" if turns else "the question alone fills the window; raise limits.context"
    return Observation(stop=StopReason.CONTEXT_OVERFLOW, error=error)


async def _turn(env: Env, sampler: Sampler, seed: int, turns: list[Turn]) -> Observation:
    segment, shown = env.segment, env.shown
    completion = await sampler.sample(
        env.prompt, ends=env.format.ends, max_tokens=env.budget, seed=turn_seed(seed, len(turns))
    )
    seen = await env.step(completion.token_ids)
    turns.append(
        Turn(
            prompt_tokens=completion.prompt_tokens,
            segment=segment,
            shown_ids=shown,
            output_ids=completion.token_ids,
            logprobs=completion.logprobs,
            # By our tokenizer, not the server's text, which leaves out the token that ended the turn.
            text=env.format.decode(completion.token_ids),
            version=completion.version,
            call_id=completion.call_id,
            tool_calls=seen.calls,
            observation=seen.text,
            fault=seen.fault,
        )
    )
    return seen


def turn_seed(seed: int, turn: int) -> int:
    """The sampling seed of a turn: turns of one attempt must not share their random numbers."""
    return random.Random(f"{seed}/{turn}").getrandbits(31)
