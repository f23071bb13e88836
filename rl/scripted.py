"""Policies that follow a script: what an environment is measured with, and what shows a solved task."""

import random
from collections.abc import Callable, Sequence

from infra.client import Completion
from pipeline.corpora.world import World
from pipeline.families.hard_search.explore import Explorer
from pipeline.families.hard_search.oracle import Move, Script
from rl.env import NO_SUMMARY, Env
from rl.tokens import Answer, ToolCalls
from schemas.errors import TouchstoneError
from schemas.query import Query
from schemas.task import Task
from schemas.trajectory import Turn


class NoScript(TouchstoneError):
    """A task that no script solves."""


def oracle(task: Task, world: World | None, env: Env, seed: int) -> "ScriptedSampler":
    """A sampler that solves the task by reading pages. Raises `NoScript`."""
    if world is None or not isinstance(task.constraints, Query):
        raise NoScript(f"{task.task_id}: no oracle solves tasks of {task.family}; give a model as the policy")
    notes = env.limits.management.mode != "off"
    return ScriptedSampler(env, Explorer(world).script(task.constraints, random.Random(seed), notes=notes))


class ScriptedSampler:
    """Writes the moves of a script as a perfect policy would; told by `see` what each led to."""

    def __init__(self, env: Env, script: Script) -> None:
        self._env = env
        self._script = script
        self._seen: str | None = None
        self._noted: list[str] = []

    def see(self, turn: Turn) -> None:
        """Hear of a turn that is over, as a `Watch`."""
        if turn.tool_calls or turn.fault not in ("", NO_SUMMARY):
            self._seen = turn.observation or ""
        self._noted += [str(call.arguments["text"]) for call in turn.tool_calls if call.name == "note"]

    async def sample(self, prompt: Sequence[int], *, ends: Sequence[int], max_tokens: int, seed: int) -> Completion:
        """The next turn, with certainty: log-probabilities of 0."""
        format = self._env.format
        if self._env.owes_summary:
            ids = (*format.encode("\n".join(self._noted) or "nothing yet"), format.end)
        else:
            move = next(self._script) if self._seen is None else self._script.send(self._seen)
            ids = format.turn(step(move))
        return certain(ids[:max_tokens], format.decode, prompt, ends)


def certain(
    ids: Sequence[int], decode: Callable[[Sequence[int]], str], prompt: Sequence[int], ends: Sequence[int]
) -> Completion:
    """A turn that a script wrote, cut where it is longer than a turn may be."""
    return Completion(
        text=decode(ids),
        token_ids=tuple(ids),
        logprobs=(0.0,) * len(ids),
        prompt_tokens=len(prompt),
        completion_tokens=len(ids),
        finish="stop" if ids[-1] in ends else "length",
        call_id="",
        version="script",
    )


def step(move: Move) -> ToolCalls | Answer:
    """The move as a turn takes it."""
    return ToolCalls(move.calls, move.thought) if move.calls else Answer(move.answer, move.thought)
