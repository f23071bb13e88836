"""What tests of curation run on: the small world, and models whose calls are counted on disk."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from infra.journal import Journal, call_key
from schemas.answer import canonical_answer
from schemas.config import CurateConfig, HardSearchConfig, SequentialTest, Served
from schemas.task import Task
from schemas.trajectory import StopReason, Trajectory, Turn

CONFIG = CurateConfig(
    family="hard_search",
    candidates=45,
    seed=7,
    batch=15,
    hard_search=HardSearchConfig(types=("country", "capital city")),
    triviality=SequentialTest(limit=16),
    test_share=0.2,
)


class CoinModel:
    """Right on a sample with probability `right`, by a coin that depends on task and seed alone; each call costs `seconds`.

    Goes through the journal as a served model does. Every real call leaves a line in `log`.
    """

    def __init__(self, arm: str, right: float, journal: Journal, log: Path, seconds: float = 0.0, name: str = "coin@1"):
        self.arm, self.name = arm, name
        self._right, self._journal, self._log, self._seconds = right, journal, log, seconds

    async def __call__(self, task: Task, seed: int) -> Trajectory:
        key = call_key([self.name, self.arm, task.task_id, seed])

        async def call() -> dict[str, str]:
            await asyncio.sleep(self._seconds)
            with self._log.open("a") as log:
                log.write(f"{key}\n")
            coin = random.Random(f"{task.task_id}/{self.arm}/{seed}").random()
            return {"text": canonical_answer(task.answer) if coin < self._right else f"nothing, {seed}"}

        said = await self._journal.once(key, {}, call)
        # The last bits of an engine's log-probabilities depend on what else it computes.
        logprobs = (-0.7 + random.SystemRandom().uniform(-1e-6, 1e-6),)
        turn = Turn(prompt_tokens=10, output_ids=(7,), logprobs=logprobs, text=said["text"], version="1", call_id=key)
        return Trajectory(
            task_id=task.task_id,
            solver=self.name,
            arm=self.arm,
            seed=seed,
            turns=(turn,),
            stop=StopReason.ANSWERED,
            answer=said["text"],
            tokens=12,
        )


def coins(log: Path, *, closed_book: float = 0.0, solver: float = 0.5, seconds: float = 0.0, name: str = "coin@1"):
    """An `OpenSolver`. `log` also counts how often a solver was opened, in lines that start with `open`."""

    @asynccontextmanager
    async def open_solver(served: Served, arm: str, *, journal: Journal, **more: object) -> AsyncIterator[CoinModel]:
        with log.open("a") as file:
            file.write(f"open {arm}\n")
        right = closed_book if arm in ("closed_book", "no_reasoning") else solver
        yield CoinModel(arm, right, journal, log, seconds, name)

    return open_solver


def calls(log: Path) -> list[str]:
    """The journal keys of every real model call so far."""
    return [line for line in log.read_text().splitlines() if not line.startswith("open")] if log.exists() else []


def opened(log: Path) -> list[str]:
    return [line.removeprefix("open ") for line in log.read_text().splitlines() if line.startswith("open")]


def dumped(config: CurateConfig) -> str:
    return json.dumps(config.model_dump(mode="json"))
