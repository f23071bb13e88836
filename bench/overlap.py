"""What overlap is worth: the same tasks, each played and trained once, by the real parts over tools of lognormal latency."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from bench.figures import Figure, Row
from bench.releases import hard_search
from bench.schedule import MODES, ceiling
from infra.settings import Settings
from infra.tools.base import ToolResult, Tools, ToolSession, ToolSpec
from rl.tooling import Opened
from rl.train.buffer import Buffer
from rl.train.checkpoints import Checkpoints
from rl.train.coach import learn
from rl.train.run import TrainRun, create
from rl.train.worker import Read, RolloutWorker
from schemas.task import Task
from schemas.training import Mode, TrainConfig
from schemas.trajectory import ToolCall

MEDIAN_S, SIGMA = 2.0, 0.99
"""The 99th percentile is ten times the median."""
STEPS, GROUPS, GROUP, SLOTS = 5, 12, 8, 96
TITLE = ("mode", "seconds", "a step", "speed-up", "ceiling", "training s", "lag mean", "attempts trained", "dropped")


async def measure() -> tuple[list[Row], list[Figure]]:
    """A row for each mode, and the figures. Seconds are of the whole run, but for the start of its server."""
    settings = Settings.from_env()
    release = await hard_search(settings)
    rows: list[Row] = []
    seconds, most = dict[Mode, float](), 0.0
    for mode in MODES:
        with TemporaryDirectory() as folder:
            (Path(folder) / "worlds").symlink_to(settings.cache / "worlds")
            took, ended, steps, counts = await _run(mode, release, replace(settings, cache=Path(folder)))
        trained = fmean(said["seconds/step"] for _, _, said in steps)
        if mode == "sync":
            most = ceiling([one.spent for one in ended], SLOTS, GROUPS * GROUP, trained)
        seconds[mode] = took
        rows.append(
            (
                mode,
                round(took, 1),
                round(took / STEPS, 1),
                round(seconds["sync"] / took, 2),
                round(most, 2),
                round(trained, 2),
                round(fmean(said.get("lag_mean/trained", 0.0) for _, _, said in steps), 2),
                counts.trained,
                sum(counts.dropped.values()),
            )
        )
    figures = [
        Figure("overlap_partial_speedup", seconds["sync"] / seconds["partial"], ">= 1.5"),
        Figure("overlap_async_speedup", seconds["sync"] / seconds["async"], ">= 2"),
        Figure("overlap_async_share_of_ceiling", seconds["sync"] / seconds["async"] / most, "> 0 (reported)"),
    ]
    return rows, figures


async def _run(mode: Mode, release: str, settings: Settings):  # type: ignore[no-untyped-def]
    config = TrainConfig.model_validate(
        {
            "release": release,
            "groups": GROUPS,
            "epochs": 1,
            "rollout": {"mode": mode, "slots": SLOTS, "group": GROUP},
            "tools": {"replicas": 0},
        }
    )
    made = create(config, settings)
    run = Shortened(made.path, made.config, made.origin)
    await learn(run, Checkpoints(run.path, config.checkpoint), settings, worker=SlowWorker)
    buffer = Buffer(run.path / "buffer.sqlite")
    try:
        steps = await buffer.metrics()
        return await buffer.seconds(), await buffer.ended(), steps, await buffer.counts()
    finally:
        buffer.close()


class Shortened(TrainRun):
    """A run of so many steps that plays nothing beyond them: what a mode leaves unfinished would make it look faster."""

    def tasks(self, split: str) -> list[Task]:
        return super().tasks(split)[: STEPS * GROUPS]


class SlowWorker(RolloutWorker):
    """A worker whose tools are slow."""

    async def _open(self, names: frozenset[str]) -> tuple[Read, Opened]:
        read, opened = await super()._open(names)
        return read, replace(opened, tools=SlowTools(opened.tools))


class SlowTools:
    """The same tools, each answer after a lognormal time of its own; equal sessions wait equally long."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._sessions = 0

    @property
    def specs(self) -> Mapping[str, ToolSpec]:
        return self._tools.specs

    def session(self, journal: Sequence[ToolCall] = ()) -> ToolSession:
        self._sessions += 1
        return SlowSession(self._tools.session(journal), random.Random(self._sessions))


class SlowSession:
    def __init__(self, session: ToolSession, rng: random.Random) -> None:
        self._session, self._rng = session, rng

    @property
    def specs(self) -> Mapping[str, ToolSpec]:
        return self._session.specs

    @property
    def journal(self) -> tuple[ToolCall, ...]:
        return self._session.journal

    async def call(self, call: ToolCall) -> ToolResult:
        await asyncio.sleep(MEDIAN_S * self._rng.lognormvariate(0, SIGMA))
        return await self._session.call(call)

    async def close(self) -> None:
        await self._session.close()
