"""Parts of a run that only wait: attempts of random length, a trainer that learns nothing. For clocks, real or virtual."""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass

from rl.learn.records import Batch, Graded, Verdict, Weights
from rl.train.parts import Order, Played
from schemas.answer import EntityAnswer
from schemas.measured import AttemptOutcome, Diagnosis
from schemas.query import Problem
from schemas.task import Lineage, Task
from schemas.trajectory import StopReason, Trajectory, Turn


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds. A call's tool time is lognormal around its median; `sigma` 0.99 puts its 99th percentile at ten medians."""

    turn: float
    tool: float
    train: float
    swap: float
    sigma: float = 0.99
    turns: tuple[int, int] = (2, 6)
    stint: float = float("inf")


class SimulatedParts:
    """`Parts`. How long each turn of an attempt takes, and whether it is right, depends on its seed alone."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self.trainer = SimulatedTrainer(pace)
        self._version = 0
        self._cuts = 0
        self.played: list[float] = []
        """Seconds of every attempt that ended, in the order in which they did."""

    async def play(self, order: Order) -> Played:
        pace, loop, cuts = self._pace, asyncio.get_running_loop(), self._cuts
        began, turns = loop.time(), list(order.turns)
        drawn = random.Random(order.seed)
        lengths = [
            pace.turn + pace.tool * drawn.lognormvariate(0, pace.sigma) for _ in range(drawn.randint(*pace.turns))
        ]
        right = drawn.random() < 0.5
        while len(turns) < len(lengths):
            turns.append(turn(self._version, len(turns)))
            await asyncio.sleep(lengths[len(turns) - 1])
            over = len(turns) == len(lengths)
            if not over and (cuts != self._cuts or loop.time() - began > pace.stint):
                spent = order.spent + loop.time() - began
                return Played(saved=order.model_copy(update={"turns": tuple(turns), "spent": spent}), spent=spent)
        spent = order.spent + loop.time() - began
        self.played.append(spent)
        attempt = Trajectory(
            task_id=order.task.task_id, solver="simulated", arm="tools", seed=order.seed, turns=tuple(turns),
            stop=StopReason.ANSWERED, answer="yes",
        )  # fmt: skip
        verdict = Verdict.RIGHT if right else Verdict.WRONG
        diagnosis = Diagnosis(outcome=AttemptOutcome.RIGHT if right else AttemptOutcome.WRONG_VALUE)
        return Played(
            graded=Graded(uid=order.uid, trajectory=attempt, verdict=verdict), diagnosis=diagnosis, spent=spent
        )

    async def cut(self) -> None:
        self._cuts += 1

    async def swap(self, weights: Weights) -> None:
        await asyncio.sleep(self._pace.swap)
        self._version = weights.version

    async def mend(self) -> None:
        raise AssertionError("nothing here dies")


class SimulatedTrainer:
    """`Trainer`."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace

    async def step(self, batch: Batch) -> Mapping[str, float]:
        await asyncio.sleep(self._pace.train)
        return {}

    async def publish(self, version: int) -> Weights:
        return Weights("", version, "")

    async def save(self, folder: str) -> None:
        raise AssertionError("a simulated run keeps no checkpoints")

    async def load(self, folder: str) -> None:
        raise AssertionError("a simulated run keeps no checkpoints")

    async def close(self) -> None:
        pass


class NoCheckpoints:
    """`rl.train.checkpoints.Checkpoints` of a run that cannot be resumed."""

    last = 0

    async def load(self, trainer: object, buffer: object) -> int:
        return 0

    async def save(self, step: int, trainer: object, buffer: object) -> None:
        pass


def tasks(count: int) -> list[Task]:
    return [
        Task.create(
            family="hard_search",
            stratum="bench",
            question=f"What is number {i}?",
            answer=EntityAnswer(entity="yes", name="yes"),
            tools=(),
            constraints=Problem(template="bench", parameters={"number": i}),
            lineage=Lineage(generator="bench", version="1", seed=0, index=i, knobs={}),
        )
        for i in range(count)
    ]


def turn(version: int, before: int = 0) -> Turn:
    """A turn of one token, after `before` others like it."""
    return Turn(
        prompt_tokens=1 + 2 * before,
        shown_ids=(1,),
        output_ids=(2,),
        logprobs=(-1.0,),
        text="",
        version=str(version),
        call_id="",
    )
