"""What attempts came to: counts of how they ended, and a few to look at."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean

from rl.learn.records import Verdict
from rl.train.buffer import Ended
from schemas.measured import Failure
from schemas.task import Task
from schemas.trajectory import Trajectory

KINDS = (Verdict.RIGHT, Verdict.WRONG, Verdict.NONE)


def failure_stats(attempts: Iterable[Ended], strata: Mapping[str, str]) -> list[Failure]:
    """Every attempt in exactly one row: by stratum, version and outcome, in that order. `strata` are those of tasks."""
    sizes: dict[tuple[str, str, str], list[tuple[int, int]]] = defaultdict(list)
    for each in attempts:
        outcome = each.stop if each.verdict == Verdict.NONE else each.verdict
        sizes[strata[each.task_id], each.version, outcome].append((each.turns, each.tokens))
    return [
        Failure(
            stratum=stratum,
            version=version,
            outcome=outcome,
            n=len(found),
            turns=fmean(turns for turns, _ in found),
            tokens=fmean(tokens for _, tokens in found),
        )
        for (stratum, version, outcome), found in sorted(sizes.items(), key=lambda item: _order(*item[0]))
    ]


def _order(stratum: str, version: str, outcome: str) -> tuple[str, int, str]:
    """Versions are numbers, and 9 comes before 10; an attempt that has no turn has none."""
    return stratum, int(version or -1), outcome


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
