"""What of a run is kept: the last checkpoints and the best, each a model folder that can be served as it is."""

import asyncio
import json
import shutil
from collections.abc import Iterable
from pathlib import Path

from infra.files import write_table, write_whole
from rl.learn.records import Graded
from rl.train.buffer import Buffer
from rl.train.parts import Trainer
from rl.train.run import EVALUATIONS, steps_in
from schemas.arrow import ATTEMPTS
from schemas.errors import TouchstoneError
from schemas.training import CheckpointOptions

FOLDER, BUFFER, SCORES = "checkpoints", "buffer.sqlite", "scores.json"


class Checkpoints:
    """Under `folder`: `checkpoints/step-000010/` with a copy of the buffer, and `trajectories/step-000010.parquet`."""

    def __init__(self, folder: Path, options: CheckpointOptions) -> None:
        self._folder, self._options = folder / FOLDER, options
        self._ledger = folder / "trajectories"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._ledger.mkdir(exist_ok=True)

    @property
    def steps(self) -> list[int]:
        """Of the checkpoints that are there, ascending."""
        return steps_in(self._folder)

    @property
    def last(self) -> int:
        """Step of the last one; 0 when there is none."""
        return max(self.steps, default=0)

    def path(self, step: int) -> Path:
        return self._folder / f"step-{step:06d}"

    @property
    def best(self) -> int:
        """Step of the one with the best score; 0 when there is none."""
        scores = self._scores()
        return max((step for step in self.steps if step in scores), key=lambda step: (scores[step], step), default=0)

    async def load(self, trainer: Trainer, buffer: Buffer) -> int:
        """Load the last one into the trainer, if there is any. Gives its step, 0 without one."""
        if last := self.last:
            await trainer.load(str(self.path(last)))
            # Whoever wrote it may have died before its attempts were archived: they belong to its file and to no later one.
            await self._archive(last, buffer)
        return last

    def restore(self, buffer: Path) -> None:
        """Where a buffer is gone or empty, put that of the last checkpoint in its place, if there is one.

        What was written of steps beyond that goes: they are taken anew, and may come to something else.
        """
        if not self.lost(buffer):
            return
        for folder, suffix in ((self._ledger, ".parquet"), (buffer.parent / EVALUATIONS, ".json")):
            for step in steps_in(folder, suffix):
                if step > self.last:
                    (folder / f"step-{step:06d}{suffix}").unlink()
        for beside in ("-wal", "-shm"):  # of the one that is gone
            buffer.with_name(buffer.name + beside).unlink(missing_ok=True)
        write_whole(buffer, (self.path(self.last) / BUFFER).read_bytes())

    def lost(self, buffer: Path) -> bool:
        """Whether a buffer is gone or empty though there is a checkpoint."""
        return self.last > 0 and not (buffer.exists() and buffer.stat().st_size)

    async def save(self, step: int, trainer: Trainer, buffer: Buffer) -> None:
        """Keep what the trainer and the buffer have come to, archive what was trained, and remove older ones."""
        making = self._folder / f".making-{step:06d}"
        for abandoned in self._folder.glob(".making-*"):  # by a process that was killed
            shutil.rmtree(abandoned)
        await trainer.save(str(making))
        await buffer.copy(making / BUFFER)
        metrics = await buffer.metrics()
        await asyncio.to_thread(making.rename, self.path(step))
        since = [said for at, _, said in metrics if step - self._options.every < at <= step]
        rates = [said["pass_rate/valid"] for said in since if "pass_rate/valid" in said]
        if rates:
            scores = self._scores() | {step: sum(rates) / len(rates)}
            write_whole(self._folder / SCORES, json.dumps(scores).encode())
        await self._archive(step, buffer)
        self._remove_old()

    async def _archive(self, step: int, buffer: Buffer) -> None:
        await buffer.archive(step, lambda attempts: self._write(step, attempts))

    def _write(self, step: int, attempts: Iterable[Graded]) -> None:
        write_table(self._ledger / f"step-{step:06d}.parquet", ATTEMPTS.pack(graded.trajectory for graded in attempts))

    def _remove_old(self) -> None:
        keep = {*self.steps[-self._options.keep :], self.best}
        for step in set(self.steps) - keep:
            shutil.rmtree(self.path(step))

    def _scores(self) -> dict[int, float]:
        path = self._folder / SCORES
        try:
            return {int(step): float(score) for step, score in json.loads(path.read_text()).items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise TouchstoneError(
                f"{path}: is damaged ({error}); remove it: scores are then of later steps only"
            ) from error
