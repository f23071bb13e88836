"""The `train` flow: a policy learns on a release, is evaluated before and after, and says what came of it."""

import asyncio
from pathlib import Path

from prefect import flow, get_run_logger, task
from prefect.artifacts import acreate_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.events import emit_event

from flows.cli.dashboard import line
from infra.settings import Settings
from rl.train import coach, report
from rl.train.account import account
from rl.train.progress import Progress, every
from rl.train.run import create, open_run
from schemas.training import TrainConfig

TRAINED = "touchstone.policy.trained"
"""The event that a training run is over."""
LOG_S = 30.0
"""Between two lines of the log."""

SETTINGS = Settings.from_env()


@task(task_run_name="train-{run.name}", cache_policy=NO_CACHE)
async def learn(run: Path) -> None:
    """Every stage of a run that is not done; its result is what it leaves in the run's folder."""
    logger = get_run_logger()

    def say(progress: Progress) -> None:
        logger.info(line(progress))

    await coach.train(open_run(run), settings=SETTINGS, watch=every(LOG_S, say))


@flow(flow_run_name="train-{config.family}-s{config.seed}")
async def train(config: TrainConfig, release: str | None = None, origin: str = "deployment") -> str:
    """Train, and return the run's id. `release` is what to train on where it is given, and not what the config says.

    A run that was stopped goes on where it was, when the flow is run with equal settings on an equal release.
    """
    chosen = config.model_copy(update={"release": release or config.release})
    run = await asyncio.to_thread(create, chosen, SETTINGS)
    await learn(run.path)
    told = await account(run)
    page = run.path / report.FILE
    await acreate_markdown_artifact(key="train-report", markdown=f"{report.markdown(told)}\n\nThe report: `{page}`")
    emit_event(
        TRAINED,
        resource={
            "prefect.resource.id": f"touchstone.policy.{run.id}",
            "touchstone.origin": origin,
            "touchstone.family": config.family,
        },
        payload={**report.summary(told), "path": str(run.path), "report": str(page)},
    )
    return run.id
