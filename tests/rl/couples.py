"""Rounds that are over at once: the real curation on models that toss coins, and a training that leaves behind what one leaves.

Every step that is begun stays on record, and the rounds may end before a step, after it, or in the middle of one.
"""

import asyncio
import os
import random
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from infra.files import locked, write_whole
from infra.settings import Settings
from infra.store import Store
from pipeline import curate as pipeline
from pipeline.release import publish
from rl import rounds as loop
from rl.learn.records import Batch
from rl.rounds import Rounds
from rl.train import report
from rl.train.buffer import Buffer
from rl.train.checkpoints import BUFFER, Checkpoints
from rl.train.run import TrainRun
from schemas.arrow import KEPT
from schemas.config import CurateConfig
from schemas.measured import AttemptOutcome, Diagnosis
from schemas.rounds import Round, RoundsConfig
from schemas.row import Kept
from schemas.task import Task
from schemas.trajectory import StopReason
from tests.pipeline.runs import coins
from tests.pipeline.test_release import part
from tests.rl.train.accounts import evaluation
from tests.rl.train.attempts import graded

CONFIG = RoundsConfig.model_validate(
    {
        "rounds": 2,
        "seed": 5,
        "held_out_candidates": 20,
        "curate": {
            "family": "math",
            "candidates": 24,
            "batch": 40,
            "keep": {"n": 4, "low": 1, "high": 3},
            "triviality": {"p1": 0.6, "limit": 4},
            "math": {"templates": ["quadratic_roots", "sequence_term", "gcd", "ages", "league_points"]},
        },
        "train": {"family": "math", "steps": 1, "rollout": {"group": 4}},
    }
)
"""Few questions of each template, so that some are met again."""
STEPS = ("0/curate", *(f"{number}/{step}" for number in (1, 2) for step in ("curate", "train", "steer")))
"""Of two rounds, in order."""
RIGHT = {"starter": 0.2}
"""Of a solver's attempts; of any other policy, which has learned, half."""

Die = Callable[[str, str], None]
"""Told (step, moment): `begun`, the `middle` of training, `done`, and `written` when that is on record."""


def lives(step: str, moment: str) -> None:
    """Never ends before its time."""


@dataclass(frozen=True, slots=True)
class Dies:
    """Ends at one moment of one step, as if by `kill -9`, or by an error."""

    step: str
    moment: str
    killed: bool = True

    def __call__(self, step: str, moment: str) -> None:
        if (step, moment) == (self.step, self.moment):
            if self.killed:
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError(f"{step}: {moment}")


@dataclass(slots=True)
class Parts:
    """A `rl.rounds.Steps`. What it was given stays in `curated` and `trained`."""

    settings: Settings
    die: Die = lives
    step: str = ""
    curated: list[CurateConfig] = field(default_factory=list)
    trained: list[TrainRun] = field(default_factory=list)

    def tell(self, number: int, step: str) -> None:
        self.step = f"{number}/{step}"
        with (self.settings.cache / "begun").open("a") as file:
            file.write(f"{self.step}\n")
        self.die(self.step, "begun")

    async def curate(self, config: CurateConfig) -> str:
        self.curated.append(config)
        store, right = Store(self.settings.store), RIGHT.get(config.resolved_solver().model, 0.5)
        work = pipeline.Here(None, coins(self.settings.cache / "calls", solver=right))
        run = await pipeline.curate(config, world=None, runs=self.settings.cache / "runs", store=store, work=work)
        return pipeline.publish([run], store).release.version

    async def train(self, run: TrainRun) -> None:
        self.trained.append(run)
        await trained(run, lambda: self.die(self.step, "middle"))


@dataclass(frozen=True, slots=True)
class MortalRounds(Rounds):
    """May end just before or after something is written down."""

    die: Die = lives

    def write(self, round: Round) -> Round:
        step = f"{round.number}/{'steer' if round.plan else 'train' if round.policy else 'curate'}"
        self.die(step, "done")
        Rounds.write(self, round)
        self.die(step, "written")
        return round

    def hold_out(self, version: str) -> str:
        self.die("0/curate", "done")
        Rounds.hold_out(self, version)
        self.die("0/curate", "written")
        return version


def played(folder: Path, config: RoundsConfig = CONFIG, die: Die = lives) -> tuple[Rounds, Parts]:
    """The rounds of a config in a folder, as far as they come."""
    settings = Settings(store=str(folder), cache=folder)
    parts, rounds = Parts(settings, die), loop.begin(config, settings)
    mortal = MortalRounds(rounds.path, rounds.config, die)
    asyncio.run(loop.go_on(mortal, parts, settings, parts.tell))
    return rounds, parts


def handed(folder: Path, split: str, task: Task) -> str:
    """A release of one task that somebody else has made; its version."""
    rows = KEPT.pack([Kept(task=task, difficulty=())])
    return publish(Store(str(folder)), [part(family=task.family, splits={split: rows})]).version


def begun(folder: Path) -> list[str]:
    """Every step that was ever begun in a folder, in order."""
    return (folder / "begun").read_text().splitlines()


async def trained(run: TrainRun, middle: Callable[[], None] = lambda: None, right: float = 0.5) -> None:
    """What `coach.train` leaves behind after one step on all tasks, without an engine or a trainer. It goes on as that does."""
    with locked(run.path):
        measured(run, 0, 20)
        checkpoints, buffer = Checkpoints(run.path, run.config.checkpoint), Buffer(run.path / BUFFER)
        try:
            if not await buffer.begun():
                await _step(run, buffer, right)
            middle()
            if not checkpoints.last:
                await checkpoints.save(1, CopiedPolicy(run.policy), buffer)
        finally:
            buffer.close()
        measured(run, 1, 58)
        await report.write(run)


def measured(run: TrainRun, step: int, right: int) -> None:
    """So many of 100 held-out tasks are right, unless something was measured already."""
    if run.evaluation(step) is None:
        write_whole(run.evaluation_file(step), evaluation(right).model_dump_json().encode())


async def _step(run: TrainRun, buffer: Buffer, right: float) -> None:
    """A group of attempts at each task, the first of which breaks the format; all of them are trained."""
    uids: list[str] = []
    groups: list[str] = []
    for number, task in enumerate(run.tasks("train")):
        seeds = range(1, run.config.rollout.group + 1)
        for each in await buffer.admit(number, 0, task.task_id, seeds):
            coin = random.Random(f"{each.task_id}/{each.seed}").random() < right
            stop = StopReason.FORMAT if each.seed == 1 else StopReason.ANSWERED
            outcome = AttemptOutcome.RIGHT if coin else AttemptOutcome.ARITHMETIC
            said = Diagnosis(outcome=AttemptOutcome.FORMAT if each.seed == 1 else outcome)
            await buffer.finish(graded(each.uid, coin, task_id=each.task_id, stop=stop), said, 1.0)
            uids.append(each.uid)
        groups.append(each.group)
    await buffer.take(1, groups)
    await buffer.settle(1, Batch(rows=(), trained=tuple(uids), dropped={}), {"pass_rate/valid": right}, 60.0)


@dataclass(frozen=True, slots=True)
class CopiedPolicy:
    """Stands in for a trainer that saves: the policy that it began with, under another revision."""

    policy: Path

    async def save(self, folder: str) -> None:
        def link(source: str, target: str) -> None:
            os.symlink(os.path.realpath(source), target)

        shutil.copytree(self.policy, folder, copy_function=link, ignore=shutil.ignore_patterns(BUFFER))
        config = Path(folder) / "config.json"
        write_whole(config, config.read_bytes() + b"\n")
