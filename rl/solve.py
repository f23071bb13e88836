"""One attempt at one task, by a model or by the oracle: `touchstone solve`."""

import asyncio

from pydantic import Field

from infra.client import ModelClient
from infra.endpoint import Endpoint
from infra.models import resolve
from infra.settings import ASSETS, Settings
from pipeline.corpora.world import World
from rl.env import Env
from rl.formats import load_format
from rl.policy import Policy, within
from rl.rollout import Watch, rollout, unwatched
from rl.scripted import oracle
from rl.solvers import AgentSolver, open_endpoint
from rl.tooling import open_tools
from schemas.base import Options
from schemas.config import Served
from schemas.episode import ContextOptions, Limits, ToolOptions
from schemas.task import Task
from schemas.trajectory import Trajectory, Turn

ORACLE = "oracle"
"""The policy that follows a script which reads pages until it is sure."""
ROOMY = Limits(max_turns=1000, max_tokens=256, context=8192, management=ContextOptions(mode="drop"))
"""What the oracle may spend where nothing else is said."""


class SolveOptions(Options):
    """One attempt."""

    seed: int = Field(default=0, ge=0, lt=2**31)
    seconds: float = Field(default=3600, gt=0)
    """Time of the whole attempt."""
    limits: Limits | None = None
    """What it may spend; what is not set here is what the policy was built with."""
    tools: ToolOptions = ToolOptions()


def solve(
    task: Task,
    served: Served,
    options: SolveOptions,
    *,
    world: World | None,
    settings: Settings,
    watch: Watch = unwatched,
) -> Trajectory:
    """Attempt the task; `served.model` is a model or `ORACLE`. Its server is started where `served` has no url.

    Raises `NoScript`, `UnavailableModel`, `ModelError`, `ToolDown` or `PolicyError`.
    """
    if served.model == ORACLE:
        return asyncio.run(_follow(task, options, world, watch))
    with open_endpoint(served, settings=settings, concurrency=1) as endpoint:
        return asyncio.run(_sample(task, served, options, endpoint, world, settings, watch))


async def _follow(task: Task, options: SolveOptions, world: World | None, watch: Watch) -> Trajectory:
    async with open_tools(world, options.tools, task.tools) as opened:
        env = Env(opened.tools, load_format(ASSETS / "starter"), within(ROOMY, options.limits), opened.extra)
        sampler = oracle(task, world, env, options.seed)

        def both(turn: Turn) -> None:
            sampler.see(turn)
            watch(turn)

        return await rollout(
            task, options.seed, env=env, sampler=sampler, solver=ORACLE, seconds=options.seconds, watch=both
        )


async def _sample(
    task: Task,
    served: Served,
    options: SolveOptions,
    endpoint: Endpoint,
    world: World | None,
    settings: Settings,
    watch: Watch,
) -> Trajectory:
    policy = Policy.load(resolve(served.model, settings.cache).path, options.limits)
    async with (
        ModelClient(endpoint, None, concurrency=1) as client,
        open_tools(world, options.tools, task.tools) as opened,
    ):
        solver = AgentSolver(
            client, world, policy, opened, temperature=served.temperature, seconds=options.seconds, watch=watch
        )
        return await solver(task, options.seed)
