"""Draws attempts until a rule decides, for many tasks at once.

Invariants: at most `concurrency` attempts of a sampler run at a time; a task's next wave starts when its last one is graded,
so other tasks fill the engine meanwhile; seeds and waves depend on the run seed and the grades only, never on timing; an
attempt that broke is repeated under its own seed, then counted as lost, and is never a wrong answer.
"""

import asyncio
import random
from collections.abc import Awaitable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from pydantic import JsonValue

from pipeline.copies import CHANCE, chance_of_copies
from pipeline.grading import agrade
from pipeline.sequential import Rule, beta_interval, wave
from pipeline.solver import Solver, SolverDown
from schemas.certificate import Outcome
from schemas.difficulty import Difficulty
from schemas.task import Task
from schemas.trajectory import StopReason, Trajectory

NOBODYS_FAILURE = frozenset({StopReason.INFRA, StopReason.TOOL_DOWN, StopReason.TIME_BUDGET})
TRUNCATED = frozenset({StopReason.MAX_TOKENS, StopReason.CONTEXT_OVERFLOW})

T = TypeVar("T")


class Grading(StrEnum):
    """What became of one attempt. `lost` and `undecided` say nothing about the solver and stay outside `n`."""

    RIGHT = "right"
    WRONG = "wrong"
    TRUNCATED = "truncated"
    UNDECIDED = "undecided"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Attempt:
    trajectory: Trajectory
    grading: Grading
    why: str = ""


@dataclass(slots=True)
class Samples:
    """Every attempt drawn for one task, in the order of its seeds."""

    attempts: list[Attempt] = field(default_factory=list)

    def count(self, *gradings: Grading) -> int:
        return sum(attempt.grading in gradings for attempt in self.attempts)

    @property
    def n(self) -> int:
        return self.count(Grading.RIGHT, Grading.WRONG, Grading.TRUNCATED)

    @property
    def correct(self) -> int:
        return self.count(Grading.RIGHT)

    @property
    def trajectories(self) -> tuple[Trajectory, ...]:
        return tuple(attempt.trajectory for attempt in self.attempts)

    def fault(self, rule: Rule) -> tuple[Outcome, str] | None:
        """Why these samples support no verdict of the rule; `None` where they do."""
        if chance_of_copies(self.trajectories) < CHANCE:
            return Outcome.FAILED, "identical_samples"
        if rule.verdict(self.n, self.correct) is not None:
            return None
        lost, unclear = self.whys(Grading.LOST), self.whys(Grading.UNDECIDED)
        if len(lost) >= len(unclear):
            return Outcome.FAILED, f"infra: {lost[-1]}"
        return Outcome.UNDECIDED, f"ungradable: {unclear[-1]}"

    def whys(self, grading: Grading) -> list[str]:
        return [attempt.why for attempt in self.attempts if attempt.grading is grading]

    def difficulty(self, solver: Solver) -> Difficulty:
        return Difficulty(
            solver=solver.name,
            arm=solver.arm,
            n=self.n,
            correct=self.correct,
            truncated=self.count(Grading.TRUNCATED),
            undecided=self.count(Grading.UNDECIDED),
            seeds=tuple(trajectory.seed for trajectory in self.trajectories),
        )

    def measured(self, solver: Solver) -> dict[str, JsonValue]:
        """What a certificate stores of the samples: the posterior mean in its 95 % interval, the counts, what was paid."""
        difficulty = self.difficulty(solver)
        low, high = beta_interval(
            difficulty.prior_a + difficulty.correct, difficulty.prior_b + difficulty.n - difficulty.correct
        )
        return {
            "score": difficulty.posterior_mean,
            "interval": [low, high],
            "n": difficulty.n,
            "cost": sum(trajectory.tokens for trajectory in self.trajectories),
            "calls": [turn.call_id for trajectory in self.trajectories for turn in trajectory.turns],
            "difficulty": difficulty.model_dump(mode="json"),
            "lost": self.count(Grading.LOST),
        }


def attempt_seeds(run_seed: int, task_id: str, arm: str) -> Iterator[int]:
    """Distinct seeds below 2^31 without end: the k-th is the same in every run with this seed."""
    draw = random.Random(f"{run_seed}/{task_id}/{arm}")
    seen: set[int] = set()
    while True:
        if (seed := draw.getrandbits(31)) not in seen:
            seen.add(seed)
            yield seed


class Sampler:
    """One solver's attempts at many tasks."""

    def __init__(
        self,
        solver: Solver,
        run_seed: int,
        concurrency: int,
        *,
        deadline: float = 900.0,
        repeats: int = 2,
        spare: int = 4,
        outage: int = 32,
    ) -> None:
        """`deadline`: seconds for one attempt. `repeats`: tries more for one that broke. `spare`: lost, and undecided,
        samples a task may have. `outage`: broken attempts in a row that raise `SolverDown`, never fewer than two waves of
        the whole engine.
        """
        self.solver, self.run_seed, self.spare = solver, run_seed, spare
        self._slots = asyncio.Semaphore(concurrency)
        self._deadline, self._repeats, self._outage = deadline, repeats, max(outage, 2 * concurrency)
        self._broken_in_a_row = 0
        self._down: SolverDown | None = None

    async def sample(self, task: Task, rule: Rule) -> Samples:
        """Attempts until `rule` decides, or more than `spare` are lost or undecided. Raises `SolverDown`."""
        samples = Samples()
        seeds = attempt_seeds(self.run_seed, task.task_id, self.solver.arm)
        while size := wave(rule, samples.n, samples.correct):
            if max(samples.count(Grading.LOST), samples.count(Grading.UNDECIDED)) > self.spare:
                break
            samples.attempts += await together(self._attempt(task, next(seeds)) for _ in range(size))
        return samples

    async def _attempt(self, task: Task, seed: int) -> Attempt:
        for _ in range(1 + self._repeats):
            async with self._slots:
                if self._down:
                    raise self._down
                trajectory = await self._solve(task, seed)
            self._notice(trajectory)
            if trajectory.stop not in NOBODYS_FAILURE:
                return await _graded(task, trajectory)
        return Attempt(trajectory, Grading.LOST, trajectory.error or trajectory.stop)

    def _notice(self, trajectory: Trajectory) -> None:
        """Counts broken attempts in a row, over all tasks, and closes the sampler on an outage."""
        self._broken_in_a_row = self._broken_in_a_row + 1 if trajectory.stop in NOBODYS_FAILURE else 0
        if self._broken_in_a_row == self._outage:
            self._down = SolverDown(
                f"{self.solver.name}: {self._outage} attempts in a row broke, the last one with "
                f"'{trajectory.error or trajectory.stop}'; see the server's log and run again, nothing done is repeated"
            )
        if self._down:
            raise self._down

    async def _solve(self, task: Task, seed: int) -> Trajectory:
        """The solver's attempt; one that breaks or passes the deadline is an `infra` stop."""
        try:
            async with asyncio.timeout(self._deadline):
                return await self.solver(task, seed)
        except SolverDown as down:
            self._down = down
            raise
        except TimeoutError:
            error = f"no attempt within {self._deadline:g} s"
        except Exception as broken:
            error = f"{type(broken).__name__}: {broken}"
        return Trajectory(
            task_id=task.task_id,
            solver=self.solver.name,
            arm=self.solver.arm,
            seed=seed,
            turns=(),
            stop=StopReason.INFRA,
            error=error,
        )


async def _graded(task: Task, trajectory: Trajectory) -> Attempt:
    if trajectory.stop in TRUNCATED:
        return Attempt(trajectory, Grading.TRUNCATED)
    if trajectory.stop is not StopReason.ANSWERED or trajectory.answer is None:
        return Attempt(trajectory, Grading.WRONG, trajectory.stop)
    try:
        grade = await agrade(task.answer, trajectory.answer)
    except Exception as error:
        return Attempt(trajectory, Grading.UNDECIDED, f"{type(error).__name__}: {error}")
    return Attempt(trajectory, Grading(grade.verdict), grade.reason)


async def together(work: Iterable[Awaitable[T]]) -> list[T]:
    """Results in order. The first failure cancels the rest and is raised as itself."""

    async def one(awaitable: Awaitable[T]) -> T:
        return await awaitable

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(item)) for item in work]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    return [task.result() for task in tasks]
