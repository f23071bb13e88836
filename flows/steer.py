"""The `steer` flow: what a policy failed at becomes the plan that the next curation follows."""

import asyncio

from prefect import flow
from prefect.artifacts import acreate_markdown_artifact
from prefect.events import emit_event

from infra.settings import Settings
from infra.store import Store
from pipeline import plans
from rl import steer as steering
from rl.train.run import find
from schemas.steering import SteeringOptions

DRAWN = "touchstone.plan.drawn"
"""The event that there is a new latest plan."""

SETTINGS = Settings.from_env()


@flow(flow_run_name="steer-{run}")
async def steer(run: str = "latest", options: SteeringOptions = SteeringOptions()) -> str:  # noqa: B008 - frozen
    """Draw the plan after a training run, publish it as the latest, and return its id."""
    found = await asyncio.to_thread(find, run, SETTINGS)
    plan = await asyncio.to_thread(steering.drawn, found, SETTINGS, options)
    where = await asyncio.to_thread(plans.publish, Store(SETTINGS.store), plan)
    await acreate_markdown_artifact(key="steering-plan", markdown=f"{plans.markdown(plan)}\nThe plan: `{where}`")
    emit_event(
        DRAWN,
        resource={"prefect.resource.id": f"touchstone.plan.{plan.id}", "touchstone.family": plan.family},
        payload={"plan": plan.id, "url": where, "run": found.id, "release": plan.release},
    )
    return plan.id
