"""Pass@N: how often a solver is right on a task, sampled until the keep band is decided.

Stopping is lossless: the verdict is the one that all `n` samples would give. A task ends as exactly one certificate, and
every attempt at it comes back.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pipeline.filters.base import Certifier
from pipeline.sampling import Grading, Sampler, Samples, together
from pipeline.sequential import Band
from pipeline.solver import Solver
from schemas.certificate import Certificate
from schemas.config import KeepBand
from schemas.difficulty import Difficulty
from schemas.task import Task
from schemas.trajectory import Trajectory

VERSION = "1"
NAME = "pass_at_n"
CHANCE = 1e-6
"""Copies that honest sampling makes less often than this are a broken sampler."""
WITNESSES = 8
"""Tasks that must all show nothing but copies before a sampler without log-probabilities is called broken."""


@runtime_checkable
class Limited(Protocol):
    """A solver that knows of tasks it cannot do."""

    def out_of_reach(self, task: Task) -> str | None:
        """What puts the task out of reach, `None` where nothing does."""
        ...


@dataclass(frozen=True, slots=True)
class Measured:
    """A task's verdict, its difficulty for the solver, and every attempt, lost ones included, in the order of the seeds."""

    task: Task
    certificate: Certificate
    difficulty: Difficulty
    trajectories: tuple[Trajectory, ...]


async def pass_at_n(
    tasks: Sequence[Task],
    solver: Solver,
    keep: KeepBand,
    run_seed: int,
    concurrency: int,
    advance: Callable[[], object] = lambda: None,
) -> list[Measured]:
    """One `Measured` a task, in order; `advance` is called after each. Raises `SolverDown` when nothing comes back.

    Equal (task, run seed) draws equal seeds in equal waves, so a run that was cut off pays only for what was in flight.
    """
    sampler = Sampler(solver, run_seed, concurrency)

    async def one(task: Task) -> Measured:
        measured = await measure(task, sampler, keep)
        advance()
        return measured

    return _checked_for_copies(await together(one(task) for task in tasks))


async def measure(task: Task, sampler: Sampler, keep: KeepBand) -> Measured:
    """The verdict of one task: `too_hard` below the keep band, `too_easy` above it."""
    certify = Certifier(task, NAME, VERSION)
    solver = sampler.solver
    if isinstance(solver, Limited) and (why := solver.out_of_reach(task)) is not None:
        nothing = Samples().difficulty(solver)
        return Measured(task, certify.reject("too_hard_for_solver", why=why, solver=solver.name), nothing, ())
    rule = Band(keep)
    samples = await sampler.sample(task, rule)
    found = {**samples.measured(solver), "band": keep.model_dump(mode="json")}
    trajectories = tuple(attempt.trajectory for attempt in samples.attempts)
    match rule.verdict(samples.n, samples.correct):
        case "keep":
            certificate = certify.keep(**found)
        case str(verdict):
            certificate = certify.reject(verdict, **found)
        case None if samples.count(Grading.LOST) > sampler.spare:
            certificate = certify.failed(f"infra: {samples.last(Grading.LOST)}", **found)
        case None:
            certificate = certify.undecided("ungradable", why=samples.last(Grading.UNDECIDED), **found)
    if chance_of_copies(trajectories) < CHANCE:
        certificate = certify.failed("identical_samples", **found)
    return Measured(task, certificate, samples.difficulty(solver), trajectories)


def copies(trajectories: Sequence[Trajectory]) -> bool:
    """Whether two or more attempts were made and all of them say the same in every turn."""
    said = [tuple(turn.text for turn in trajectory.turns) for trajectory in trajectories if trajectory.turns]
    return len(said) > 1 and len(set(said)) == 1


def chance_of_copies(trajectories: Sequence[Trajectory]) -> float:
    """How likely honest sampling repeats the first attempt in all others, by the sampler's own log-probabilities.

    A confident model may repeat itself: its copies are likely ones. 1 where attempts differ or no log-probabilities came.
    """
    if not copies(trajectories):
        return 1.0
    with_turns = [trajectory for trajectory in trajectories if trajectory.turns]
    return math.exp(sum(sum(turn.logprobs) for trajectory in with_turns[1:] for turn in trajectory.turns))


def _checked_for_copies(results: list[Measured]) -> list[Measured]:
    """Fails every sampled task when a server without log-probabilities gave nothing but copies on many of them."""
    blind = [
        m for m in results if len(m.trajectories) > 1 and not any(t.logprobs for x in m.trajectories for t in x.turns)
    ]
    if len(blind) < WITNESSES or not all(copies(m.trajectories) for m in blind):
        return results
    return [_failed_as_copies(m) if m in blind else m for m in results]


def _failed_as_copies(measured: Measured) -> Measured:
    found = measured.certificate.model_dump(include={"score", "interval", "n", "cost", "calls"})
    certificate = Certifier(measured.task, NAME, VERSION).failed(
        "identical_samples", **found, **measured.certificate.detail
    )
    return Measured(measured.task, certificate, measured.difficulty, measured.trajectories)
