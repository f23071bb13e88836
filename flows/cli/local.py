"""The long steps in this process, with bars."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flows.cli.console import progress_bars
from flows.cli.dashboard import Dashboard
from infra.settings import Settings
from infra.store import Store
from pipeline import curate as pipeline
from pipeline.runs import Run
from rl.engines import Engines
from rl.train.run import TrainRun
from schemas.config import CurateConfig


@dataclass(frozen=True, slots=True)
class Here:
    """The steps of rounds. A `rl.rounds.Steps`."""

    settings: Settings

    async def curate(self, config: CurateConfig) -> str:
        store = Store(self.settings.store)
        with Engines(self.settings, config.concurrency) as engines, progress_bars() as report:
            run = await curated(
                config,
                settings=self.settings,
                runs=self.settings.cache / "runs",
                store=store,
                engines=engines,
                report=report,
            )
        return pipeline.publish([run], store).release.version

    async def train(self, run: TrainRun) -> None:
        from rl.train import coach  # torch: only training waits for it

        with Dashboard(run.id) as dashboard:
            await coach.train(run, settings=self.settings, watch=dashboard)


async def curated(
    config: CurateConfig,
    *,
    settings: Settings,
    runs: Path,
    store: Store,
    engines: Engines,
    report: Callable[[str, int, int], None],
) -> Run:
    """The run of `config`, finished; not yet published."""
    await asyncio.to_thread(engines.attach, config.models, config.tools)
    world = await asyncio.to_thread(pipeline.corpus, config, settings.cache)
    work = pipeline.Here(world, engines.solver, report, engines.start)
    return await pipeline.curate(config, world=world, runs=runs, store=store, work=work, progress=report)
