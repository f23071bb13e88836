"""The kill drill: a run whose parts, and all of it, are killed again and again; it goes on each time, and nothing is lost.

Whatever is killed was started by this drill: the driver is its child, and every victim is a descendant of the driver.
"""

import asyncio
import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from sqlite3 import Connection, OperationalError, connect
from tempfile import TemporaryDirectory

import psutil  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from bench.figures import Figure, Row
from bench.releases import hard_search
from infra.settings import ROOT, Settings
from rl.learn.checkpoint import read_manifest
from rl.train.buffer import Buffer, Counts
from rl.train.checkpoints import Checkpoints
from rl.train.run import TrainRun, find

KILLS = {"whole": 4, "server": 2, "engine": 2, "worker": 6, "trainer": 6}
"""How often each is killed. A death of the first three costs the start of a server."""
CONFIG = {
    "groups": 4,
    "rollout": {"group": 4, "slots": 16, "stint_seconds": 1.0},
    "tools": {"replicas": 0},
    "evaluation": {"tasks": 4, "attempts": 2},
    "checkpoint": {"every": 2},
}
ENDLESS = 100_000
"""Steps of a run that is killed before it has taken them."""
LAST = 2
"""Steps that are taken after the last kill."""
QUIET_S = (0.0, 6.0)
"""Between the first new step after a death and the next kill."""
PATIENCE_S = 600.0
POLL_S = 0.1
ACTORS = {"engine": "ray::served_engine", "worker": "ray::RolloutWorker", "trainer": "ray::TorchTrainer"}
TITLE = ("kill", "victim", "at step", "in flight", "suspended", "seconds to a step on what was not over")


@dataclass
class Drill:
    """One run as a process, started as a person would, and what was done to it. `ray` is the setting of that name."""

    folder: Path
    release: str
    config: dict[str, object]
    ray: str | None
    rows: list[Row] = field(default_factory=list)
    survived: int = 0
    driver: subprocess.Popen[bytes] | None = None

    def start(self, steps: int) -> None:
        """Begin the run, or go on with it."""
        if self.buffer.exists():
            how = ["--resume", "latest"]
        else:
            file = self.folder / "config.json"
            file.write_text(json.dumps(self.config))
            how = [self.release, "--config", str(file)]
        command = [sys.executable, "-c", "from flows.cli import main; main()", "train", *how, "--steps", str(steps)]
        env = {name: value for name, value in os.environ.items() if name != "TOUCHSTONE_RAY"}
        env |= {"PYTHONPATH": str(ROOT)} | ({"TOUCHSTONE_RAY": self.ray} if self.ray else {})
        with (self.folder / "driver.log").open("ab") as log:
            self.driver = subprocess.Popen(
                [*command, "--out", str(self.folder)], stdout=log, stderr=log, env=env, start_new_session=True
            )

    @property
    def buffer(self) -> Path:
        return next(self.folder.glob("training/*/buffer.sqlite"), self.folder / "none")

    @property
    def run(self) -> TrainRun:
        return find("latest", Settings(str(self.folder), self.folder))

    def step(self) -> int:
        """The last one that was taken and settled."""
        with contextlib.suppress(OperationalError), reading(self.buffer) as db:  # one that is not made yet
            return int(db.execute("SELECT coalesce(max(step), 0) FROM steps WHERE metrics IS NOT NULL").fetchone()[0])
        return 0

    def wait(self, condition: Callable[[], bool]) -> float:
        """Seconds until it holds. Raises where the driver ends before, or it takes too long."""
        assert self.driver is not None
        began = time.monotonic()
        while not condition():
            if self.driver.poll() is not None or time.monotonic() - began > PATIENCE_S:
                raise RuntimeError(f"the run does not go on: {self.last_words()}")
            time.sleep(POLL_S)
        return time.monotonic() - began

    def kill(self, victim: str) -> None:
        """SIGKILL to a victim; the whole run is started again, a part is left to the run.

        Either is survived once a step was taken on an attempt that was not over before it: that had to be played since.
        """
        if victim == "whole":
            self.end()
        else:
            self._find(victim).kill()
        at = self.step()
        with reading(self.buffer) as db:
            saved = [one for (one,) in db.execute("SELECT content IS NOT NULL FROM attempts WHERE state = 'open'")]
            over = {uid for (uid,) in db.execute("SELECT uid FROM attempts WHERE state != 'open'")}
        if victim == "whole":
            self.start(ENDLESS)
        try:
            seconds: object = round(self.wait(lambda: self._took_beyond(over)), 1)
            self.survived += 1
        except RuntimeError as error:
            seconds = str(error)
        suspended = sum(saved)
        self.rows.append((len(self.rows) + 1, victim, at, len(saved) - suspended, suspended, seconds))
        print(*self.rows[-1], flush=True)

    def _took_beyond(self, over: Collection[str]) -> bool:
        """Whether a step was taken on any other attempt than these."""
        sql = "SELECT uid FROM attempts JOIN groups ON grp = name JOIN steps USING (step) WHERE metrics IS NOT NULL"
        with reading(self.buffer) as db:
            return any(uid not in over for (uid,) in db.execute(sql))

    def finish(self) -> int:
        """Kill the whole, go on for the last steps to the end of the run, and give its exit code."""
        self.end()
        self.start(self.step() + LAST)
        assert self.driver is not None
        return self.driver.wait(PATIENCE_S)

    def end(self) -> None:
        """Leave no process of the run behind."""
        for one in self._processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        if self.driver is not None:
            self.driver.wait()

    def last_words(self) -> str:
        return (self.folder / "driver.log").read_text(errors="replace")[-500:]

    def _processes(self) -> list[psutil.Process]:
        """The driver, while it lives, and everything that it started."""
        if self.driver is None or self.driver.poll() is not None:
            return []
        first = psutil.Process(self.driver.pid)
        return [first, *first.children(recursive=True)]

    def _find(self, victim: str) -> psutil.Process:
        """The process that is it; one that has just died has a successor soon."""
        found: list[psutil.Process] = []

        def there() -> bool:
            found.extend(one for one in self._processes() if is_a(victim, one))
            return bool(found)

        self.wait(there)
        return found[0]


async def measure() -> tuple[list[Row], list[Figure]]:
    """A row for each kill, and the figures."""
    settings = Settings.from_env()
    release = await hard_search(settings)
    with TemporaryDirectory() as folder:
        (Path(folder) / "worlds").symlink_to(settings.cache / "worlds")
        drill = Drill(Path(folder), release, CONFIG, ray="local")
        victims = [victim for victim, times in KILLS.items() for _ in range(times)]
        code = await asyncio.to_thread(play, drill, victims)
        return drill.rows, [
            Figure("kills_survived", drill.survived, f"== {len(victims)}"),
            Figure("kills_exit_code", code, "== 0"),
            *await account(drill.run),
        ]


def play(drill: Drill, victims: Sequence[str], seed: int = 0) -> int:
    """Kill them in an order and at moments that follow from the seed, then let the run end; its exit code."""
    rng = random.Random(seed)
    order = rng.sample(victims, len(victims))
    try:
        drill.start(ENDLESS)
        drill.wait(lambda: drill.step() > 0)
        for victim in order:
            time.sleep(rng.uniform(*QUIET_S))
            drill.kill(victim)
        return drill.finish()
    finally:
        drill.end()


async def account(run: TrainRun) -> list[Figure]:
    """What a run that is over must show, by its buffer, its ledger and its last checkpoint."""
    buffer = Buffer(run.path / "buffer.sqlite")
    try:
        counts, steps, last = await buffer.counts(), await buffer.metrics(), await buffer.last_step()
    finally:
        buffer.close()
    checkpoints = Checkpoints(run.path, run.config.checkpoint)
    moved = sum(said["passes/step"] > 0 and not said["skipped_steps/step"] for _, _, said in steps)
    with reading(run.path / "buffer.sqlite") as db:
        unsettled, early = _unsettled(db), _early(db)
    return [
        Figure("kills_counts_open", abs(counts.missing) + unsettled, "== 0"),
        Figure("kills_trained_twice", _twice(run, counts) + abs(moved - updates(checkpoints)), "== 0"),
        Figure("kills_steps_missing", last - len({step for step, _, _ in steps}) + (checkpoints.last != last), "== 0"),
        Figure("kills_turns_by_weights_to_come", early, "== 0"),
        Figure("kills_final_policy_unserved", float(run.evaluation(last) is None), "== 0"),
        Figure("kills_attempts_trained", counts.trained, "> 0"),
    ]


def updates(checkpoints: Checkpoints) -> int:
    """Steps that moved the weights of the last checkpoint, by the trainer's own count."""
    return read_manifest(checkpoints.path(checkpoints.last)).updates


def _unsettled(db: Connection) -> int:
    """Attempts of a batch that are neither trained nor dropped for a reason, or of no group."""
    sql = (
        "SELECT count(*) FROM attempts LEFT JOIN groups ON grp = name WHERE name IS NULL OR step IS NOT NULL AND "
        "NOT (state = 'trained' OR state = 'dropped' AND reason IS NOT NULL)"
    )
    return int(db.execute(sql).fetchone()[0])


def _early(db: Connection) -> int:
    """Attempts that were trained by a step that the weights of their last turn came after."""
    sql = "SELECT count(*) FROM attempts JOIN groups ON grp = name WHERE CAST(version AS INTEGER) >= step"
    return int(db.execute(sql).fetchone()[0])


def _twice(run: TrainRun, counts: Counts) -> int:
    """Tasks that were in two batches of an epoch, and attempts that the ledger has twice or not at all."""
    with reading(run.path / "buffer.sqlite") as db:
        sql = "SELECT count(*) - count(DISTINCT epoch || '/' || task_id) FROM groups WHERE step IS NOT NULL"
        tasks = int(db.execute(sql).fetchone()[0])
    seen = Counter[tuple[str, int]]()
    for path in sorted((run.path / "trajectories").glob("step-*.parquet")):
        table = pq.read_table(path, columns=["task_id", "seed"])
        seen.update(zip(table["task_id"].to_pylist(), table["seed"].to_pylist(), strict=True))
    return tasks + sum(seen.values()) - len(seen) + abs(len(seen) - counts.trained - sum(counts.dropped.values()))


@contextmanager
def reading(path: Path) -> Iterator[Connection]:
    """A buffer that another process writes."""
    with closing(connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as db:
        yield db


def is_a(victim: str, process: psutil.Process) -> bool:
    """Whether it is the server or, over Ray, the actor of a part."""
    try:
        command = process.cmdline()
    except psutil.Error:
        return False
    if victim == "server":
        return list(command[1:3]) == ["-m", "vllm.entrypoints.openai.api_server"]
    return bool(command) and command[0].startswith(ACTORS[victim])
