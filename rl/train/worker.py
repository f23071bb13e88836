"""Plays episodes in stints, hundreds at once, and grades those that are over.

Invariants: an episode is put aside between two turns and nowhere else, with at least one turn more than it came with; all its
stints together take `seconds` and no more; it samples from one engine, which holds the beginning of its context; what breaks in
one episode ends that one only, and leaves nothing of it behind. Files are read in threads, and what takes long to grade is
graded in processes of its own: the event loop only passes things on.
"""

import asyncio
import time
import zlib
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

from pipeline.corpora import World, load_world
from pipeline.grading import agrade
from pipeline.solver import SolverDown
from rl.diagnosis import Diagnoser
from rl.env import Env, EnvError
from rl.learn.records import Graded, Verdict
from rl.policy import Policy
from rl.rollout import ended, play
from rl.tooling import Opened, open_tools
from rl.train.parts import Engine, Order, Played
from schemas.base import Record
from schemas.episode import Limits, ToolOptions
from schemas.errors import TouchstoneError
from schemas.task import Task
from schemas.trajectory import Trajectory


class WorkerSetup(Record):
    """What a worker needs to know, wherever it runs."""

    policy: Path
    """A model folder, for its tokenizer and the limits it was built with."""
    limits: Limits | None = None
    """What is set here goes before those."""
    tools: ToolOptions = ToolOptions()
    world: str | None = None
    """As `load_world` takes it, with `cache`; `None` for tasks that read no pages."""
    cache: Path
    solver: str
    """As trajectories name it: `<policy>@<run>`."""
    arm: str = "tools"
    stint_seconds: float
    seconds: float
    """Of an episode, all its stints together."""


class RolloutWorker:
    """A `Worker`. Opens its tools when a task first needs them; its engines are closed by whoever started them."""

    def __init__(self, setup: WorkerSetup, engines: Sequence[Engine]) -> None:
        self._setup = setup
        self._engines = tuple(engines)
        self._cuts = 0
        self._reading: asyncio.Task[Read] | None = None
        self._opening: dict[frozenset[str], asyncio.Task[tuple[Read, Opened]]] = {}
        self._opened = AsyncExitStack()

    async def play(self, order: Order) -> Played:
        """One stint. Raises `SolverDown`; and `PartDied` where the engine is a part that died, as if the stint had not begun."""
        setup, cuts = self._setup, self._cuts
        env, diagnose = await self._env(order.task)
        began = time.monotonic()
        turns = list(order.turns)
        try:
            if order.snapshot is None:
                env.reset(order.task)
            else:
                env.restore(order.task, order.snapshot)
            last = await play(
                env,
                self._engines[zlib.crc32(order.uid.encode()) % len(self._engines)],
                order.seed,
                turns,
                seconds=setup.seconds - order.spent,
                enough=lambda: self._cuts > cuts or time.monotonic() - began >= setup.stint_seconds,
            )
            spent = order.spent + time.monotonic() - began
            if last is None:
                saved = {"turns": tuple(turns), "snapshot": env.snapshot(), "spent": spent}
                return Played(saved=order.model_copy(update=saved), spent=spent)
        except EnvError as error:  # its tools or its snapshot are none of this run's, as will be those of others
            raise SolverDown(str(error)) from error
        finally:
            await env.close()
        trajectory = ended(order.task, order.seed, turns, last, setup.solver, setup.arm)
        verdict = await _verdict(order.task, trajectory)
        return Played(
            graded=Graded(uid=order.uid, trajectory=trajectory, verdict=verdict),
            diagnosis=diagnose(order.task, trajectory, verdict),
            spent=spent,
        )

    async def cut(self) -> None:
        """Returns at once; the plays that run return when each has its turn."""
        self._cuts += 1

    async def close(self) -> None:
        """End the tools. Episodes that run lose theirs."""
        tasks = [*self._opening.values(), *filter(None, [self._reading])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._opened.aclose()

    async def _env(self, task: Task) -> tuple[Env, Diagnoser]:
        """Raises `SolverDown` where what it needs cannot be had."""
        names = frozenset(task.tools)
        if names not in self._opening:
            self._opening[names] = asyncio.ensure_future(self._open(names))
        try:
            read, opened = await asyncio.shield(self._opening[names])
        except TouchstoneError as error:
            raise SolverDown(str(error)) from error
        return Env(opened.tools, read.policy.format, read.policy.limits, opened.extra), read.diagnose

    async def _open(self, names: frozenset[str]) -> "tuple[Read, Opened]":
        if self._reading is None:
            self._reading = asyncio.ensure_future(asyncio.to_thread(_read, self._setup))
        read = await asyncio.shield(self._reading)
        return read, await self._opened.enter_async_context(open_tools(read.world, self._setup.tools, names))


class Read(NamedTuple):
    """What a worker has from files."""

    policy: Policy
    world: World | None
    diagnose: Diagnoser


def _read(setup: WorkerSetup) -> Read:
    world = None if setup.world is None else load_world(setup.world, setup.cache)
    return Read(Policy.load(setup.policy, setup.limits), world, Diagnoser(world))


async def _verdict(task: Task, trajectory: Trajectory) -> Verdict:
    if trajectory.answer is None:
        return Verdict.NONE
    return Verdict((await agrade(task.answer, trajectory.answer)).verdict)
