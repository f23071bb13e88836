"""Held-out tasks, each attempted once greedily and several times by sampling, and what the attempts say of the policy."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from pipeline.copies import CHANCE, chance_of_copies
from pipeline.estimates import difference, pass_at, rate
from pipeline.sampling import NOBODYS_FAILURE, Attempt, Grading, Sampler, together
from pipeline.sequential import Fixed
from pipeline.solver import Solver
from rl.env import NO_SUMMARY
from rl.learn.records import Graded, Verdict
from schemas.errors import TouchstoneError
from schemas.evaluation import Block, Comparison, Counts, Evaluation, StratumScore, total
from schemas.task import Task
from schemas.training import EvaluationOptions
from schemas.trajectory import StopReason

GREEDY = "greedy"
"""The member of a task's greedy attempt; sampled ones are numbered from 0."""


Progress = Callable[[str, int, int], None]
"""Hears of (stage, tasks done, tasks in all)."""


def unseen(stage: str, done: int, total: int) -> None:
    """A `Progress` that looks away."""


class EvaluationError(TouchstoneError):
    """Attempts that measure nothing."""


async def evaluate(
    tasks: Sequence[Task],
    options: EvaluationOptions,
    *,
    sampled: Solver,
    greedy: Solver,
    on: str,
    skipped: Mapping[str, int] = MappingProxyType({}),
    seed: int = 0,
    concurrency: int = 128,
    deadline: float = 900.0,
    progress: Progress = unseen,
) -> tuple[Evaluation, list[Graded]]:
    """Attempt every task `options.attempts` times by `sampled`, with a seed each, and once by `greedy`, which samples at
    temperature 0: more attempts than one would be the same attempt again.

    An attempt that breaks is repeated under its seed, then lost; nothing takes its place. `deadline` bounds one, in seconds.
    `skipped` are rows of what `on` names that are no tasks, by reason. Attempts come back greedy first, in the order of tasks
    and seeds. Raises `EvaluationError` where there is no task or where sampled attempts are copies of each other, and
    `SolverDown` where no attempt would come back.
    """
    rows = len(tasks) + sum(skipped.values())
    tasks = tasks[: options.tasks]
    if not tasks:
        raise EvaluationError(f"{on}: holds no task to evaluate on; name another split or file")

    async def attempts(solver: Solver, each: int, stage: str) -> list[list[Attempt]]:
        sampler = Sampler(solver, seed, concurrency, deadline=deadline, spare=0)
        done = 0

        async def one(task: Task) -> list[Attempt]:
            nonlocal done
            samples = await sampler.sample(task, Fixed(each))
            done += 1
            progress(stage, done, len(tasks))
            return samples.attempts

        return await together(one(task) for task in tasks)

    once = await attempts(greedy, 1, GREEDY)
    drawn = await attempts(sampled, options.attempts, "sampled")
    for task, several in zip(tasks, drawn, strict=True):
        if chance_of_copies([attempt.trajectory for attempt in several]) < CHANCE:
            raise EvaluationError(
                f"{sampled.name}: its {len(several)} attempts at task {task.task_id} are one attempt repeated; "
                "a server that ignores seeds or temperature measures nothing, serve the model with vllm"
            )
    alone = [[graded(attempt, GREEDY) for attempt in several] for several in once]
    grouped = [[graded(attempt, str(i)) for i, attempt in enumerate(several)] for several in drawn]
    left_out = rows - len(tasks) - sum(skipped.values())
    evaluation = Evaluation(
        policy=sampled.name,
        on=on,
        rows=rows,
        tasks=len(tasks),
        skipped={**skipped, **({"beyond_the_first": left_out} if left_out else {})},
        seed=seed,
        sampled=summary(tasks, grouped, options.attempts),
        greedy=summary(tasks, alone, 1),
    )
    return evaluation, [one for groups in (alone, grouped) for group in groups for one in group]


def graded(attempt: Attempt, member: str) -> Graded:
    trajectory = attempt.trajectory
    match attempt.grading:
        case Grading.RIGHT:
            verdict = Verdict.RIGHT
        case Grading.UNDECIDED:
            verdict = Verdict.UNDECIDED
        case Grading.WRONG if trajectory.stop is StopReason.ANSWERED:
            verdict = Verdict.WRONG
        case _:
            verdict = Verdict.NONE
    return Graded(uid=f"{trajectory.task_id}/{member}", trajectory=trajectory, verdict=verdict)


def counted(attempts: Sequence[Graded]) -> Counts:
    """An attempt without an answer is wrong, unless what ended it is nobody's failure."""
    right = sum(one.verdict is Verdict.RIGHT for one in attempts)
    undecided = sum(one.verdict is Verdict.UNDECIDED for one in attempts)
    lost = sum(one.verdict is Verdict.NONE and one.trajectory.stop in NOBODYS_FAILURE for one in attempts)
    wrong = len(attempts) - right - undecided - lost
    return Counts(right=right, wrong=wrong, undecided=undecided, lost=lost, attempts=len(attempts))


def summary(tasks: Sequence[Task], attempts: Sequence[Sequence[Graded]], each: int) -> Block:
    """What the attempts at each of the tasks, in the same order, add up to."""
    by_task = {task.task_id: counted(some) for task, some in zip(tasks, attempts, strict=True)}
    strata: dict[str, list[Counts]] = {}
    for task in tasks:
        strata.setdefault(task.stratum, []).append(by_task[task.task_id])
    every = [one for some in attempts for one in some]
    right = [len(one.trajectory.turns) for one in every if one.verdict is Verdict.RIGHT]
    steps = [turn for one in every for turn in one.trajectory.turns if turn.fault != NO_SUMMARY]
    counts = list(by_task.values())
    return Block(
        each=each,
        counts=total(counts),
        rate=rate(counts),
        pass_at=pass_at(counts, each),
        strata={name: StratumScore(counts=total(some), rate=rate(some)) for name, some in sorted(strata.items())},
        by_task=by_task,
        turns_right=sum(right) / len(right) if right else None,
        format_errors=sum(bool(turn.fault) for turn in steps) / len(steps) if steps else None,
        stops=dict(Counter(one.trajectory.stop.value for one in every)),
    )


def compare(before: Evaluation, after: Evaluation) -> Comparison:
    """Raises `EvaluationError` where they are not on the same tasks."""
    comparable(before, after.on)
    return Comparison(
        before=before.policy,
        after=after.policy,
        sampled=difference(before.sampled.by_task, after.sampled.by_task),
        greedy=difference(before.greedy.by_task, after.greedy.by_task),
    )


def comparable(before: Evaluation, on: str) -> None:
    """Raises `EvaluationError` where the evaluation is on something else."""
    if before.on != on:
        raise EvaluationError(f"on={before.on}: is not {on}; compare evaluations of one set of tasks")
