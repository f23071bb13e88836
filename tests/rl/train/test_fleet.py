"""A whole run over Ray, with tiny parts that note down what they do; one part's process is killed in the middle of it."""

import asyncio
import json
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.simulated import tasks
from infra.place import Here, PartDied, Place, RayPlace
from rl.learn.ranks import Team
from rl.learn.records import Batch, Weights
from rl.train.buffer import Buffer
from rl.train.checkpoints import Checkpoints
from rl.train.fleet import Fleet, Recipe
from rl.train.loop import Loop
from rl.train.parts import Order, Played
from rl.train.stepper import Stepper, TrainingError
from schemas.training import TrainConfig
from tests.rl.train.attempts import diagnosis, graded

CONFIG = TrainConfig.model_validate(
    {
        "groups": 2,
        "steps": 6,
        "rollout": {"group": 2, "slots": 4, "ahead": 1},
        "negatives": {"cap": None},
        "checkpoint": {"every": 2},
    }
)
TURN_S = 0.1


class Notes:
    """What each process did, in the order in which it was done, in one file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, part: str, did: str, what: Any = None) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps([part, os.getpid(), did, what]) + "\n")

    def of(self, part: str) -> list[tuple[int, str, Any]]:
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return [(pid, did, what) for who, pid, did, what in map(json.loads, lines) if who == part]

    async def until(self, part: str, did: str, times: int) -> int:
        """The process that did it last."""
        async with asyncio.timeout(250):
            while len(done := [pid for pid, what, _ in self.of(part) if what == did]) < times:
                await asyncio.sleep(0.02)
        return done[-1]


class NotingEngine:
    def __init__(self, notes: Notes) -> None:
        self.notes, self.version = notes, 0

    async def turn(self) -> int:
        await asyncio.sleep(TURN_S)
        self.notes.add("engine", "turn", self.version)
        return self.version

    async def swap(self, weights: Weights) -> None:
        self.version = weights.version
        self.notes.add("engine", "swap", self.version)

    async def close(self) -> None:
        pass


class NotingWorker:
    def __init__(self, notes: Notes, engines: Sequence[NotingEngine]) -> None:
        self.notes, self.engines = notes, engines

    async def play(self, order: Order) -> Played:
        self.notes.add("worker", "play", order.uid)
        version = await self.engines[0].turn()
        right = order.seed % 2 == 0
        over = graded(order.uid, right, task_id=order.task.task_id, version=version)
        return Played(graded=over, diagnosis=diagnosis(right), spent=TURN_S)

    async def cut(self) -> None:
        pass

    async def close(self) -> None:
        pass


class NotingTrainer:
    """Its weights are the attempts they were trained on."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.weights: list[list[str]] = []

    async def step(self, batch: Batch) -> Mapping[str, float]:
        self.notes.add("trainer", "begin", len(self.weights) + 1)
        await asyncio.sleep(TURN_S)
        self.weights.append([*batch.trained, *batch.dropped])
        self.notes.add("trainer", "step", self.weights[-1])
        return {}

    async def publish(self, version: int) -> Weights:
        assert version == len(self.weights)
        return Weights("", version, "")

    async def save(self, folder: str) -> None:
        Path(folder).mkdir()
        (Path(folder) / "weights.json").write_text(json.dumps(self.weights))

    async def load(self, folder: str) -> None:
        self.weights = json.loads((Path(folder) / "weights.json").read_text())
        self.notes.add("trainer", "load", len(self.weights))

    async def close(self) -> None:
        pass


class BrokenRank:
    """Fails at once for want of another rank, whose death is not yet known."""

    async def publish(self, version: int) -> Weights:
        raise RuntimeError("connection closed by peer")


class DyingRank:
    async def publish(self, version: int) -> Weights:
        await asyncio.sleep(0.05)
        raise PartDied("trainer-1", "killed")


class MortalEngine:
    """Takes weights once the gate is open; a doomed one dies of them."""

    def __init__(self, gate: asyncio.Event, doomed: bool) -> None:
        self.gate, self.doomed, self.taken = gate, doomed, list[int]()

    async def swap(self, weights: Weights) -> None:
        if self.doomed:
            raise PartDied(Here().name(self), "staged")
        await self.gate.wait()
        self.taken.append(weights.version)

    async def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    place = RayPlace("local")
    yield place
    place.close()


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path / "notes.jsonl")


async def run_with(place: Place, notes: Notes, victim: str, did: str, times: int) -> Buffer:
    """A run whose `victim` is killed once it has done that so many times."""
    buffer, checkpoints = Buffer(None), Checkpoints(notes.path.parent, CONFIG.checkpoint)
    fleet = Fleet(
        place,
        engines=[Recipe(NotingEngine, (notes,))],
        workers=[Recipe(NotingWorker, (notes,))],
        trainers=lambda: [Recipe(NotingTrainer, (notes,))],
    )
    async with fleet as parts:
        stepper = Stepper(CONFIG, buffer=buffer, parts=parts, checkpoints=checkpoints)
        loop = Loop(CONFIG, tasks(40), buffer=buffer, parts=parts, stepper=stepper)
        running = asyncio.ensure_future(loop.run())
        os.kill(await notes.until(victim, did, times), signal.SIGKILL)
        await running
    counts, steps = await buffer.counts(), await buffer.metrics()
    assert [step for step, _, _ in steps] == [1, 2, 3, 4, 5, 6]
    assert counts.missing == 0
    assert counts.trained + sum(counts.dropped.values()) == 6 * 2 * 2
    return buffer


@pytest.mark.slow
async def test_attempts_of_a_worker_that_was_killed_are_played_by_the_next(place: Place, notes: Notes) -> None:
    buffer = await run_with(place, notes, "worker", "play", 9)
    buffer.close()
    first, second = dict.fromkeys(pid for pid, _, _ in notes.of("worker"))
    played = {pid: [uid for by, _, uid in notes.of("worker") if by == pid] for pid in (first, second)}
    assert set(played[first]) & set(played[second]), "what was with the first must be played again"
    assert len(dict.fromkeys(pid for pid, _, _ in notes.of("engine"))) == 1


@pytest.mark.slow
async def test_an_engine_after_one_that_was_killed_has_the_weights_of_the_last_swap_before_its_first_turn(
    place: Place, notes: Notes
) -> None:
    buffer = await run_with(place, notes, "engine", "turn", 13)
    buffer.close()
    first, second = dict.fromkeys(pid for pid, _, _ in notes.of("engine"))
    before = [version for pid, did, version in notes.of("engine") if pid == first and did == "swap"]
    after = [(did, version) for pid, did, version in notes.of("engine") if pid == second]
    assert before[-1] >= 1
    assert after[0][0] == "swap"
    assert after[0][1] >= before[-1]


@pytest.mark.slow
@pytest.mark.parametrize(("begun", "loaded"), [(2, 0), (4, 2)])
async def test_a_trainer_after_one_that_was_killed_takes_the_steps_since_the_checkpoint_from_the_same_batches(
    place: Place, notes: Notes, begun: int, loaded: int
) -> None:
    buffer = await run_with(place, notes, "trainer", "begin", begun)
    buffer.close()
    first, second = dict.fromkeys(pid for pid, _, _ in notes.of("trainer"))
    steps = {
        pid: [what for by, did, what in notes.of("trainer") if by == pid and did == "step"] for pid in (first, second)
    }
    assert [what for pid, did, what in notes.of("trainer") if pid == second and did == "load"] == (
        [loaded] if loaded else []
    )
    again = steps[first][loaded:]
    assert steps[second][: len(again)] == again
    assert len(steps[second]) == 6 - loaded
    weights = json.loads((notes.path.parent / "checkpoints/step-000006/weights.json").read_text())
    assert weights == steps[first][:loaded] + steps[second]


def mortal(gate: asyncio.Event, doomed: int) -> tuple[Fleet, list[MortalEngine]]:
    """A fleet of one engine, and all that it ever had, the first so many of which are doomed."""
    born: list[MortalEngine] = []

    def engine() -> MortalEngine:
        born.append(MortalEngine(gate, doomed=len(born) < doomed))
        return born[-1]

    return Fleet(Here(), engines=[Recipe(engine)], workers=[], trainers=lambda: []), born


async def test_an_engine_that_dies_while_it_takes_its_weights_is_followed_by_another() -> None:
    gate = asyncio.Event()
    gate.set()
    fleet, born = mortal(gate, doomed=3)
    async with fleet:
        await fleet.swap(Weights("", 1, ""))
    assert [engine.taken for engine in born] == [[], [], [], [1]]
    fleet, born = mortal(gate, doomed=4)
    async with fleet:
        with pytest.raises(TrainingError, match="3 in a row died at once; see their logs"):
            await fleet.swap(Weights("", 1, ""))
    assert len(born) == 4


async def test_weights_that_come_while_an_engine_begins_anew_reach_it() -> None:
    gate = asyncio.Event()
    fleet, born = mortal(gate, doomed=1)
    async with fleet:
        swaps = [asyncio.ensure_future(fleet.swap(Weights("", version, ""))) for version in (1, 2)]
        while len(born) < 2:
            await asyncio.sleep(0.01)
        gate.set()
        await asyncio.gather(*swaps)
    assert born[1].taken[-1] == 2
    assert len(born) == 2


async def test_a_death_among_ranks_is_told_before_what_the_others_say_of_it() -> None:
    ranks: Any = [BrokenRank(), DyingRank()]
    with pytest.raises(PartDied, match=r"^trainer-1"):
        await Team(ranks).publish(1)
    alone: Any = [BrokenRank()]
    with pytest.raises(RuntimeError, match="closed by peer"):
        await Team(alone).publish(1)
