"""From the files of a finished run to its part of a release: rows by split, ledgers, and counts that close."""

from collections import Counter
from collections.abc import Iterable, Sequence

import pyarrow as pa  # type: ignore[import-untyped]

from pipeline import stages
from pipeline.funnel import funnel_step
from pipeline.release import Part
from pipeline.runs import Run
from schemas.arrow import ATTEMPTS, CANDIDATES, KEPT, REJECTED
from schemas.certificate import Certificate, Outcome
from schemas.errors import TouchstoneError
from schemas.manifest import FunnelStep, StratumCounts
from schemas.row import Kept, Rejected
from schemas.task import Task


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
        Kept(task=task, difficulty=difficulty.get(task.lineage.index, ()))
        for task, certificate in alive
        if certificate.outcome is Outcome.KEEP
    ]


def rejected(run: Run, batch: int) -> list[Rejected]:
    """What did not pass, each with the certificate that stopped it."""
    difficulty = stages.difficulties(run, batch)
    return [
        Rejected(
            task=task,
            difficulty=difficulty.get(task.lineage.index, ()),
            filter=certificate.filter,
            outcome=certificate.outcome,
            reason=certificate.reason,
        )
        for task, certificate in _last_verdicts(run, batch)
        if certificate.outcome is not Outcome.KEEP
    ]


def part(run: Run) -> Part:
    """All finished batches of a run. Raises `NothingKept` with the funnel when no row came through."""
    done = finished(run)
    rows = [row for batch in done for row in kept(run, batch)]
    steps = funnel(run, done)
    if not rows:
        raise NothingKept(
            f"{run.config.family}: 0 of {steps[0].seen} candidates kept; {_where_they_went(steps)}; nothing was published, "
            f"{run.path} keeps what was made; ask for more candidates, widen the keep band or give another solver"
        )
    fallen = [row for batch in done for row in rejected(run, batch)]
    return Part(
        config=run.config,
        splits={name: KEPT.pack(split) for name, split in split_rows(rows, run.config.test_share).items()},
        certificates=pa.concat_tables([run.table(name, b) for b in done for name in list(stages.LEFT_BY.values())[1:]]),
        rejected=REJECTED.pack(fallen),
        attempts=pa.concat_tables([ATTEMPTS.schema.empty_table(), *(run.table("attempts", b) for b in done)]),
        funnel=tuple(steps),
        strata=_strata(rows, fallen),
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
    if test_share * len(rows) < 0.5:
        return {"train": list(rows)}
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
    last = {task.lineage.index: (task, certificate) for task, certificate in stages.verdicts(run, batch)}
    return [last[index] for index in sorted(last)]


def _strata(rows: Iterable[Kept], fallen: Iterable[Rejected]) -> dict[str, StratumCounts]:
    generated, samples, correct, passed = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for row in rows:
        generated[row.task.stratum] += 1
        passed[row.task.stratum] += 1
        samples[row.task.stratum] += row.difficulty[-1].n
        correct[row.task.stratum] += row.difficulty[-1].correct
    for reject in fallen:
        generated[reject.task.stratum] += 1
    return {
        name: StratumCounts(generated=generated[name], kept=passed[name], samples=samples[name], correct=correct[name])
        for name in sorted(generated)
    }


def _where_they_went(steps: Iterable[FunnelStep]) -> str:
    """The most frequent causes, filter by filter."""
    lost = (
        f"{step.filter} stopped {step.seen - step.kept} ({', '.join(f'{r} {n}' for r, n in list(step.reasons.items())[:3])})"
        for step in steps
        if step.seen > step.kept
    )
    return ", ".join(lost)
