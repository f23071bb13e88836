"""Pass@N: how often a solver is right on a task, sampled until the keep band is decided.

Stopping is lossless: the verdict is the one that all `n` samples would give. A task ends as exactly one certificate, and
every attempt at it comes back.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from pipeline.copies import only_copies
from pipeline.filters.base import Certifier
from pipeline.sampling import Sampler, Samples, together
from pipeline.sequential import Band
from pipeline.solver import Solver
from schemas.certificate import Certificate, Outcome
from schemas.config import KeepBand
from schemas.difficulty import Difficulty
from schemas.task import Task
from schemas.trajectory import Trajectory

VERSION = "1"
NAME = "pass_at_n"


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

    results = await together(one(task) for task in tasks)
    if only_copies([measured.trajectories for measured in results]):
        return [_not_sampled(measured) for measured in results]
    return results


async def measure(task: Task, sampler: Sampler, keep: KeepBand) -> Measured:
    """The verdict on one task: `too_hard` below the keep band, `too_easy` above it."""
    certify = Certifier(task, NAME, VERSION)
    solver = sampler.solver
    if isinstance(solver, Limited) and (why := solver.out_of_reach(task)) is not None:
        certificate = certify.reject("too_hard_for_solver", why=why, solver=solver.name)
        return Measured(task, certificate, Samples().difficulty(solver), ())
    rule = Band(keep)
    samples = await sampler.sample(task, rule)
    found = {**samples.measured(solver), "band": keep.model_dump(mode="json")}
    if fault := samples.fault(rule):
        certificate = certify.write(*fault, **found)
    elif (verdict := rule.verdict(samples.n, samples.correct)) == "keep":
        certificate = certify.keep(**found)
    else:
        certificate = certify.reject(str(verdict), **found)
    return Measured(task, certificate, samples.difficulty(solver), samples.trajectories)


def _not_sampled(measured: Measured) -> Measured:
    if not measured.trajectories:
        return measured
    failed = measured.certificate.model_copy(update={"outcome": Outcome.FAILED, "reason": "identical_samples"})
    return replace(measured, certificate=failed)
