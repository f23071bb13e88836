"""Engines named by how they behave, and what a worker over the toy world is made of."""

import asyncio
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from infra.client import Completion
from rl.learn.records import Weights
from rl.train.parts import Order
from rl.train.worker import WorkerSetup
from schemas.episode import ContextOptions, Limits, ToolOptions
from tests.rl.test_env import ANSWER, task
from tests.rl.test_policy import policy_folder
from tests.rl.tiny import sampled
from tests.worlds import toy_world

SEARCH = '<tool_call>{"name": "search", "arguments": {"queries": ["Q"], "k": 1}}</tool_call><|end|>'
OPEN = '<tool_call>{"name": "open", "arguments": {"id": "Niger"}}</tool_call><|end|>'
TURNS = (
    *(SEARCH.replace("Q", query) for query in "abcd"),
    *(OPEN.replace("Niger", title) for title in ("Niger", "Mali", "x")),
    "not a step<|end|>",
    ANSWER,
    ANSWER.replace("Niger", "Mali"),
)


def completion(ids: Sequence[int], prompt: Sequence[int], version: int) -> Completion:
    return Completion(
        text="",
        token_ids=tuple(ids),
        logprobs=(-0.5,) * len(ids),
        prompt_tokens=len(prompt),
        completion_tokens=len(ids),
        finish="stop",
        call_id="",
        version=str(version),
    )


class ScriptedEngine:
    """Writes one of its turns, by the prompt and the seed alone: equal ones give equal turns."""

    def __init__(self, turns: Sequence[str] = TURNS) -> None:
        self.turns = [sampled(turn) for turn in turns]
        self.version = 0
        self.prompts: list[tuple[int, ...]] = []

    async def sample(self, prompt: Sequence[int], *, ends: Sequence[int], max_tokens: int, seed: int) -> Completion:
        self.prompts.append(tuple(prompt))
        turn = random.Random(f"{bytes(i % 256 for i in prompt)!r}/{seed}").choice(self.turns)
        return completion(turn[:max_tokens], prompt, self.version)

    async def swap(self, weights: Weights) -> None:
        self.version = weights.version

    async def close(self) -> None: ...


class WaitingEngine(ScriptedEngine):
    """Answers nobody until it is let go."""

    def __init__(self, turns: Sequence[str] = TURNS) -> None:
        super().__init__(turns)
        self.go = asyncio.Event()

    async def sample(self, prompt: Sequence[int], *, ends: Sequence[int], max_tokens: int, seed: int) -> Completion:
        done = await super().sample(prompt, ends=ends, max_tokens=max_tokens, seed=seed)
        await self.go.wait()
        return done


class RaisingEngine(ScriptedEngine):
    """Fails every turn in the same way."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    async def sample(self, prompt: Sequence[int], *, ends: Sequence[int], max_tokens: int, seed: int) -> Completion:
        raise self.error


def setup_in(folder: Path, **more: Any) -> WorkerSetup:
    """A byte-wise policy over the documents of the toy world, its tools in the worker's process."""
    if not (folder / "policy").exists():
        policy_folder(folder / "policy", [])
        (folder / "toy.jsonl").write_text(
            "".join(
                json.dumps({"id": d.id, "title": d.title, "text": d.text}) + "\n"
                for d in toy_world().documents.values()
                if d.id.startswith("country/")
            )
        )
    limits = Limits(max_turns=30, max_tokens=100, context=3000, repeats=20, management=ContextOptions(mode="drop"))
    given = {
        "policy": folder / "policy",
        "limits": limits,
        "tools": ToolOptions(replicas=0),
        "world": str(folder / "toy.jsonl"),
        "cache": folder,
        "solver": "bytes@run",
        "stint_seconds": 600.0,
        "seconds": 600.0,
    }
    return WorkerSetup.model_validate({**given, **more})


def order(n: int = 0, *tools: str) -> Order:
    return Order(uid=f"g/{n}", task=task(*(tools or ("search", "open"))), seed=n)
