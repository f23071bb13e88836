"""From the files of a finished run to its part of a release: rows by split, ledgers, and counts that close."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa  # type: ignore[import-untyped]

from pipeline import passn, stages
from pipeline.families.aims import Shares
from pipeline.filters import CORRECTNESS
from pipeline.filters.base import Certifier
from pipeline.funnel import funnel_step
from pipeline.release import Part
from pipeline.runs import Run
from pipeline.sequential import TOO_EASY
from schemas.arrow import ATTEMPTS, CANDIDATES, CERTIFICATES, KEPT, REJECTED
from schemas.certificate import Certificate, Outcome
from schemas.errors import TouchstoneError
from schemas.manifest import Ending, FunnelStep, StratumCounts
from schemas.row import Kept, Rejected
from schemas.task import Task

ACCEPT = "accept"
"""The last step of a run that was to keep so many tasks: what it has beyond them."""


class NothingKept(TouchstoneError):
    """A run whose funnel let no task through. Everything it made is kept for another look."""


def finished(run: Run) -> list[int]:
    """Batches that went through every stage, up to the first that did not."""
    found = []
    for batch in stages.batches(run):
        if not all(run.has(name, batch) for name in stages.LEFT_BY.values()):
            break
        found.append(batch)
    return found


def kept(run: Run, batch: int) -> list[Kept]:
    """What a batch adds to a release, in the order of its candidates."""
    difficulty = stages.difficulties(run, batch)
    alive = _last_verdicts(run, batch)
    return [
        Kept(task=task, difficulty=difficulty.get(run.place(task), ()))
        for task, certificate in alive
        if certificate.outcome is Outcome.KEEP
    ]


def rejected(run: Run, batch: int) -> list[Rejected]:
    """What did not pass, each with the certificate that stopped it."""
    difficulty = stages.difficulties(run, batch)
    return [
        Rejected(
            task=task,
            difficulty=difficulty.get(run.place(task), ()),
            filter=certificate.filter,
            outcome=certificate.outcome,
            reason=certificate.reason,
        )
        for task, certificate in _last_verdicts(run, batch)
        if certificate.outcome is not Outcome.KEEP
    ]


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a run is: tasks kept and tokens of models spent, over all finished batches."""

    kept: int
    spent: int

    def ending(self, run: Run) -> Ending | None:
        """Why the run is over; `None` while it is to go on."""
        if run.config.accept is not None and self.kept >= run.config.accept:
            return Ending.ACCEPTED
        if run.config.budget is not None and self.spent >= run.config.budget:
            return Ending.BUDGET
        return Ending.CANDIDATES if finished(run) == list(stages.batches(run)) else None


def standing(run: Run) -> Standing:
    """Read off what is finished."""
    done = finished(run)
    verdicts = [certificate for batch in done for _, certificate in stages.verdicts(run, batch)]
    return Standing(sum(len(kept(run, batch)) for batch in done), sum(certificate.cost for certificate in verdicts))


def part(run: Run) -> Part:
    """All finished batches of a run. Raises `NothingKept` with the funnel when no row came through."""
    done = finished(run)
    came_through = [row for batch in done for row in kept(run, batch)]
    rows, surplus = came_through[: run.config.accept], came_through[len(came_through[: run.config.accept]) :]
    last = _accepted(run, rows, surplus)
    steps = [*funnel(run, done), *([funnel_step(last)] if last else [])]
    if not rows:
        raise NothingKept(
            f"{run.config.family}: 0 of {steps[0].seen} candidates kept; {_where_they_went(steps)}; nothing was published, "
            f"{run.path} keeps what was made; ask for more candidates, widen the keep band or give another solver"
        )
    fallen = [row for batch in done for row in rejected(run, batch)]
    fallen += [Rejected(**dict(row), filter=ACCEPT, outcome=Outcome.REJECT, reason="surplus") for row in surplus]
    written = [run.table(name, b) for b in done for name in list(stages.LEFT_BY.values())[1:]]
    return Part(
        config=run.config,
        splits={name: KEPT.pack(split) for name, split in split_rows(rows, run.config.test_share).items()},
        certificates=pa.concat_tables([*written, CERTIFICATES.pack(last)]),
        rejected=REJECTED.pack(fallen),
        attempts=pa.concat_tables([ATTEMPTS.schema.empty_table(), *(run.table("attempts", b) for b in done)]),
        funnel=tuple(steps),
        ending=Standing(len(came_through), sum(step.cost for step in steps)).ending(run) or Ending.STOPPED,
        strata=_strata(run, done, rows),
        generator=run.origin.generator,
        solvers=run.solvers,
        worlds={run.origin.world: run.origin.world_hash} if run.origin.world else {},
        sources=run.origin.sources,
    )


def funnel(run: Run, done: Sequence[int]) -> list[FunnelStep]:
    """One step a filter, after one for the generator: candidates tried, and misses by reason. What one keeps the next sees."""
    candidates = [c for batch in done for c in run.read("candidates", batch, CANDIDATES)]
    misses = Counter(c.miss for c in candidates if c.task is None)
    broken = sum(n for miss, n in misses.items() if miss.startswith(stages.BROKE))
    steps = [
        FunnelStep(
            filter="generate",
            seen=len(candidates),
            kept=len(candidates) - misses.total(),
            rejected=misses.total() - broken,
            failed=broken,
            undecided=0,
            reasons=dict(misses.most_common()),
        )
    ]
    by_filter: dict[str, list[Certificate]] = {name: [] for name in _filter_names(run)}
    for batch in done:
        for _, certificate in stages.verdicts(run, batch):
            by_filter[certificate.filter].append(certificate)
    for name, certificates in by_filter.items():
        empty = FunnelStep(filter=name, seen=0, kept=0, rejected=0, failed=0, undecided=0)
        step = funnel_step(certificates) if certificates else empty
        if step.seen != steps[-1].kept:
            raise TouchstoneError(
                f"{name}: saw {step.seen} tasks, but {steps[-1].filter} kept {steps[-1].kept}; rows were lost"
            )
        steps.append(step)
    return steps


def split_rows(rows: Sequence[Kept], test_share: float) -> dict[str, list[Kept]]:
    """`train` and `test`, by a hash of the formal question: a task never changes sides between releases.

    Where chance leaves a side empty it gets the nearest row; `train` alone where `test_share` of the rows is less than half
    a row.
    """
    if test_share * len(rows) < 0.5 or test_share == 1:
        return {"test" if test_share == 1 else "train": list(rows)}
    places = {id(row): int(row.task.constraints.signature[:8], 16) / 2**32 for row in rows}
    ordered = sorted(rows, key=lambda row: (places[id(row)], row.task.task_id))
    size = min(max(sum(place < test_share for place in places.values()), 1), len(rows) - 1)
    test = {id(row) for row in ordered[:size]}
    sides = {"train": [r for r in rows if id(r) not in test], "test": [r for r in rows if id(r) in test]}
    return {name: side for name, side in sides.items() if side}


def _filter_names(run: Run) -> list[str]:
    family = run.config.family
    return [name for stage in stages.ORDER[family][1:] for name in stages.filter_names(family, stage)]


def _last_verdicts(run: Run, batch: int) -> list[tuple[Task, Certificate]]:
    """Every task of a batch with the last certificate it got, in the order of candidates."""
    last = {run.place(task): (task, certificate) for task, certificate in stages.verdicts(run, batch)}
    return [last[place] for place in sorted(last)]


def _accepted(run: Run, rows: Sequence[Kept], surplus: Sequence[Kept]) -> list[Certificate]:
    """What a run that was to keep so many says of each task that came through."""
    if run.config.accept is None or not rows:
        return []
    said = [Certifier(row.task, ACCEPT, "1").keep() for row in rows]
    return said + [Certifier(row.task, ACCEPT, "1").reject("surplus") for row in surplus]


def _strata(run: Run, done: Sequence[int], rows: Iterable[Kept]) -> dict[str, StratumCounts]:
    """`rows` are those that are published; a surplus counts as generated and not as kept."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    shares = Shares(run.config.aims) if run.config.aims else None
    for batch in done:
        for candidate in run.read("candidates", batch, CANDIDATES):
            new = candidate.index - len(run.carried)
            if candidate.task is not None:
                found[candidate.task.stratum]["generated" if new >= 0 else "carried"] += 1
            elif shares is not None:
                found[shares.of(run.config.seed, new).stratum]["missed"] += 1
        seen: set[int] = set()
        for task, certificate in stages.verdicts(run, batch):
            if (place := run.place(task)) < 0:
                continue
            counts = found[task.stratum]
            counts["tokens"] += certificate.cost
            if certificate.filter in CORRECTNESS:
                counts["judged"] += place not in seen
                counts["wrong"] += certificate.outcome is Outcome.REJECT
                seen.add(place)
            elif certificate.filter == passn.NAME and certificate.outcome is Outcome.REJECT:
                counts["too_easy" if certificate.reason == TOO_EASY else "too_hard"] += 1
    for row in rows:
        counts = found[row.task.stratum]
        if run.place(row.task) < 0:
            counts["revived"] += 1
        else:
            counts.update(kept=1, samples=row.difficulty[-1].n, correct=row.difficulty[-1].correct)
    return {name: StratumCounts(**found[name]) for name in sorted(found)}


def _where_they_went(steps: Iterable[FunnelStep]) -> str:
    """The most frequent causes, filter by filter."""
    lost = (
        f"{step.filter} stopped {step.seen - step.kept} ({', '.join(f'{r} {n}' for r, n in list(step.reasons.items())[:3])})"
        for step in steps
        if step.seen > step.kept
    )
    return ", ".join(lost)
