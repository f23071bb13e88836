"""What attempts came to: counts of how they ended, and a few to look at."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from rl.learn.records import Graded, Verdict
from schemas.measured import Failure
from schemas.task import Task


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt that is over, trained or dropped, with the task it was made at."""

    task: Task
    graded: Graded

    @property
    def version(self) -> str:
        """The weights that ended it; empty where it has no turn."""
        turns = self.graded.trajectory.turns
        return turns[-1].version if turns else ""

    @property
    def outcome(self) -> str:
        """The verdict on its answer, or why there was none."""
        verdict = self.graded.verdict
        return verdict.value if verdict is not Verdict.NONE else self.graded.trajectory.stop.value


def failure_stats(attempts: Iterable[Ended]) -> list[Failure]:
    """Every attempt in exactly one row: by stratum, version and outcome, in that order."""
    sizes: dict[tuple[str, str, str], list[tuple[int, int]]] = defaultdict(list)
    for each in attempts:
        done = each.graded.trajectory
        sizes[each.task.stratum, each.version, each.outcome].append((len(done.turns), done.tokens))
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


def _order(stratum: str, version: str, outcome: str) -> tuple[str, int, str, str]:
    """Versions that are numbers by their value, before 10 comes 9."""
    return stratum, int(version) if version.isdecimal() else -1, version, outcome


@dataclass(frozen=True, slots=True)
class Sample:
    """An attempt to look at: the first or the last of its kind."""

    kind: str
    when: str
    ended: Ended


def samples(attempts: Iterable[Ended]) -> list[Sample]:
    """The first and the last right one, wrong one, and one without an answer that counts; `attempts` in the order they ended."""
    ends: dict[str, list[Ended]] = {"right": [], "wrong": [], "no answer": []}
    for each in attempts:
        kind = each.outcome if each.outcome in ends else "no answer"
        ends[kind] = [*ends[kind][:1], each]
    return [
        Sample(kind, when, each)
        for kind, found in ends.items()
        for when, each in zip(("early", "late"), found, strict=False)
    ]
