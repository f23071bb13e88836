"""One episode of a served policy, turn by turn.

Invariants: one model call at a time; its prompt is exactly `env.prompt`; a turn is recorded once its observation is known;
an episode ends within `seconds`, however slow the model or a tool is; a broken call ends it with `infra`, and only a
server that will never answer raises, `SolverDown`.
"""

import asyncio
import random

from infra.client import Completion, ModelClient
from infra.endpoint import HopelessError, ModelError
from pipeline.solver import SolverDown
from rl.env import Env, Observation
from schemas.task import Task
from schemas.trajectory import StopReason, Trajectory, Turn


async def rollout(
    task: Task,
    seed: int,
    *,
    env: Env,
    client: ModelClient,
    solver: str,
    version: str,
    arm: str = "tools",
    temperature: float = 1.0,
    seconds: float = 600.0,
) -> Trajectory:
    """One attempt at the task. Equal (task, seed, version) makes equal model calls.

    `version` names the weights: it is stored with every turn and keeps their prefix cache apart. Past `seconds` the attempt
    ends with `time_budget` and keeps the turns it has.
    """
    turns: list[Turn] = []
    try:
        async with asyncio.timeout(seconds):
            last = await _play(task, seed, env, client, version, temperature, turns)
    except TimeoutError:
        last = Observation(stop=StopReason.TIME_BUDGET)
    except HopelessError as error:
        raise SolverDown(str(error)) from error
    except ModelError as error:
        last = Observation(stop=StopReason.INFRA, error=str(error))
    finally:
        env.close()
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


async def _play(
    task: Task, seed: int, env: Env, client: ModelClient, version: str, temperature: float, turns: list[Turn]
) -> Observation:
    """The observation that ends the episode; `turns` grows meanwhile."""
    env.reset(task)
    while env.budget:
        completion = await client.complete(
            env.prompt,
            max_tokens=env.budget,
            seed=turn_seed(seed, len(turns)),
            temperature=temperature,
            stop_token_ids=env.format.ends,
            cache_salt=version,
        )
        seen = await env.step(completion.token_ids)
        turns.append(_turn(env, completion, version, seen))
        if seen.done:
            return seen
    return Observation(stop=StopReason.CONTEXT_OVERFLOW)


def turn_seed(seed: int, turn: int) -> int:
    """The sampling seed of a turn: turns of one attempt must not share their random numbers."""
    return random.Random(f"{seed}/{turn}").getrandbits(31)


def _turn(env: Env, completion: Completion, version: str, seen: Observation) -> Turn:
    return Turn(
        prompt_tokens=completion.prompt_tokens,
        output_ids=completion.token_ids,
        logprobs=completion.logprobs,
        # By our tokenizer, not the server's text, which leaves out the token that ended the turn.
        text=env.format.decode(completion.token_ids),
        version=version,
        call_id=completion.call_id,
        tool_calls=seen.calls,
        observation=seen.text,
    )
