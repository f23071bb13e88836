"""All that there is to tell of a run, read from its folder, at its end or on the way."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq  # type: ignore[import-untyped]

from pipeline.grading import grade
from rl.analytics import Sample, failure_stats, samples
from rl.learn.records import Verdict
from rl.train.buffer import Buffer, Counts
from rl.train.checkpoints import BUFFER, Checkpoints
from rl.train.metrics import tabled
from rl.train.run import TrainRun, TrainRunError
from schemas.arrow import ATTEMPTS, SchemaError
from schemas.evaluation import Evaluation
from schemas.measured import Failure, Metric
from schemas.task import Task
from schemas.training import TrainConfig
from schemas.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class Account:
    """A run: what it was to do, and what came of it."""

    run: str
    config: TrainConfig
    release: str
    policy: str
    """Model and revision."""
    counts: Counts
    seconds: float = 0.0
    """Of training."""
    metrics: Sequence[Metric] = ()
    before: Evaluation | None = None
    after: Evaluation | None = None
    after_step: int = 0
    """Steps that the policy of `after` had taken."""
    failures: Sequence[Failure] = ()
    samples: Sequence[Sample] = ()

    @property
    def steps(self) -> int:
        return max((each.step for each in self.metrics), default=0)


async def account(run: TrainRun) -> Account:
    """Read it all; another process may work on the run meanwhile. Raises `ReleaseError` where the run's release is gone.

    Raises `TrainRunError` for what is damaged or gone in its folder.
    """
    tasks = {task.task_id: task for task in await asyncio.to_thread(run.tasks, run.config.split)}
    strata = {task_id: task.stratum for task_id, task in tasks.items()}
    before, after = run.before_and_after
    place = run.path / BUFFER
    if Checkpoints(run.path, run.config.checkpoint).lost(place):
        raise TrainRunError(
            f"{place}: is gone; `touchstone train --resume {run.path}` makes it again from a checkpoint"
        )
    buffer = Buffer(place)
    try:
        return Account(
            run=run.id,
            config=run.config,
            release=run.origin.version,
            policy=f"{run.origin.policy}@{run.origin.revision}",
            counts=await buffer.counts(),
            seconds=await buffer.seconds(),
            metrics=tabled(await buffer.metrics()),
            before=before,
            after=after,
            after_step=run.evaluated[-1] if after else 0,
            failures=failure_stats(await buffer.ended(), strata),
            samples=await asyncio.to_thread(_samples, run.path, tasks),
        )
    finally:
        buffer.close()


def _samples(folder: Path, tasks: Mapping[str, Task]) -> list[Sample]:
    """Of the first and of the last checkpoint's attempts; none before there is one."""
    ledgers = sorted((folder / "trajectories").glob("step-*.parquet"))
    if not ledgers:
        return []
    first, last = (_attempts(ledgers[i]) for i in (0, -1))

    def verdict(attempt: Trajectory) -> Verdict:
        if attempt.answer is None:
            return Verdict.NONE
        return Verdict(grade(tasks[attempt.task_id].answer, attempt.answer).verdict.value)

    return samples(first, reversed(last), tasks, verdict)


def _attempts(ledger: Path) -> list[Trajectory]:
    try:
        return ATTEMPTS.unpack(pq.read_table(ledger))
    except (OSError, ValueError, SchemaError) as error:  # pyarrow's own are values
        raise TrainRunError(f"{ledger}: is damaged ({error}); remove it: all that it holds stays counted") from error
