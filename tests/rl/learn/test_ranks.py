"""Two ranks that train as one, in processes of their own, over gloo."""

import asyncio
import multiprocessing
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from rl.learn.learner import Learner, TrainerSetup
from rl.learn.ranks import Team, spread
from rl.learn.records import Batch, Weights
from tests.rl.learn.small import apart, batch, mixed, moved, read, row, setup, weights, write_policy

pytestmark = pytest.mark.slow  # two processes that each import torch


def serve(setup: TrainerSetup, calls: Connection) -> None:
    learner = Learner(setup)
    while True:
        name, given = calls.recv()
        try:
            calls.send((getattr(learner, name)(*given), None))
        except Exception as error:
            calls.send((None, error))
        if name == "close":
            return


class ProcessRank:
    """A rank in a process of its own."""

    def __init__(self, setup: TrainerSetup) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["tests.rl.learn.small"])
        self._calls, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(setup, theirs))
        self.process.start()

    def _call(self, name: str, *given: Any) -> Any:
        self._calls.send((name, given))
        assert self._calls.poll(300), f"{name}: no answer"
        answer, error = self._calls.recv()
        if error:
            raise error
        return answer

    async def step(self, batch: Batch) -> dict[str, float]:
        return await asyncio.to_thread(self._call, "step", batch)

    async def publish(self, version: int) -> Weights:
        return await asyncio.to_thread(self._call, "publish", version)

    async def save(self, folder: str) -> None:
        await asyncio.to_thread(self._call, "save", folder)

    async def load(self, folder: str) -> None:
        await asyncio.to_thread(self._call, "load", folder)

    async def close(self) -> None:
        await asyncio.to_thread(self._call, "close")


def two(policy: Path, folder: Path, patience_s: float) -> list[ProcessRank]:
    one = setup(policy, folder / "weights", pack=128)
    shared = {"world": 2, "meet": f"file://{folder / 'meeting'}", "patience_s": patience_s}
    fields = {name: getattr(one, name) for name in ("policy", "weights", "optimiser", "loss", "temperature")}
    return [ProcessRank(TrainerSetup(**fields, rank=rank, **shared)) for rank in range(2)]


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_policy(tmp_path_factory.mktemp("policies") / "small", tied=True)


@pytest.fixture(scope="module")
def team(policy: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    ranks = two(policy, tmp_path_factory.mktemp("team"), patience_s=60)
    team = Team(ranks)
    yield team
    asyncio.run(team.close())
    for rank in ranks:
        rank.process.join(30)


@pytest.fixture
def alone(policy: Path, tmp_path: Path) -> Learner:
    return Learner(setup(policy, tmp_path / "weights", pack=128))


def as_alone(team: Team, alone: Learner, folder: Path) -> None:
    """Both begin from the same checkpoint."""
    alone.save(str(folder))
    asyncio.run(team.load(str(folder)))


def test_every_row_has_one_rank_and_the_ranks_like_many_tokens() -> None:
    rows = [row(range(n), 1, 1.0) for n in (5, 3, 9, 4, 4, 3)]
    parts = spread(rows, 2)
    assert [[len(each) for each in part] for part in parts] == [[9, 4], [5, 4, 3, 3]]
    assert spread(rows[:1], 2) == [rows[:1], []]


def test_two_ranks_learn_what_one_learns(team: Team, alone: Learner, tmp_path: Path) -> None:
    as_alone(team, alone, tmp_path / "start")
    seen, expected = asyncio.run(team.step(mixed())), alone.step(mixed())
    assert seen["passes/step"] < expected["passes/step"]
    timed = {"passes/step", "seconds/step", "tokens_per_second/step"}
    assert {name: seen[name] for name in expected if name not in timed} == pytest.approx(
        {name: expected[name] for name in expected if name not in timed}, rel=1e-4, abs=1e-6
    )
    published = asyncio.run(team.publish(1))
    found = read(published.folder)
    assert apart(moved(alone, found), moved(alone, weights(alone))) < 1e-6


def test_a_rank_without_rows_waits_for_no_one(team: Team, alone: Learner, tmp_path: Path) -> None:
    as_alone(team, alone, tmp_path / "start")
    single = batch(row([5, 6, 7, 8], 1, 1.0))
    asyncio.run(team.step(single))
    alone.step(single)
    assert apart(moved(alone, read(asyncio.run(team.publish(1)).folder)), moved(alone, weights(alone))) < 1e-6
    assert asyncio.run(team.step(batch()))["passes/step"] == 0


def test_a_checkpoint_of_two_ranks_goes_on_on_one_and_on_two(team: Team, alone: Learner, tmp_path: Path) -> None:
    as_alone(team, alone, tmp_path / "start")
    asyncio.run(team.step(mixed(1)))
    asyncio.run(team.save(str(tmp_path / "saved")))
    asyncio.run(team.step(mixed(2)))
    went_on = asyncio.run(team.publish(2)).sha256
    asyncio.run(team.load(str(tmp_path / "saved")))
    asyncio.run(team.step(mixed(2)))
    assert asyncio.run(team.publish(2)).sha256 == went_on
    alone.load(str(tmp_path / "saved"))
    assert alone.version == 1
    asyncio.run(team.load(str(tmp_path / "saved")))
    assert apart(read(asyncio.run(team.publish(1)).folder), weights(alone)) == 0
    asyncio.run(team.step(mixed(2)))
    alone.step(mixed(2))
    assert apart(read(asyncio.run(team.publish(2)).folder), weights(alone)) < 1e-4


def test_a_rank_that_dies_is_told_at_once_and_the_other_ends(policy: Path, tmp_path: Path) -> None:
    ranks = two(policy, tmp_path, patience_s=5)
    team = Team(ranks)
    asyncio.run(team.step(mixed()))
    ranks[1].process.kill()
    with pytest.raises((EOFError, OSError, RuntimeError)):
        asyncio.run(asyncio.wait_for(team.step(mixed()), 30))
    ranks[0].process.kill()
    ranks[0].process.join(30)
