"""The loop of a training run. It moves attempts and decides nothing (`capacity` does).

Invariants: at most `slots` attempts are played at a time; those that were put aside go on before fresh ones begin; engines have
the weights of a step before the next batch is made; whatever ends the loop, every attempt that was admitted is trained,
dropped, or still in the buffer.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Sequence

from infra.place import PartDied
from rl.train import capacity
from rl.train.buffer import Buffer, Waiting
from rl.train.parts import Order, Parts, Played
from rl.train.progress import Progress, Watch, unwatched
from rl.train.stepper import Stepper, TrainingError
from schemas.task import Task
from schemas.training import TrainConfig

LAST_TURN_S = 60.0
"""How long an attempt that is to be put aside may take to its next turn; then it goes back to where it was saved last."""
DEATHS = 10
"""Workers that may die on one attempt."""
TICK_S = 1.0


class Loop:
    """One stretch of a run: from wherever it stands until the config says that it is enough."""

    def __init__(
        self,
        config: TrainConfig,
        tasks: Sequence[Task],
        *,
        buffer: Buffer,
        parts: Parts,
        stepper: Stepper,
        watch: Watch = unwatched,
    ) -> None:
        self._config, self._tasks = config, {task.task_id: task for task in tasks}
        self._ids = tuple(self._tasks)
        self._buffer, self._parts, self._stepper, self._watch = buffer, parts, stepper, watch
        self._begun = 0
        """Groups that were ever admitted."""
        self._queue: deque[Waiting] = deque()
        """Attempts that are not over and not played now, those that were put aside first."""
        self._open: Counter[str] = Counter()
        """By group, its attempts that are not over."""
        self._ready: deque[str] = deque()
        """Groups that are complete and in no batch."""
        self._plays: dict[asyncio.Task[Played], Waiting] = {}
        self._step: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Raises `TrainingError`, `SolverDown`, `BufferError` or whatever else a part cannot go on after."""
        ticking = asyncio.create_task(self._tick())
        try:
            await self._recover()
            while not capacity.is_over(self._config, version=self._stepper.version, seconds=self._stepper.seconds):
                await self._fill()
                await self._start_step()
                if not self._plays and self._step is None:
                    break  # every task was played as often as it may be
                await self._next_event()
        finally:
            ticking.cancel()
            await self._put_aside()
        await self._stepper.checkpoint()
        await self._tell()

    async def _recover(self) -> None:
        await self._stepper.recover()
        self._begun = await self._buffer.begun()
        self._queue.extend(await self._buffer.open())
        self._open.update(waiting.group for waiting in self._queue)
        self._ready.extend(await self._buffer.ready())

    async def _next_event(self) -> None:
        """Wait for a play or the step to end, and take in what it led to."""
        running: set[asyncio.Task[Played] | asyncio.Task[None]] = {*self._plays, *([self._step] if self._step else [])}
        done, _ = await asyncio.wait(running, timeout=TICK_S, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if task is self._step:
                self._step = None
                task.result()
        for play in [play for play in self._plays if play in done]:
            await self._take_in(play)

    # Playing

    async def _fill(self) -> None:
        while len(self._plays) < self._config.rollout.slots:
            if not capacity.may_play(
                self._config.rollout.mode, training=self._step is not None, batch_ready=self._batch_ready
            ):
                return
            if not self._queue and not await self._admit():
                return
            waiting = self._queue.popleft()
            self._plays[asyncio.create_task(self._play(waiting))] = waiting

    async def _admit(self) -> bool:
        """Begin a group, if the rules let one begin."""
        config, rollout = self._config, self._config.rollout
        if not capacity.may_begin(config, version=self._stepper.version, begun=self._begun, tasks=len(self._ids)):
            return False
        epoch, place = capacity.place_of(self._begun, len(self._ids), config.seed)
        seeds = [capacity.attempt_seed(config.seed, self._begun, member) for member in range(rollout.group)]
        members = await self._buffer.admit(self._begun, epoch, self._ids[place], seeds)
        self._begun += 1
        self._open.update(waiting.group for waiting in members)
        self._queue.extend(members)
        return True

    async def _play(self, waiting: Waiting) -> Played:
        """One stint, again on another worker if one dies."""
        order = waiting.saved or Order(uid=waiting.uid, task=self._tasks[waiting.task_id], seed=waiting.seed)
        for _ in range(DEATHS):
            try:
                return await self._parts.play(order)
            except PartDied:
                await self._parts.mend()
        raise TrainingError(f"attempt {waiting.uid}: {DEATHS} workers died on it; see their logs, then resume the run")

    async def _take_in(self, play: asyncio.Task[Played]) -> None:
        waiting = self._plays.pop(play)
        played = play.result()
        if played.saved is not None:
            await self._buffer.save(played.saved)
            saved = Waiting(waiting.uid, waiting.group, waiting.task_id, waiting.seed, played.saved)
            ahead = next((i for i, other in enumerate(self._queue) if other.saved is None), len(self._queue))
            self._queue.insert(ahead, saved)
            return
        assert played.graded is not None and played.diagnosis is not None
        await self._buffer.finish(played.graded, played.diagnosis, played.spent)
        self._open[waiting.group] -= 1
        if not self._open[waiting.group]:
            del self._open[waiting.group]
            self._ready.append(waiting.group)

    # Training

    @property
    def _batch_ready(self) -> bool:
        return len(self._ready) >= self._config.groups

    async def _start_step(self) -> None:
        if self._step is not None:
            return
        mode, size = self._config.rollout.mode, self._config.groups
        if capacity.may_train(
            mode, ready=len(self._ready), groups=size, in_flight=len(self._plays), queued=len(self._queue)
        ):
            groups = [self._ready.popleft() for _ in range(min(len(self._ready), size))]
            self._step = asyncio.create_task(self._stepper.take(groups, self._gauges()))
            if capacity.must_cut(mode):
                await self._parts.cut()

    def _gauges(self) -> dict[str, float]:
        saved = sum(waiting.saved is not None for waiting in self._queue)
        return {"in_flight/attempts": len(self._plays), "suspended/attempts": saved, "waiting/groups": len(self._ready)}

    # The end

    async def _put_aside(self) -> None:
        """Save what is played at its next turn, and let the step that runs end."""
        if self._plays:
            await self._parts.cut()
            await asyncio.wait(self._plays, timeout=LAST_TURN_S)
        for play in list(self._plays):
            if play.done() and not play.cancelled() and play.exception() is None:
                await self._take_in(play)
            play.cancel()
        if self._step is not None:
            await self._step

    async def _tick(self) -> None:
        while True:
            await self._tell()
            await asyncio.sleep(TICK_S)

    async def _tell(self) -> None:
        counts, gauges = await self._buffer.counts(), self._gauges()
        self._watch(
            Progress(
                stage="train",
                step=self._stepper.version,
                steps=self._config.steps,
                minutes=self._stepper.seconds / 60,
                of_minutes=self._config.minutes,
                metrics=self._stepper.metrics,
                in_flight=int(gauges["in_flight/attempts"]),
                suspended=int(gauges["suspended/attempts"]),
                waiting=len(self._ready),
                admitted=counts.admitted,
                trained=counts.trained,
                dropped=sum(counts.dropped.values()),
            )
        )
