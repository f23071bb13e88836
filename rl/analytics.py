"""What attempts came to: how they ended and why, stratum by stratum, and a few to look at."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from rl.learn.records import Verdict
from rl.train.buffer import Ended
from schemas.measured import CONTENT, AttemptOutcome, Failure
from schemas.task import Task
from schemas.trajectory import Trajectory

KINDS = (Verdict.RIGHT, Verdict.WRONG, Verdict.NONE)
PRIOR = 0.5
"""Of a pass rate: Jeffreys' Beta(.5, .5), as that of `Difficulty`."""
ADVICE = {
    AttemptOutcome.FORMAT: "what it writes is no step: begin with more supervised steps, or make reward.format weigh more",
    AttemptOutcome.TRUNCATED: "a turn is cut: raise limits.max_tokens",
    AttemptOutcome.OVERFLOW: "the window is full: raise limits.context, or set limits.management.mode",
    AttemptOutcome.TOOL_ERROR: "tools are down: see their servers' logs, raise tools.call_seconds or tools.replicas",
    AttemptOutcome.INFRA: "the model's server broke or time ran out: see its log, raise rollout.seconds",
    AttemptOutcome.UNSURE: "the grader cannot tell: look at such answers, the gold may need aliases",
}
"""What may help where the question is not at fault."""


def failure_stats(attempts: Iterable[Ended], strata: Mapping[str, str]) -> list[Failure]:
    """Every attempt in exactly one row: by stratum, epoch, version and outcome, in that order. `strata` are those of tasks."""
    found: dict[tuple[str, int, str], dict[AttemptOutcome, list[Ended]]] = defaultdict(lambda: defaultdict(list))
    for each in attempts:
        found[strata[each.task_id], each.epoch, each.version][each.diagnosis.outcome].append(each)
    in_order = sorted(found, key=lambda cell: (cell[0], cell[1], int(cell[2] or -1)))
    return [
        _row(cell, outcome, found[cell][outcome], _posterior(found[cell]))
        for cell in in_order
        for outcome in sorted(found[cell])
    ]


def _posterior(ended: Mapping[AttemptOutcome, Sequence[Ended]]) -> tuple[float, float]:
    """Of the pass rate, from right attempts and failures at what was asked; what broke, or cannot be told, says nothing."""
    wrong = sum(len(those) for outcome, those in ended.items() if outcome in CONTENT)
    return PRIOR + len(ended.get(AttemptOutcome.RIGHT, ())), PRIOR + wrong


def _row(
    cell: tuple[str, int, str], outcome: AttemptOutcome, those: Sequence[Ended], posterior: tuple[float, float]
) -> Failure:
    stratum, epoch, version = cell
    signs = [each.diagnosis for each in those]
    calls = sorted({tool for sign in signs for tool in sign.calls})
    uncalled = sorted({tool for sign in signs for tool in sign.uncalled})
    return Failure(
        stratum=stratum,
        epoch=epoch,
        version=version,
        outcome=outcome,
        n=len(those),
        read=sum(sign.pages > 0 and not sign.unread for sign in signs),
        turns=fmean(each.turns for each in those),
        tokens=fmean(each.tokens for each in those),
        seconds=fmean(each.spent for each in those),
        failed_at=_mean(sign.failed_at for sign in signs),
        clues_met=_mean(sign.clues_met / sign.clues for sign in signs if sign.clues_met is not None and sign.clues),
        unread=fmean(len(sign.unread) / sign.pages if sign.pages else 0.0 for sign in signs),
        calls={tool: fmean(sign.calls.get(tool, 0) for sign in signs) for tool in calls},
        uncalled={tool: fmean(tool in sign.uncalled for sign in signs) for tool in uncalled},
        pass_a=posterior[0],
        pass_b=posterior[1],
    )


def _mean(values: Iterable[float | None]) -> float | None:
    found = [value for value in values if value is not None]
    return fmean(found) if found else None


def advice(failures: Iterable[Failure]) -> dict[AttemptOutcome, int]:
    """Attempts that ended in a way which `ADVICE` is for, most frequent first."""
    counts: Counter[AttemptOutcome] = Counter()
    for row in failures:
        if row.outcome in ADVICE:
            counts[row.outcome] += row.n
    return dict(counts.most_common())


@dataclass(frozen=True, slots=True)
class Sample:
    """An attempt to look at: one of the first or of the last of its kind. `Verdict.NONE` gave no answer."""

    kind: Verdict
    when: str
    task: Task
    trajectory: Trajectory


def samples(
    early: Iterable[Trajectory],
    late: Iterable[Trajectory],
    tasks: Mapping[str, Task],
    verdict: Callable[[Trajectory], Verdict],
) -> list[Sample]:
    """The first of each kind in `early` and in `late`: of what was right, of what was wrong, of what gave no answer."""
    found = [
        Sample(kind, when, tasks[each.task_id], each)
        for when, attempts in (("early", early), ("late", late))
        for kind, each in _first_of_each(attempts, verdict).items()
    ]
    return sorted(found, key=lambda sample: KINDS.index(sample.kind))


def _first_of_each(
    attempts: Iterable[Trajectory], verdict: Callable[[Trajectory], Verdict]
) -> dict[Verdict, Trajectory]:
    found: dict[Verdict, Trajectory] = {}
    for each in attempts:
        if (kind := verdict(each)) in KINDS:
            found.setdefault(kind, each)
        if len(found) == len(KINDS):
            break
    return found
