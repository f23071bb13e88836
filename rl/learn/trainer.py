"""A rank of the trainer as a part of a run.

Invariants: one thread builds the model and does all its work, call after call in the order they came, so that the event
loop lives and ranks stay in step; a model that could not be built fails every call with the reason.
"""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from rl.learn.learner import Learner, TrainerSetup
from rl.learn.records import Batch, Weights

_T = TypeVar("_T")


class TorchTrainer:
    """`rl.train.parts.Trainer` by torch and transformers: in float32 on CPU, computing in bfloat16 on CUDA."""

    def __init__(self, setup: TrainerSetup) -> None:
        """Begins to read the model; what is wrong with it is raised by the first call."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"trainer-{setup.rank}")
        self._learner = self._thread.submit(Learner, setup)

    async def step(self, batch: Batch) -> Mapping[str, float]:
        return await self._run(lambda learner: learner.step(batch))

    async def publish(self, version: int) -> Weights:
        return await self._run(lambda learner: learner.publish(version))

    async def save(self, folder: str) -> None:
        await self._run(lambda learner: learner.save(folder))

    async def load(self, folder: str) -> None:
        await self._run(lambda learner: learner.load(folder))

    async def close(self) -> None:
        try:
            await self._run(lambda learner: learner.close())
        finally:
            self._thread.shutdown(wait=False)

    async def _run(self, call: Callable[[Learner], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: call(self._learner.result()))
