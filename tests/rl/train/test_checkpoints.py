"""Checkpoints are whole, the last and the best stay, and no attempt is archived twice."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rl.learn.records import Batch
from rl.train.buffer import Buffer, BufferError
from rl.train.checkpoints import Checkpoints
from schemas.training import CheckpointOptions
from tests.rl.train.attempts import diagnosis, graded


class WritingTrainer:
    """A trainer as far as checkpoints know one."""

    def __init__(self) -> None:
        self.loaded: list[str] = []

    async def save(self, folder: str) -> None:
        Path(folder).mkdir()
        (Path(folder) / "model.safetensors").write_bytes(b"weights")

    async def load(self, folder: str) -> None:
        self.loaded.append(Path(folder).name)


@pytest.fixture
def buffer(tmp_path):
    buffer = Buffer(tmp_path / "buffer.sqlite")
    yield buffer
    buffer.close()


async def stepped(buffer: Buffer, step: int, pass_rate: float) -> None:
    await buffer.admit(step, 0, f"t{step}", [1])
    await buffer.finish(graded(f"0-t{step}/0", True, task_id=f"t{step}"), diagnosis(True), 0.0)
    await buffer.take(step, [f"0-t{step}"])
    batch = Batch(rows=(), trained=(f"0-t{step}/0",), dropped={})
    await buffer.settle(step, batch, {"pass_rate/valid": pass_rate}, 1.0)


def archived(folder: Path) -> dict[str, list[str]]:
    return {path.stem: pq.read_table(path)["task_id"].to_pylist() for path in sorted(folder.glob("trajectories/*"))}


async def test_the_last_ones_and_the_best_stay(buffer, tmp_path):
    checkpoints, trainer = Checkpoints(tmp_path, CheckpointOptions(every=1, keep=2)), WritingTrainer()
    for step, rate in enumerate((0.2, 0.9, 0.4, 0.5, 0.6), start=1):
        await stepped(buffer, step, rate)
        await checkpoints.save(step, trainer, buffer)
    assert checkpoints.steps == [2, 4, 5]
    assert (checkpoints.last, checkpoints.best) == (5, 2)
    assert await checkpoints.load(trainer, buffer) == 5
    assert trainer.loaded == ["step-000005"]


async def test_every_attempt_is_archived_once_with_its_checkpoint(buffer, tmp_path):
    checkpoints, trainer = Checkpoints(tmp_path, CheckpointOptions(every=2)), WritingTrainer()
    for step in (1, 2):
        await stepped(buffer, step, 0.5)
    await checkpoints.save(2, trainer, buffer)
    await stepped(buffer, 3, 0.5)
    await checkpoints.save(3, trainer, buffer)
    assert archived(tmp_path) == {"step-000002": ["t1", "t2"], "step-000003": ["t3"]}


async def test_a_death_between_checkpoint_and_archive_is_made_good_when_the_run_resumes(buffer, tmp_path, monkeypatch):
    checkpoints, trainer = Checkpoints(tmp_path, CheckpointOptions(every=1)), WritingTrainer()
    await stepped(buffer, 1, 0.5)

    async def killed(*given: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(buffer, "archive", killed)
        with pytest.raises(KeyboardInterrupt):
            await checkpoints.save(1, trainer, buffer)
    assert archived(tmp_path) == {}
    assert await checkpoints.load(trainer, buffer) == 1
    await stepped(buffer, 2, 0.5)
    await checkpoints.save(2, trainer, buffer)
    assert archived(tmp_path) == {"step-000001": ["t1"], "step-000002": ["t2"]}


async def test_a_buffer_that_is_gone_comes_back_from_the_last_checkpoint(buffer, tmp_path):
    checkpoints, trainer = Checkpoints(tmp_path, CheckpointOptions(every=1)), WritingTrainer()
    await stepped(buffer, 1, 0.5)
    await checkpoints.save(1, trainer, buffer)
    checkpoints.restore(tmp_path / "elsewhere.sqlite")
    again = Buffer(tmp_path / "elsewhere.sqlite")
    assert await again.counts() == await buffer.counts()
    with pytest.raises(BufferError, match="UNIQUE"):
        await again.admit(9, 0, "t1", [1])  # it still knows what was admitted
    again.close()


async def test_a_checkpoint_that_was_not_finished_is_none(buffer, tmp_path):
    checkpoints, trainer = Checkpoints(tmp_path, CheckpointOptions(every=1)), WritingTrainer()
    (tmp_path / "checkpoints" / ".making-000001").mkdir()
    assert checkpoints.last == 0 and await checkpoints.load(trainer, buffer) == 0
    await stepped(buffer, 1, 0.5)
    await checkpoints.save(1, trainer, buffer)
    assert checkpoints.steps == [1]
