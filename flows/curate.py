"""The `curate` flow: candidates of one family through the funnel into a published release."""

import asyncio

from prefect import flow
from prefect.artifacts import acreate_markdown_artifact
from prefect.events import emit_event

from flows.work import Tasks, task_runner
from infra.settings import Settings
from infra.store import Store
from pipeline import curate as pipeline
from pipeline.card import page
from rl.engines import Engines
from schemas.config import CurateConfig

RELEASED = "touchstone.release.published"
"""The event that a release exists; training is started by it."""

SETTINGS = Settings.from_env()


@flow(flow_run_name="curate-{config.family}-s{config.seed}", task_runner=task_runner(SETTINGS))
async def curate(config: CurateConfig, origin: str = "deployment") -> str:
    """Curate one family, publish what was kept, and return the release's version.

    `origin` labels the event, so that what a release starts can tell its own releases from others.
    """
    store = Store(SETTINGS.store)
    with Engines(SETTINGS, config.concurrency) as engines:
        await asyncio.to_thread(engines.attach, config.models, config.tools)
        run = await pipeline.curate(
            config,
            world=await asyncio.to_thread(pipeline.corpus, config, SETTINGS.cache),
            runs=SETTINGS.cache / "runs",
            store=store,
            work=Tasks(SETTINGS, engines),
        )
    release = pipeline.publish([run], store).release
    await acreate_markdown_artifact(
        key=f"curate-{config.family.replace('_', '-')}-report", markdown=page(release.manifest, release.url)
    )
    emit_event(
        RELEASED,
        resource={
            "prefect.resource.id": f"touchstone.release.{release.version}",
            "touchstone.origin": origin,
            "touchstone.family": config.family,
        },
        payload={"version": release.version, "url": release.url, "family": config.family},
    )
    return release.version
