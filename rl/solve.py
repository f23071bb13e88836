"""One attempt at one task, by a model or by the oracle: `touchstone solve`."""

import asyncio

from pydantic import Field

from infra.client import ModelClient
from infra.endpoint import Endpoint
from infra.models import resolve
from infra.settings import ASSETS, Settings
from pipeline.corpora.world import World
from rl.context import ContextOptions
from rl.env import Env, Limits
from rl.formats import load_format
from rl.policy import Policy
from rl.rollout import Watch, rollout
from rl.scripted import oracle
from rl.solvers import AgentSolver, open_endpoint
from rl.tooling import open_tools, toolsets_of
from schemas.base import Options
from schemas.config import Served, ToolOptions
from schemas.task import Task
from schemas.trajectory import Trajectory

ORACLE = "oracle"
"""The policy that follows a script which reads pages until it is sure."""
ROOMY = Limits(max_turns=1000, max_tokens=256, context=8192, management=ContextOptions(mode="drop"))
"""What the oracle may spend; what is asked may take hundreds of pages."""


class SolveOptions(Options):
    """One attempt."""

    seed: int = Field(default=0, ge=0, lt=2**31)
    seconds: float = Field(default=3600, gt=0)
    """Time of the whole attempt."""
    limits: Limits | None = None
    """What it may spend; absent, what the policy was built for."""
    tools: ToolOptions = ToolOptions()


def solve(
    task: Task, served: Served, *, world: World | None, options: SolveOptions, settings: Settings, watch: Watch
) -> Trajectory:
    """Attempt the task, with `served.model` the model or `ORACLE`. Starts the model's server where `served` has no url.

    Raises `NoScript`, `UnavailableModel`, `ModelError`, `ToolDown` or `PolicyError`.
    """
    if served.model == ORACLE:
        return asyncio.run(_follow(task, world, options, watch))
    with open_endpoint(served, settings=settings, concurrency=1) as endpoint:
        return asyncio.run(_ask(task, served, endpoint, world, options, settings, watch))


async def _follow(task: Task, world: World | None, options: SolveOptions, watch: Watch) -> Trajectory:
    async with open_tools(world, options.tools, toolsets_of(task.tools)) as tools:
        format = load_format(ASSETS / "starter")
        env = Env(tools, format, options.limits or ROOMY, tuple(options.tools.offered(tools.specs)))
        sampler = oracle(task, world, env, options.seed)

        def both(turn):
            sampler.see(turn)
            watch(turn)

        return await rollout(
            task, options.seed, env=env, sampler=sampler, solver=ORACLE, seconds=options.seconds, watch=both
        )
