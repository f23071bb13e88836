"""The trainer as a part of a run."""

import asyncio
import pickle
import time
from pathlib import Path

import pytest

from rl.learn.checkpoint import TrainerError
from rl.learn.ranks import Team
from rl.learn.records import Batch, Weights
from rl.learn.trainer import TorchTrainer
from rl.train.parts import Trainer
from tests.rl.learn.small import batch, mixed, setup, write_policy


async def test_the_event_loop_lives_while_the_trainer_works(tmp_path: Path) -> None:
    given = setup(write_policy(tmp_path / "policy"), tmp_path / "weights")
    trainer: Trainer = TorchTrainer(pickle.loads(pickle.dumps(given)))
    working = asyncio.gather(trainer.step(mixed()), trainer.publish(1), trainer.save(str(tmp_path / "saved")))
    slowest = 0.0
    while not working.done():
        begun = time.perf_counter()
        await asyncio.sleep(0.001)
        slowest = max(slowest, time.perf_counter() - begun)
    metrics, published, _ = await working
    assert metrics["targets/trained"] > 0 and published.version == 1
    assert (tmp_path / "saved" / "manifest.json").exists()
    await trainer.load(str(tmp_path / "saved"))
    await trainer.close()


async def test_a_policy_that_cannot_be_read_fails_every_call_with_the_reason(tmp_path: Path) -> None:
    trainer = TorchTrainer(setup(tmp_path, tmp_path))
    for _ in range(2):
        with pytest.raises(TrainerError, match="is no model folder"):
            await trainer.step(mixed())
    await trainer.close()


class AnsweringRank:
    def __init__(self, rank: int) -> None:
        self.rank, self.seen = rank, list[object]()

    async def step(self, batch: Batch) -> dict[str, float]:
        self.seen.append(batch)
        return {"rank/step": self.rank}

    async def publish(self, version: int) -> Weights:
        return Weights(f"rank {self.rank}", version, "")

    async def save(self, folder: str) -> None:
        self.seen.append(folder)

    async def load(self, folder: str) -> None:
        self.seen.append(folder)

    async def close(self) -> None:
        self.seen.append("closed")


class FailingRank(AnsweringRank):
    async def step(self, batch: Batch) -> dict[str, float]:
        raise TrainerError("rank 1: out of memory; use more ranks")


class HangingRank(AnsweringRank):
    async def step(self, batch: Batch) -> dict[str, float]:
        await asyncio.sleep(3600)
        raise AssertionError


async def test_every_rank_gets_every_call_and_rank_0_answers() -> None:
    ranks = [AnsweringRank(0), AnsweringRank(1)]
    team: Trainer = Team(ranks)
    given = batch()
    assert await team.step(given) == {"rank/step": 0}
    assert (await team.publish(3)).folder == "rank 0"
    await team.save("a")
    await team.load("b")
    await team.close()
    assert [rank.seen for rank in ranks] == [[given, "a", "b", "closed"]] * 2


async def test_the_first_failure_is_told_though_another_rank_hangs() -> None:
    with pytest.raises(TrainerError, match="rank 1: out of memory"):
        await asyncio.wait_for(Team([HangingRank(0), FailingRank(1)]).step(batch()), 5)
