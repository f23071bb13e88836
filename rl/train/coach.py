"""A training run from its folder to its end: evaluate, learn, evaluate again, report. What is done is not done again."""

import asyncio
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import uuid4

import torch

from infra.engine import EngineOptions
from infra.files import locked, write_whole
from infra.models import LocalModel
from infra.place import LOCAL, place_at
from infra.settings import Settings
from rl.heldout import evaluate_served, of_release
from rl.learn.learner import TrainerSetup
from rl.learn.trainer import TorchTrainer
from rl.train import capacity, report
from rl.train.buffer import Buffer
from rl.train.checkpoints import BUFFER, Checkpoints
from rl.train.engine import VllmEngine
from rl.train.fleet import Fleet, Recipe
from rl.train.loop import Loop
from rl.train.parts import Engine, Worker
from rl.train.progress import Progress, Watch, unwatched
from rl.train.run import TrainRun, possible
from rl.train.stepper import Stepper
from rl.train.worker import RolloutWorker, WorkerSetup
from schemas.config import Served
from schemas.evaluation import EvaluateConfig, Evaluation
from schemas.training import TrainConfig

MEMORY = Path("/dev/shm")  # noqa: S108 - weights pass through it, in a folder that only this run has
MOST_SEQUENCES = 256
"""That a server decodes at once; more wait in it."""


async def train(run: TrainRun, *, settings: Settings, watch: Watch = unwatched) -> None:
    """Do whatever of the run is not done. Stopped at any point, the same call goes on from there.

    Raises `FolderInUse` where another process works on the run, and whatever a stage cannot go on after.
    """
    with locked(run.path):
        checkpoints = Checkpoints(run.path, run.config.checkpoint)
        await evaluated(run, 0, settings, watch)
        await learn(run, checkpoints, settings, watch)
        await evaluated(run, checkpoints.last, settings, watch)
        await report.write(run)


async def evaluated(run: TrainRun, step: int, settings: Settings, watch: Watch = unwatched) -> Evaluation:
    """The policy after so many steps on the held-out tasks: as it was measured before, or measured now."""
    if (found := run.evaluation(step)) is not None:
        return found
    stage = "evaluate on held-out tasks, once its server has started"
    watch(Progress(stage=stage, step=step, steps=None, minutes=0.0, of_minutes=None))
    config = EvaluateConfig(
        **run.config.evaluation.model_dump(exclude={"release"}),
        temperature=run.config.rollout.temperature,
        seed=run.config.seed,
        family=run.config.family,
        limits=run.config.limits,
        tools=run.config.tools,
    )
    folder = run.policy if step == 0 else Checkpoints(run.path, run.config.checkpoint).path(step)
    held = await asyncio.to_thread(of_release, run.held_out, config, settings.cache)
    measured, _ = await asyncio.to_thread(evaluate_served, Served(model=str(folder)), held, config, settings=settings)
    write_whole(run.evaluation_file(step), measured.model_dump_json(indent=1).encode())
    return measured


async def learn(
    run: TrainRun,
    checkpoints: Checkpoints,
    settings: Settings,
    watch: Watch = unwatched,
    *,
    engine: Recipe | None = None,
    worker: Callable[[WorkerSetup, Sequence[Engine]], Worker] = RolloutWorker,
) -> None:
    """The loop, from wherever the run stands until it is over by its config. Starts nothing where it is.

    `engine` and `worker` take the place of vLLM and of the usual worker, for who measures or tests. Raises `TrainRunError`
    for what the machine as it is set up cannot do.
    """
    possible(run.config, settings)
    tasks = await asyncio.to_thread(run.tasks, run.config.split)
    checkpoints.restore(run.path / BUFFER)
    with closing(Buffer(run.path / BUFFER)) as buffer:
        if await _is_over(run.config, len(tasks), buffer, checkpoints):
            return
        place = await asyncio.to_thread(place_at, settings.ray)
        try:
            with weights_folder(run, shared=settings.ray not in (None, LOCAL)) as weights:
                fleet = Fleet(
                    place,
                    engines=[engine or _engine(run, settings)] * run.config.rollout.engines,
                    workers=[Recipe(worker, (_setup(run, settings),))] * run.config.rollout.workers,
                    trainers=lambda: _ranks(run, weights),
                )
                async with fleet as parts:
                    stepper = Stepper(run.config, buffer=buffer, parts=parts, checkpoints=checkpoints)
                    await Loop(run.config, tasks, buffer=buffer, parts=parts, stepper=stepper, watch=watch).run()
        finally:
            await asyncio.to_thread(place.close)


async def _is_over(config: TrainConfig, tasks: int, buffer: Buffer, checkpoints: Checkpoints) -> bool:
    """Whether a checkpoint holds every step, and the config asks for no more or every task was played as often as it may be."""
    steps = await buffer.last_step()
    if steps != checkpoints.last:
        return False
    if capacity.is_over(config, version=steps, seconds=await buffer.seconds()):
        return True
    waits = await buffer.open() or await buffer.ready()
    return not waits and not capacity.may_begin(config, version=steps, begun=await buffer.begun(), tasks=tasks)


@contextmanager
def weights_folder(run: TrainRun, *, shared: bool) -> Iterator[Path]:
    """Where weights pass from the trainer to engines: in memory on one machine, in the run's folder where there are more."""
    if shared or not os.access(MEMORY, os.W_OK):
        yield run.path / "weights"
        return
    folder = MEMORY / f"touchstone-{hashlib.sha256(str(run.path).encode()).hexdigest()[:16]}"
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _engine(run: TrainRun, settings: Settings) -> Recipe:
    cores = len(os.sched_getaffinity(0))
    options = EngineOptions(
        max_num_seqs=min(run.config.rollout.slots, MOST_SEQUENCES),
        threads=max(1, cores // (run.config.rollout.engines + 1)),
    )
    model = LocalModel(run.origin.policy, run.policy, run.origin.revision)
    return Recipe(served_engine, (model, settings.cache, run.config.rollout.temperature, options), gpus=_gpus())


def served_engine(model: LocalModel, cache: Path, temperature: float, options: EngineOptions) -> VllmEngine:
    return VllmEngine(model, cache=cache, temperature=temperature, options=options)


def _setup(run: TrainRun, settings: Settings) -> WorkerSetup:
    rollout = run.config.rollout
    return WorkerSetup(
        policy=run.policy,
        limits=run.config.limits,
        tools=run.config.tools,
        world=run.origin.world,
        cache=settings.cache,
        solver=f"{run.origin.policy}@{run.id}",
        stint_seconds=rollout.stint_seconds,
        seconds=rollout.seconds,
    )


def _ranks(run: TrainRun, weights: Path) -> list[Recipe]:
    """The ranks of one life of the trainer; they meet in a file that no life before has used."""
    config, world = run.config, run.config.optimiser.ranks
    meetings = run.path / "meetings"
    shutil.rmtree(meetings, ignore_errors=True)
    meetings.mkdir()
    meet = f"file://{meetings}/{uuid4().hex}" if world > 1 else None
    return [
        Recipe(
            TorchTrainer,
            (
                TrainerSetup(
                    policy=str(run.policy),
                    weights=str(weights),
                    optimiser=config.optimiser,
                    loss=config.loss,
                    temperature=config.rollout.temperature,
                    rank=rank,
                    world=world,
                    meet=meet,
                    offers=config.transport == "broadcast",
                ),
            ),
            gpus=_gpus(),
        )
        for rank in range(world)
    ]


def _gpus() -> int:
    return int(torch.cuda.is_available())
