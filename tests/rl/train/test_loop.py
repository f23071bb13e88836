"""The loop on virtual time, with parts that only wait: what is in flight is bounded, nothing is lost, modes keep their word."""

import asyncio
import random
import sqlite3
from collections import Counter
from typing import Any, cast

import pytest

from bench import virtual
from bench.simulated import NoCheckpoints, Pace, SimulatedParts, tasks
from infra.place import PartDied
from rl.train.buffer import Buffer
from rl.train.loop import Loop
from rl.train.parts import Order, Played
from rl.train.progress import Progress
from rl.train.stepper import Stepper
from schemas.training import TrainConfig

PACE = Pace(turn=1.0, tool=2.0, train=5.0, swap=0.5, stint=15.0)


class WatchedParts(SimulatedParts):
    """Notes what is played when, and what is sampled while the trainer works."""

    def __init__(self, pace: Pace = PACE) -> None:
        super().__init__(pace)
        self.most = 0
        self.now = 0
        self.fresh: list[tuple[str, bool]] = []
        """Attempts in the order in which they began, and whether one that was put aside waited meanwhile."""
        self.aside: set[str] = set()
        self.went_on = 0

    async def play(self, order: Order) -> Played:
        self.now += 1
        self.most = max(self.most, self.now)
        if order.turns:
            self.aside.discard(order.uid)
            self.went_on += 1
        else:
            self.fresh.append((order.uid, bool(self.aside)))
        try:
            played = await super().play(order)
        finally:
            self.now -= 1
        if played.saved is not None:
            self.aside.add(order.uid)
        return played


class SlowToStart(WatchedParts):
    """Engines whose first weights take half a minute, as the start of a server does."""

    async def swap(self, weights: Any) -> None:
        if not weights.version:
            await asyncio.sleep(30)
        await super().swap(weights)


class DyingParts(WatchedParts):
    """Every seventh stint, and twice in the trainer, a part dies; `mend` starts it anew."""

    def __init__(self) -> None:
        super().__init__()
        self.mended = self.stints = self.steps = 0
        alive = self.trainer.step

        async def step(batch: Any) -> Any:
            self.steps += 1
            if self.steps in (3, 10):
                raise PartDied("trainer-0", "killed")
            return await alive(batch)

        cast(Any, self.trainer).step = step

    async def play(self, order: Order) -> Played:
        self.stints += 1
        if self.stints % 7 == 0:
            await asyncio.sleep(1)
            raise PartDied("worker-0", "killed")
        return await super().play(order)

    async def mend(self) -> None:
        self.mended += 1


def config(mode: str, **others: Any) -> TrainConfig:
    rollout = {"mode": mode, "slots": 24, "group": 4, "ahead": 2}
    return TrainConfig.model_validate(
        {"rollout": rollout, "groups": 4, "steps": 8, "negatives": {"cap": None}} | others
    )


async def played(
    config: TrainConfig, parts: SimulatedParts, buffer: Buffer, *, count: int = 24, watch: Any = lambda progress: None
) -> None:
    clock = asyncio.get_running_loop().time
    stepper = Stepper(config, buffer=buffer, parts=parts, checkpoints=cast(Any, NoCheckpoints()), clock=clock)
    await Loop(config, tasks(count), buffer=buffer, parts=parts, stepper=stepper, watch=watch).run()


@pytest.mark.parametrize("mode", ["sync", "partial", "async"])
def test_every_mode_takes_its_steps_within_its_slots_and_loses_nothing(mode):
    async def work() -> None:
        parts, buffer = WatchedParts(), Buffer(None)
        await played(config(mode), parts, buffer)
        counts, steps = await buffer.counts(), await buffer.metrics()
        buffer.close()
        assert [step for step, _, _ in steps] == list(range(1, 9))
        assert counts.missing == 0
        assert counts.trained + sum(counts.dropped.values()) == 8 * 4 * 4
        assert parts.most <= 24
        lags = [said.get("lag_max/trained", 0.0) for _, _, said in steps]
        assert (max(lags) == 0) is (mode == "sync")

    virtual.run(work())


def test_the_start_of_a_server_is_no_time_of_training():
    async def work() -> None:
        parts, buffer = SlowToStart(), Buffer(None)
        seen: list[float] = []
        await played(config("async"), parts, buffer, watch=lambda progress: seen.append(progress.minutes))
        assert seen.count(0.0) > 20 and seen == sorted(seen)
        buffer.close()

    virtual.run(work())


def test_partial_begins_no_stint_while_it_trains():
    async def work() -> None:
        parts, buffer = WatchedParts(), Buffer(None)
        training = False
        step, play = parts.trainer.step, parts.play

        async def stepping(batch: Any) -> Any:
            nonlocal training
            training = True
            try:
                return await step(batch)
            finally:
                training = False

        async def playing(order: Order) -> Played:
            assert not training
            return await play(order)

        cast(Any, parts.trainer).step, cast(Any, parts).play = stepping, playing
        await played(config("partial"), parts, buffer)
        buffer.close()

    virtual.run(work())


@pytest.mark.parametrize("mode", ["partial", "async"])
def test_what_was_put_aside_goes_on_before_fresh_attempts_begin(mode):
    async def work() -> None:
        parts, buffer = WatchedParts(), Buffer(None)
        await played(config(mode), parts, buffer)
        buffer.close()
        assert parts.went_on > 5
        assert len({uid for uid, _ in parts.fresh}) == len(parts.fresh)  # each began once
        assert not any(waited for _, waited in parts.fresh)

    virtual.run(work())


def test_epochs_end_a_run_with_every_task_played_so_often():
    async def work() -> None:
        parts, buffer = WatchedParts(), Buffer(None)
        await played(config("async", steps=None, epochs=2), parts, buffer, count=6)
        counts, ended = await buffer.counts(), await buffer.ended()
        buffer.close()
        assert counts.suspended == counts.missing == 0
        # 2 epochs * 6 tasks * 4 attempts; 12 groups are three batches of 4
        assert sorted(Counter(each.task_id for each in ended).values()) == [8] * 6

    virtual.run(work())


def test_the_last_batch_may_be_smaller():
    async def work() -> None:
        buffer = Buffer(None)
        await played(config("async", steps=None, epochs=1), WatchedParts(), buffer, count=6)
        steps, counts = await buffer.last_step(), await buffer.counts()
        buffer.close()
        assert steps == 2  # of 4 groups and of 2
        assert counts.suspended == 0

    virtual.run(work())


def test_minutes_are_of_the_whole_run(tmp_path):
    async def stretch(minutes: float) -> int:
        buffer = Buffer(tmp_path / "buffer.sqlite")
        await played(config("async", steps=None, minutes=minutes), WatchedParts(), buffer, count=500)
        last = await buffer.last_step()
        buffer.close()
        return last

    first = virtual.run(stretch(2))
    assert first >= 3
    assert virtual.run(stretch(2)) - first <= 1  # they are over already; only what was complete is taken in
    assert virtual.run(stretch(4)) >= first + 3


def test_a_death_of_a_worker_or_of_the_trainer_loses_nothing():
    async def work() -> None:
        parts, buffer = DyingParts(), Buffer(None)
        await played(config("async"), parts, buffer)
        counts, steps = await buffer.counts(), await buffer.metrics()
        buffer.close()
        assert parts.mended > 10
        assert [step for step, _, _ in steps] == list(range(1, 9))
        assert counts.missing == 0
        assert counts.trained + sum(counts.dropped.values()) == 8 * 4 * 4

    virtual.run(work())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("mode", ["sync", "partial", "async"])
def test_a_run_that_is_ended_at_any_point_goes_on_and_trains_no_task_twice_an_epoch(tmp_path, mode, seed):
    path, rng = tmp_path / "buffer.sqlite", random.Random(f"{mode}/{seed}")

    async def stretch(seconds: float | None) -> None:
        buffer = Buffer(path)
        run = asyncio.ensure_future(played(config(mode), WatchedParts(), buffer, count=10))
        try:
            await asyncio.wait_for(run, seconds)
        except TimeoutError:
            pass
        finally:
            buffer.close()

    for _ in range(5):
        virtual.run(stretch(rng.uniform(1, 60)))
    virtual.run(stretch(None))
    db = sqlite3.connect(path)
    assert [row[0] for row in db.execute("SELECT step FROM steps WHERE metrics IS NOT NULL ORDER BY step")] == [
        *range(1, 9)
    ]
    trained = db.execute("SELECT epoch, task_id, count(DISTINCT step) FROM groups WHERE step IS NOT NULL GROUP BY 1, 2")
    assert {count for _, _, count in trained} == {1}
    fates = dict(db.execute("SELECT state, count(*) FROM attempts GROUP BY state"))
    assert fates.get("trained", 0) + fates.get("dropped", 0) == 8 * 4 * 4
    db.close()


def test_an_observer_sees_counts_that_close_at_every_moment():
    seen: list[Progress] = []

    async def work() -> None:
        buffer = Buffer(None)
        await played(config("async"), WatchedParts(), buffer, watch=seen.append)
        buffer.close()

    virtual.run(work())
    assert len(seen) > 10
    for progress in seen:
        assert progress.trained + progress.dropped <= progress.admitted
        assert progress.in_flight <= 24
    assert seen[-1].step == 8
