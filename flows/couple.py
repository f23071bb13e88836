"""The `couple` flow: several rounds of curate, train and steer in one run, going on from wherever they were stopped."""

import asyncio
from typing import Annotated

from prefect import flow, get_run_logger
from prefect.artifacts import acreate_markdown_artifact
from pydantic import Field

from flows.curate import curate
from flows.train import train
from infra.settings import Settings
from rl import rounds as loop
from rl.history import history, markdown
from rl.train.run import TrainRun
from schemas.config import CurateConfig
from schemas.rounds import RoundsConfig

SETTINGS = Settings.from_env()
ORIGIN = "couple"
"""Of the releases and policies that it makes: no deployment is started by their events."""


class Subflows:
    """The long steps as flows of their own below this one."""

    async def curate(self, config: CurateConfig) -> str:
        return str(await curate(config, origin=ORIGIN))

    async def train(self, run: TrainRun) -> None:
        await train(run.config, origin=ORIGIN)


@flow(flow_run_name="couple-{config.curate.family}-s{config.seed}")
async def couple(config: RoundsConfig, rounds: Annotated[int, Field(ge=1, le=1000)] | None = None) -> str:
    """Do the rounds and return their id. `rounds` is how many where it is given, and not what the config says."""
    chosen = config.model_copy(update={"rounds": rounds or config.rounds})
    logger = get_run_logger()
    begun = await asyncio.to_thread(loop.begin, chosen, SETTINGS)
    await loop.go_on(begun, Subflows(), SETTINGS, lambda number, step: logger.info("round %d: %s", number, step))
    told = await asyncio.to_thread(history, begun, SETTINGS)
    await acreate_markdown_artifact(key="rounds-report", markdown=markdown(told))
    return begun.path.name
