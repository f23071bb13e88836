"""Curation's stages as Prefect tasks: one task a batch, on threads of this process or on Ray.

Tasks take paths and endpoints, never rows; each opens the run and the world where it runs.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from infra.endpoint import Endpoint, always_up
from infra.settings import Settings
from pipeline.curate import Here, ahead, corpus, served_for
from pipeline.runs import Run
from rl.engines import Engines
from schemas.config import Served

THREADS = 4


def task_runner(settings: Settings) -> TaskRunner[Any]:
    """Ray where the settings name a cluster, threads where they do not."""
    if settings.ray is None:
        return ThreadPoolTaskRunner[Any](max_workers=THREADS)
    from prefect_ray import RayTaskRunner  # type: ignore[import-untyped]

    ray: TaskRunner[Any] = RayTaskRunner(address=settings.ray)
    return ray


@task(task_run_name="{stage}-{batch}", cache_policy=NO_CACHE)
def work_on_batch(stage: str, run: Path, batch: int, settings: Settings, up: Mapping[Served, Endpoint]) -> None:
    """One stage of one batch; its result is the file it leaves in the run's folder."""
    opened = Run.open(run)
    with Engines(settings, opened.config.concurrency, up) as engines:
        work = Here(corpus(opened.config, settings.cache), engines.solver)
        asyncio.run(work(stage, opened, [batch]))


class Tasks:
    """A `pipeline.curate.Work` that hands every batch to a Prefect task and waits for all of them."""

    def __init__(self, settings: Settings, engines: Engines) -> None:
        self._settings, self._engines = settings, engines

    async def __call__(self, stage: str, run: Run, batches: Sequence[int]) -> None:
        self._engines.start(ahead(stage, run))
        up = {}
        if (served := served_for(stage, run, batches)) is not None:
            endpoint = await asyncio.to_thread(self._engines.endpoint, served)
            # What notices a server's death is bound to this process and cannot travel.
            up[served] = replace(endpoint, check=always_up)
        futures = [work_on_batch.submit(stage, run.path, batch, self._settings, up) for batch in batches]
        for future in futures:
            await asyncio.to_thread(future.result)
