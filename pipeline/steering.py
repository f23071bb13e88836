"""What the agent fails at decides what is made next: from counts of a round to the plan of the following one.

Per stratum, posteriors of yield (kept of candidates) and pass rate, and the mean cost; a candidate is worth E[y v(p)] / cost with
v(p) = 1 - p^G - (1 - p)^G, the chance that a group of G attempts does not end alike (see 2504.05520, 2504.03380, 2507.04632).
High failure alone attracts nothing: a wrong gold fails always. So only failures at what was asked count, v is 0 at p = 0, and a
stratum whose tasks the filters of correctness reject, or that fails with all of its evidence read, gets no more than the floor,
by which it is seen when that changes.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.allocation import filled, largest_remainder
from pipeline.sequential import wilson
from schemas.base import content_hash
from schemas.manifest import StratumCounts
from schemas.measured import CONTENT, AttemptOutcome, Failure
from schemas.steering import Line, Plan, SteeringOptions, Tally

STRENGTH = 4.0
"""Candidates, or attempts, that the mean over all strata counts for in the posterior of each."""
SLOPE = 4.0
"""Of the step of a level: tanh(SLOPE (p - target)), as AdaRFT's (2504.05520)."""
SEEN = 12.0
"""Tasks that count for the target before a level moves, and below which the filters say nothing of a stratum."""
MOST_WRONG = 0.2
"""Share of a stratum's tasks that filters of correctness may reject."""
MEMORY = 128.0
"""Attempts of earlier rounds that count at most: they were another policy's, so that no number of them makes sure of this one's."""
LEAST_READ = 0.05
"""Share of attempts that have all of the evidence and are right, at least; below it surely, for a hard stratum is none to doubt."""
UNITS = 1000
"""Shares are whole thousandths."""


def value(p: "np.ndarray | float", group: int) -> "np.ndarray | float":
    """The chance that `group` attempts at a task of pass rate `p` are not all right and not all wrong."""
    return 1 - p**group - (1 - p) ** group


def next_plan(
    before: Plan, counts: Mapping[str, StratumCounts], failures: Sequence[Failure], options: SteeringOptions
) -> Plan:
    """The plan after a round whose curation came to `counts` and whose training failed as in `failures`.

    `before` is what the round followed, with all that was believed until then. Strata that it has no line for cannot be asked for,
    whatever came of them. What the plan is drawn from stays to be said by the caller.
    """
    evidence, was = shown(failures), before.shares
    lines = [
        _believed(
            line.model_copy(update={"was": round(was[line.stratum], 6)}),
            counts.get(line.stratum),
            evidence.get(line.stratum),
            options.decay,
        )
        for line in before.lines
    ]
    shares = _shares(lines, before, options)
    return before.model_copy(
        update={"lines": tuple(_moved(line, share, options) for line, share in zip(lines, shares, strict=True))}
    )


@dataclass(frozen=True, slots=True)
class Shown:
    """What training showed of a stratum."""

    right: Tally
    read: Tally


def shown(failures: Iterable[Failure]) -> dict[str, Shown]:
    """By stratum. Attempts of the first pass over the tasks alone: what was trained on is known, and says nothing of others.

    Of those, the half by the latest versions, which are closest to the policy that comes next.
    """
    by_stratum: dict[str, list[Failure]] = {}
    for row in failures:
        if row.epoch == 0 and row.version and (row.outcome in CONTENT or row.outcome is AttemptOutcome.RIGHT):
            by_stratum.setdefault(row.stratum, []).append(row)
    return {name: _shown(rows) for name, rows in by_stratum.items()}


def _shown(rows: Sequence[Failure]) -> Shown:
    by_version = Counter[int]()
    for row in rows:
        by_version[int(row.version)] += row.n
    late, had = set[int](), 0
    for version in sorted(by_version, reverse=True):
        if had < by_version.total() / 2:
            late.add(version)
            had += by_version[version]

    def tally(of: Callable[[Failure], int]) -> Tally:
        counted = [row for row in rows if int(row.version) in late]
        right = sum(of(row) for row in counted if row.outcome is AttemptOutcome.RIGHT)
        return Tally(yes=right, no=sum(map(of, counted)) - right)

    return Shown(right=tally(lambda row: row.n), read=tally(lambda row: row.read))


def _believed(line: Line, counts: StratumCounts | None, seen: Shown | None, decay: float) -> Line:
    """The line with what was known fading and what is new added. Attempts of training, where there are any, say what the policy
    that comes next can do; those of curation what the one before it could."""
    counts = counts or StratumCounts(generated=0)
    measured = Tally(yes=counts.correct, no=counts.samples - counts.correct)
    return line.model_copy(
        update={
            "kept": _faded(line.kept, Tally(yes=counts.kept, no=counts.asked - counts.kept), decay),
            "right": _faded(line.right, seen.right if seen and seen.right.n else measured, decay, MEMORY),
            "solved": _faded(line.solved, _solved(counts), decay),
            "sound": _faded(line.sound, Tally(yes=counts.judged - counts.wrong, no=counts.wrong), decay),
            "read": _faded(line.read, seen.read if seen else Tally(), decay, MEMORY),
            "tokens": line.tokens * decay + counts.tokens,
        }
    )


def _solved(counts: StratumCounts) -> Tally:
    """Of the tasks that are kept alone, rates are near one half however hard the others were: all count."""
    kept = counts.kept * counts.correct / counts.samples if counts.samples else 0.0
    return Tally(yes=counts.too_easy + kept, no=counts.too_hard + counts.kept - kept)


def _faded(old: Tally, new: Tally, decay: float, most: float = math.inf) -> Tally:
    """What is new, and of what is old `decay`, or as much less as makes `most` of it."""
    kept = min(decay, most / old.n) if old.n else 0.0
    return Tally(yes=round(old.yes * kept + new.yes, 3), no=round(old.no * kept + new.no, 3))


def pooled(tallies: Iterable[Tally]) -> float:
    """The mean over all, with Jeffreys' prior: never 0 or 1."""
    each = list(tallies)
    return (sum(one.yes for one in each) + 0.5) / (sum(one.n for one in each) + 1)


def suspect(line: Line) -> str:
    """Why a stratum gets the floor alone; empty where it is trusted."""
    if line.sound.n >= SEEN and line.sound.no / line.sound.n > MOST_WRONG:
        return (
            f"floor only: filters of correctness reject {line.sound.no / line.sound.n:.0%} of {line.sound.n:.0f} tasks"
        )
    if wilson(line.read.n, line.read.yes)[1] < LEAST_READ:
        return f"floor only: right in {line.read.yes / line.read.n:.0%} of {line.read.n:.0f} attempts with all the evidence read"
    return ""


def _shares(lines: Sequence[Line], before: Plan, options: SteeringOptions) -> list[float]:
    """Pins first; of what they leave, the floor to all alike and the rest to those that are trusted, to all where none is."""
    free = [line for line in lines if line.pin is None]
    budget = 1 - sum(line.pin or 0.0 for line in lines)
    found = {line.stratum: line.pin or 0.0 for line in lines}
    if free and budget > 0:
        floor = budget * options.floor / len(free)
        found |= {line.stratum: floor for line in free}
        trusted = [line for line in free if not suspect(line)] or free
        drawn = filled(_utilities(trusted, before, options), budget * (1 - options.floor), options.cap - floor)
        for line, share in zip(trusted, drawn, strict=True):
            found[line.stratum] += float(share)
    return [units / UNITS for units in largest_remainder([found[line.stratum] for line in lines], UNITS)]


def _utilities(lines: Sequence[Line], before: Plan, options: SteeringOptions) -> np.ndarray:
    """Thompson draws (draws x strata) of y v(p) / cost."""
    rng = np.random.default_rng(int(content_hash([options.seed, before.id, [line.stratum for line in lines]]), 16))
    size = (options.draws, len(lines))

    def drawn(tallies: Sequence[Tally]) -> np.ndarray:
        mean = pooled(tallies)
        a = np.array([tally.yes + STRENGTH * mean for tally in tallies])
        b = np.array([tally.no + STRENGTH * (1 - mean) for tally in tallies])
        return rng.beta(a, b, size)

    costs = np.array(candidate_costs(lines))
    made = drawn([line.kept for line in lines]) * value(drawn([line.right for line in lines]), before.group)
    return np.asarray(made / costs)


def candidate_costs(lines: Sequence[Line]) -> list[float]:
    """Tokens of a candidate; the mean over all strata counts as `STRENGTH` candidates of each, and is 1 where nothing is known."""
    made = sum(line.kept.n for line in lines)
    mean = sum(line.tokens for line in lines) / made if made else 0.0
    mean = mean or 1.0
    return [(line.tokens + STRENGTH * mean) / (line.kept.n + STRENGTH) for line in lines]


def _moved(line: Line, share: float, options: SteeringOptions) -> Line:
    level = line.level
    if line.solved.n:
        p = (line.solved.yes + SEEN * options.target) / (line.solved.n + SEEN)
        level = round(min(1.0, max(-1.0, level + options.step * math.tanh(SLOPE * (p - options.target)))), 3)
    return line.model_copy(update={"share": share, "level": level, "why": _why(line, level)})


def _why(line: Line, level: float) -> str:
    if line.pin is not None:
        return "vetoed" if line.pin == 0 else f"pinned at {line.pin:.0%}"
    if found := suspect(line):
        return found
    said = [f"kept {line.kept.yes:.0f} of {line.kept.n:.0f}" if line.kept.n else "not tried yet"]
    if line.right.n:
        said.append(f"right {line.right.yes / line.right.n:.0%} of {line.right.n:.0f} attempts at them")
    if line.solved.n:
        said.append(f"solves {line.solved.yes / line.solved.n:.0%} of {line.solved.n:.0f} tasks")
    if line.kept.n:
        said.append(f"{line.tokens / line.kept.n:.0f} tokens each")
    if level != line.level:
        said.append("harder" if level > line.level else "easier")
    return ", ".join(said)
