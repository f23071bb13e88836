"""A training that is over at once: what `rl.train.coach.train` leaves behind, without an engine or a trainer."""

from pathlib import Path
from typing import Any

from infra.files import write_whole
from infra.settings import Settings
from infra.store import Store
from pipeline.release import Release, publish
from rl.train import report
from rl.train.buffer import Buffer
from rl.train.progress import Progress, Watch
from rl.train.run import TrainRun
from tests.pipeline.test_release import part
from tests.rl.train.accounts import evaluation


def released(folder: Path) -> Release:
    """7 tasks of hard search to train on, 3 held out."""
    return publish(Store(str(folder)), [part(family="hard_search")])


class FinishedTraining:
    """Stands in for `coach.train`; `runs` are those that it was given."""

    def __init__(self) -> None:
        self.runs: list[TrainRun] = []

    async def __call__(self, run: TrainRun, *, settings: Settings, watch: Watch) -> None:
        self.runs.append(run)
        metrics: dict[str, Any] = {"pass_rate/valid": 0.5}
        watch(Progress("train", 1, run.config.steps, 0.1, run.config.minutes, metrics=metrics))
        for step, right in ((0, 20), (1, 58)):
            write_whole(run.evaluation_file(step), evaluation(right).model_dump_json().encode())
        buffer = Buffer(run.path / "buffer.sqlite")
        if not await buffer.begun():
            await buffer.admit(0, 0, run.tasks("train")[0].task_id, [1, 2])
        buffer.close()
        await report.write(run)
