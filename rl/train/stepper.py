"""Takes the steps of a run and gives the engines what comes of them.

Invariants: a step's batch is in the buffer before the trainer sees it; a trainer that died goes on from the last checkpoint and
takes the steps since then again, from the very same batches; checkpoint n holds exactly the steps up to n.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from infra.place import PartDied
from rl.learn.batch import make_batch
from rl.train.buffer import Buffer
from rl.train.checkpoints import Checkpoints
from rl.train.parts import Parts
from schemas.errors import TouchstoneError
from schemas.training import TrainConfig

DEATHS = 3
"""Trainers that may die on one step."""


class TrainingError(TouchstoneError):
    """A run that cannot go on; what it holds is kept."""


class Stepper:
    """`version` is the number of steps that were taken, `metrics` those of the last one."""

    def __init__(
        self,
        config: TrainConfig,
        *,
        buffer: Buffer,
        parts: Parts,
        checkpoints: Checkpoints,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config, self._buffer, self._parts, self._checkpoints = config, buffer, parts, checkpoints
        self._clock = clock
        self._at: int | None = None
        """Steps that the trainer has taken; `None` for one that has loaded nothing yet."""
        self.version = 0
        self.metrics: Mapping[str, float] = {}
        self._earlier = 0.0
        self._marked = clock()
        self._started: float | None = None
        """When this stretch began to play; servers were started before."""

    @property
    def seconds(self) -> float:
        """Of the whole run, earlier stretches of it included."""
        return self._earlier + (0.0 if self._started is None else self._clock() - self._started)

    async def recover(self) -> None:
        """Load the last checkpoint, take the steps after it again, and give the engines the weights."""
        self._earlier = await self._buffer.seconds()
        await self._surely(self._catch_up)
        await self._surely(self._publish)
        self._marked = self._started = self._clock()

    async def take(self, groups: Sequence[str], gauges: Mapping[str, float]) -> None:
        """One step: train these groups, publish the weights, keep a checkpoint when it is time."""
        await self._buffer.take(self.version + 1, groups)
        await self._surely(lambda: self._catch_up(gauges))
        await self._surely(self._publish)
        if self.version % self._config.checkpoint.every == 0:
            await self.checkpoint()

    async def checkpoint(self) -> None:
        """Keep what the run has come to, unless a checkpoint holds it."""
        if self.version and self.version != self._checkpoints.last:
            await self._surely(self._save)

    async def _save(self) -> None:
        await self._catch_up()
        await self._checkpoints.save(self.version, self._parts.trainer, self._buffer)

    async def _catch_up(self, gauges: Mapping[str, float] | None = None) -> None:
        """Bring the trainer to the last step whose batch was written down."""
        if self._at is None:
            self._at = await self._checkpoints.load(self._parts.trainer, self._buffer)
        for step in range(self._at + 1, await self._buffer.last_step() + 1):
            await self._advance(step, gauges or {})
        self.version = self._at

    async def _advance(self, step: int, gauges: Mapping[str, float]) -> None:
        groups = await self._buffer.batch(step)
        batch = await asyncio.to_thread(make_batch, groups, self._config, step - 1, self._config.seed)
        metrics = {**gauges, **batch.metrics, **await self._parts.trainer.step(batch)}
        now = self._clock()
        await self._buffer.settle(step, batch, metrics, now - self._marked)
        self._at, self.metrics, self._marked = step, metrics, now

    async def _publish(self) -> None:
        await self._catch_up()
        weights = await self._parts.trainer.publish(self.version)
        await self._parts.swap(weights)

    async def _surely(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do it, with another trainer if this one dies."""
        for _ in range(DEATHS):
            try:
                return await work()
            except PartDied:
                self._at = None
                await self._parts.mend()
        raise TrainingError(
            f"step {self.version + 1}: {DEATHS} trainers died on it; see their logs, then resume the run"
        )
