"""Curation from a config to a release: the order of the stages, in one place, for the command line and for flows.

Every stage of a batch that is done leaves a file and is not done again; model calls lie in the run's journal. So whatever
stopped a run, starting it again with an equal config goes on where it was and ends in the same release.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, Protocol

from infra.files import locked
from infra.journal import Journal
from infra.store import Store
from pipeline import assemble, passn, plans, release, stages
from pipeline.apart import HeldOut
from pipeline.corpora import World, load_world
from pipeline.earlier import tried_again
from pipeline.families import Generator, generator
from pipeline.filters import FUNNEL
from pipeline.runs import Origin, Run
from pipeline.sampling import together
from pipeline.solver import Solver
from schemas.config import CurateConfig, Served
from schemas.episode import Limits, ToolOptions
from schemas.task import Family

Progress = Callable[[str, int, int], None]
"""Told (stage, done, total), in tasks."""

Arm = Literal["tools", "closed_book", "reasoning", "no_reasoning"]

ARMS: dict[Family, dict[Literal["probe", "measure"], Arm]] = {
    "hard_search": {"probe": "closed_book", "measure": "tools"},
    "math": {"probe": "no_reasoning", "measure": "reasoning"},
}
"""What the solver of a stage may use."""

ABOUT_A_WORLD: frozenset[Family] = frozenset({"hard_search"})
ASKED = ("probe", "measure")

_LOADING = threading.Lock()

AT_ONCE = 2
"""Batches a stage works on together, so that one's stragglers do not leave the engine idle."""


class OpenSolver(Protocol):
    """Opens a solver for as long as a stage needs it; calls go through the journal."""

    def __call__(
        self,
        served: Served,
        arm: Arm,
        *,
        journal: Journal,
        world: World | None,
        limits: Limits | None,
        tools: ToolOptions,
        concurrency: int,
    ) -> AbstractAsyncContextManager[Solver]: ...


class Work(Protocol):
    """Does one stage on batches of a run, wherever it does it."""

    async def __call__(self, stage: str, run: Run, batches: Sequence[int]) -> None: ...


@dataclass(frozen=True)
class Published:
    """`new` is false where an equal run had published the same release before."""

    release: release.Release
    new: bool


async def curate(
    config: CurateConfig,
    *,
    world: World | None,
    runs: Path,
    store: Store,
    work: Work,
    progress: Progress = lambda *_: None,
) -> Run:
    """Take a run through every stage and return it, ready to publish. Folders of runs lie under `runs`.

    A `store` that cannot be written is found out before the work; of a run only the plan that it follows is kept there.
    """
    store.check()
    run = start(config, world, runs, store)
    with locked(run.path):
        for batches in _rounds(run):
            for stage in stages.ORDER[config.family]:
                todo = [batch for batch in batches if not run.has(stages.LEFT_BY[stage], batch)]
                if todo:
                    await work(stage, run, todo)
            if config.by_batch and _over(run, progress):
                break
    return run


def corpus(config: CurateConfig, cache: Path) -> World | None:
    """The world that a config's family asks about, built or loaded under `cache`; `None` for a family that needs none.

    Stages that run as threads of one process share it.
    """
    if config.family not in ABOUT_A_WORLD:
        return None
    with _LOADING:
        return _loaded(config.world, cache)


@lru_cache(maxsize=1)
def _loaded(world: str, cache: Path) -> World:
    return load_world(world, cache)


@lru_cache(maxsize=2)
def _generator(config: CurateConfig, world: World | None) -> Generator:
    return generator(config, world)


def served_for(stage: str, run: Run, batches: Sequence[int]) -> Served | None:
    """The model that a stage asks, `None` where it asks none or no task of these batches waits for it."""
    if stage not in ASKED or not any(stages.waiting(run, batch, stage) for batch in batches):
        return None
    return run.config.closed_book if stage == "probe" else run.config.resolved_solver()


def ahead(stage: str, run: Run) -> tuple[Served, ...]:
    """The models that may start while a stage works: all of the run's while its candidates are made."""
    return run.config.models if stage == "generate" else ()


def start(config: CurateConfig, world: World | None, runs: Path, store: Store) -> Run:
    """The run of this config on this world and this version of the filters, new or as it was left.

    What the config names in `store` is looked up once and kept with the run: a plan's aims, held-out tasks, tasks to try again.
    Raises `PlanError` or `ReleaseError` for what is not there or does not fit.
    """
    config = plans.followed(config, store, lambda: _generator(config, world), world.hash if world else "")
    held_out, earlier = (_named(name, config.family, store) for name in (config.held_out, config.earlier))
    versions = {"held_out": held_out and held_out.version, "earlier": earlier and earlier.version}
    config = config.model_copy(update=versions)
    filters = {f.name: f.version for f in FUNNEL[config.family]} | {passn.NAME: passn.VERSION}
    origin = Origin(generator=_generator(config, world).version, filters=filters)
    if world is not None:
        origin = origin.model_copy(update={"world": world.name, "world_hash": world.hash, "sources": world.sources})
    run = Run.create(runs, config, origin)
    tasks = [row.task for row in held_out.rows(config.family)] if held_out else []
    run.take_in(HeldOut.of(tasks), tried_again(earlier, config) if earlier else [])
    return run


def _named(name: str | None, family: Family, store: Store) -> release.Release | None:
    if name is None:
        return None
    found = release.load(release.resolve(store, name))
    if family not in found.manifest.funnel:
        raise release.ReleaseError(
            f"{name}: is a release of {', '.join(found.manifest.funnel)}, not of {family}; name another"
        )
    return found


def publish(runs: Sequence[Run], store: Store, version: str | None = None) -> Published:
    """One release of finished runs of different families. Publishing equal runs again finds the release that is there."""
    try:
        return Published(release.publish(store, [assemble.part(run) for run in runs], version), True)
    except release.ReleaseExists as found:
        return Published(release.load(found.url), False)


def _rounds(run: Run) -> Iterator[range]:
    """Batches that go through a stage together: all, or one after another until enough tasks are accepted."""
    if not run.config.by_batch:
        yield stages.batches(run)
        return
    for batch in stages.batches(run):
        yield range(batch, batch + 1)


def _over(run: Run, progress: Progress) -> bool:
    stands = assemble.standing(run)
    for name, have, goal in (("accepted", stands.kept, run.config.accept), ("tokens", stands.spent, run.config.budget)):
        if goal is not None:
            progress(name, min(have, goal), goal)
    return stands.ending(run) is not None


class Here:
    """`Work` in this process. `expect` is told which models are asked `ahead`."""

    def __init__(
        self,
        world: World | None,
        open_solver: OpenSolver,
        progress: Progress = lambda *_: None,
        expect: Callable[[Iterable[Served]], None] = lambda _: None,
    ) -> None:
        self._world, self._open_solver, self._progress, self._expect = world, open_solver, progress, expect

    async def __call__(self, stage: str, run: Run, batches: Sequence[int]) -> None:
        self._expect(ahead(stage, run))
        match stage:
            case "generate":
                bar = _Bar(self._progress, stage, sum(len(stages.indices(run, batch)) for batch in batches))
                make = _generator(run.config, self._world)
                await _a_few_at_once(batches, lambda b: asyncio.to_thread(stages.generate, run, b, make, bar))
            case "screen":
                bar = _Bar(self._progress, stage, sum(len(stages.tasks(run, batch)) for batch in batches))
                census = await asyncio.to_thread(stages.census, run, batches[-1])
                await _a_few_at_once(batches, lambda b: stages.screen(run, b, self._world, census, bar))
            case "probe" | "measure":
                await self._ask(stage, run, batches)

    async def _ask(self, stage: Literal["probe", "measure"], run: Run, batches: Sequence[int]) -> None:
        config, do = run.config, stages.probe if stage == "probe" else stages.measure
        left = {batch: len(stages.waiting(run, batch, stage)) for batch in batches}
        for batch in (batch for batch in batches if not left[batch]):
            stages.pass_by(run, batch, stage)
        if (served := served_for(stage, run, batches)) is None:
            return
        bar = _Bar(self._progress, stage, sum(left.values()))
        with Journal(run.journal) as journal:
            async with self._open_solver(
                served,
                ARMS[config.family][stage],
                journal=journal,
                world=self._world,
                limits=config.limits,
                tools=config.tools,
                concurrency=config.concurrency,
            ) as solver:
                await _a_few_at_once([b for b in batches if left[b]], lambda batch: do(run, batch, solver, bar))


async def _a_few_at_once(batches: Sequence[int], do: Callable[[int], Awaitable[None]]) -> None:
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(batch: int) -> None:
        async with slots:
            await do(batch)

    await together(one(batch) for batch in batches)


class _Bar:
    """Counts one stage's tasks; safe from several threads."""

    def __init__(self, progress: Progress, stage: str, total: int) -> None:
        self._progress, self._stage, self._total = progress, stage, total
        self._done = 0
        self._guard = threading.Lock()
        progress(stage, 0, total)

    def __call__(self) -> None:
        with self._guard:
            self._done += 1
            self._progress(self._stage, self._done, self._total)
