"""`touchstone evaluate`: a model on the held-out tasks of a release, or on a user's file of a benchmark."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from infra.client import ModelClient
from infra.endpoint import Endpoint
from infra.files import write_table, write_whole
from infra.models import resolve
from infra.settings import Settings
from pipeline.benchmarks.files import read
from pipeline.corpora import load_world
from pipeline.corpora.world import World
from pipeline.curate import corpus
from pipeline.release import Release
from pipeline.replay import config_of
from rl.evaluate import EvaluationError, Progress, evaluate, unseen
from rl.learn.records import Graded
from rl.policy import Policy
from rl.solvers import AgentSolver, open_endpoint
from rl.tooling import open_tools
from rl.train.checkpoints import Checkpoints
from rl.train.run import FOLDER, RUN_FILE, find
from schemas.arrow import ATTEMPTS
from schemas.base import content_hash
from schemas.config import Served
from schemas.evaluation import EvaluateConfig, Evaluation
from schemas.task import Task

GRACE = 60.0
"""Seconds that an attempt has beyond its own time before it counts as broken."""
_READS = frozenset({"search", "open", "find", "follow", "back"})


@dataclass(frozen=True)
class Held:
    """Tasks that nobody trained on; `skipped` are the rows beside them that are no tasks, by reason."""

    on: str
    tasks: tuple[Task, ...]
    world: World | None
    skipped: Mapping[str, int] = field(default_factory=dict)


def of_release(release: Release, config: EvaluateConfig, cache: Path) -> Held:
    """The tasks of a family's split. Raises `EvaluationError` where there are none."""
    tasks = tuple(row.task for row in release.rows(config.family, config.split))
    if not tasks:
        splits = ", ".join(f"{name} {rows}" for name, rows in release.splits(config.family).items())
        raise EvaluationError(
            f"split={config.split}: release {release.version} has no {config.family} rows in it; "
            f"it has {splits or 'none of this family'}"
        )
    return Held(f"{release.version}/{config.family}/{config.split}", tasks, corpus(config_of(tasks[0], release), cache))


def of_file(path: Path, config: EvaluateConfig, cache: Path, format: str | None = None) -> Held:
    """The tasks of a benchmark's file, with the tools of `config.offered`. Raises `BenchmarkError`."""
    found = read(path, config.offered, format)
    searched = config.tools.pages is None and _READS & set(config.offered)
    return Held(found.name, found.tasks, load_world(config.world, cache) if searched else None, found.skipped)


def policy_folder(name: str, settings: Settings) -> str:
    """The model that a name means: of a training run (its folder, its id, `latest`) the last checkpoint; else the name itself.

    Raises `EvaluationError` for a run without a checkpoint, `TrainRunError` where there is no run.
    """
    if name != "latest" and not any(
        (path / RUN_FILE).is_file() for path in (Path(name), settings.cache / FOLDER / name)
    ):
        return name
    run = find(name, settings)
    checkpoints = Checkpoints(run.path, run.config.checkpoint)
    if not checkpoints.last:
        raise EvaluationError(f"{name}: the run has no checkpoint yet; wait for its first one")
    return str(checkpoints.path(checkpoints.last))


def evaluate_served(
    served: Served, held: Held, config: EvaluateConfig, *, settings: Settings, progress: Progress = unseen
) -> tuple[Evaluation, list[Graded]]:
    """Serve the model, unless it is served already, and evaluate it.

    Raises `UnavailableModel`, `ModelError`, `ToolDown`, `NoPages`, `PolicyError`, `SolverDown` or `EvaluationError`.
    """
    with open_endpoint(served, settings=settings, concurrency=config.concurrency) as endpoint:
        folder = resolve(served.model, settings.cache).path
        return asyncio.run(evaluate_policy(Policy.load(folder, config.limits), endpoint, held, config, progress))


async def evaluate_policy(
    policy: Policy, endpoint: Endpoint, held: Held, config: EvaluateConfig, progress: Progress = unseen
) -> tuple[Evaluation, list[Graded]]:
    """Evaluate a policy whose server is up."""
    names = {name for task in held.tasks for name in task.tools}
    async with (
        ModelClient(endpoint, None, config.concurrency) as client,
        open_tools(held.world, config.tools, names) as opened,
    ):
        if missing := sorted(names - set(opened.tools.specs)):
            raise EvaluationError(
                f"offered={', '.join(missing)}: no such tools here, there are {', '.join(sorted(opened.tools.specs))}; "
                "leave them out, or add a server that has them to tools.servers"
            )

        def at(temperature: float) -> AgentSolver:
            return AgentSolver(client, held.world, policy, opened, temperature=temperature, seconds=config.seconds)

        return await evaluate(
            held.tasks,
            config,
            sampled=at(config.temperature),
            greedy=at(0.0),
            on=held.on,
            skipped=held.skipped,
            seed=config.seed,
            concurrency=config.concurrency,
            deadline=config.seconds + GRACE,
            progress=progress,
        )


def write(evaluation: Evaluation, attempts: list[Graded], folder: Path) -> Path:
    """`evaluation.json` and `attempts.parquet` (greedy ones first), in a folder under `folder` that is named by the content."""
    target = folder / content_hash(evaluation)
    write_table(target / "attempts.parquet", ATTEMPTS.pack(one.trajectory for one in attempts))
    write_whole(target / "evaluation.json", evaluation.model_dump_json(indent=1).encode())
    return target
