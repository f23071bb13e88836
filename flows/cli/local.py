"""A curation run in this process, with bars."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from infra.settings import Settings
from infra.store import Store
from pipeline import curate as pipeline
from pipeline.runs import Run
from rl.engines import Engines
from schemas.config import CurateConfig


def run_here(
    config: CurateConfig,
    *,
    settings: Settings,
    runs: Path,
    store: Store,
    engines: Engines,
    report: Callable[[str, int, int], None],
) -> Run:
    """The run of `config`, finished; not yet published."""
    engines.attach(config.models, config.tools)
    world = pipeline.corpus(config, settings.cache)
    work = pipeline.Here(world, engines.solver, report, engines.start)
    return asyncio.run(pipeline.curate(config, world=world, runs=runs, store=store, work=work, progress=report))
