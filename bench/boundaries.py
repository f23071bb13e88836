"""Rounds of curate, train and steer that are killed with `kill -9` whenever a step of theirs is on record; the same call goes on.

`python -m bench.boundaries FOLDER` does the rounds that are killed, or goes on with them; whoever kills them is their parent.
"""

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil  # type: ignore[import-untyped]

from bench.figures import Figure, Row
from flows.cli.local import Here
from infra.models import resolve
from infra.settings import ROOT, Settings
from pipeline.corpora import load_world
from rl.rounds import RoundsError, begin, go_on, opened
from schemas.rounds import RoundsConfig

CONFIG = RoundsConfig.model_validate(
    {
        "rounds": 2,
        "seed": 31,
        "held_out_candidates": 60,
        "curate": {
            "family": "hard_search",
            "candidates": 120,
            "aims": [{"stratum": "hard_search/4/search+open/entity/described"}],
            "hard_search": {"types": ["country", "US state", "element"], "min_clues": 3, "max_clues": 3},
            "triviality": {"p0": 0.05, "p1": 0.6, "alpha": 0.2, "beta": 0.2, "limit": 4},
        },
        "train": {
            "steps": 2,
            "groups": 2,
            "rollout": {"group": 4, "slots": 16},
            "tools": {"replicas": 0},
            "evaluation": {"tasks": 4, "attempts": 2},
            "checkpoint": {"every": 1},
        },
    }
)
"""As small as rounds can be that keep something each time."""
STEPS = ("0/curate", *(f"{n}/{step}" for n in range(1, CONFIG.rounds + 1) for step in ("curate", "train", "steer")))
"""In order. Each of them ends at a boundary: what it came to is on record, and the next has not begun, or only just."""
BEGUN = "begun"
"""The file that names every step when it is begun, in whatever life."""
PATIENCE_S = 1800.0
POLL_S = 0.02
TITLE = ("killed when on record", "the next life", "seconds", "began", "of those on record", "held out")


@dataclass
class Drill:
    """The rounds of a folder, life after life."""

    folder: Path
    rows: list[Row] = field(default_factory=list)
    survived: int = 0
    repeated: int = 0

    def on_record(self) -> dict[str, str]:
        """What each step that is over came to."""
        try:
            rounds = opened("latest", at(self.folder))
        except RoundsError:
            return {}
        found = {"0/curate": rounds.held_out}
        for each in rounds.rounds:
            for step, what in (("curate", each.release), ("train", each.policy), ("steer", each.plan)):
                found[f"{each.number}/{step}"] = what
        return {step: what for step, what in found.items() if what is not None}

    def begun(self) -> list[str]:
        file = self.folder / BEGUN
        return file.read_text().splitlines() if file.exists() else []

    def live(self, end: str | None) -> str:
        """One life, killed once the step `end` is on record; without one it ends by itself. Gives what went wrong, if anything."""
        command = [sys.executable, "-m", "bench.boundaries", str(self.folder)]
        env = os.environ | {"PYTHONPATH": str(ROOT)}
        with (self.folder / "lives.log").open("ab") as log:
            life = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + PATIENCE_S
        try:
            while life.poll() is None and time.monotonic() < deadline and (end is None or end not in self.on_record()):
                time.sleep(POLL_S)
            over = life.poll() == 0 if end is None else end in self.on_record()
            return "" if over else f"not over ({life.poll()}): {self.last_words()}"
        finally:
            _kill(life)

    def last_words(self) -> str:
        return (self.folder / "lives.log").read_text(errors="replace")[-500:]

    def play(self) -> None:
        """A life that is killed at each boundary, and one after the last."""
        self.live(STEPS[0])
        for killed, end in zip(STEPS, (*STEPS[1:], None), strict=True):
            recorded, before, began = self.on_record(), len(self.begun()), time.monotonic()
            wrong = self.live(end)
            seconds = time.monotonic() - began
            begun = self.begun()[before:]
            again = [step for step in begun if step in recorded]
            changed = {step for step, what in recorded.items() if self.on_record().get(step) != what}
            self.repeated += len(again)
            self.survived += killed in recorded and not wrong and not changed
            came = wrong or ("to its end" if end is None else f"to {end}")
            self.rows.append(
                (killed, came, round(seconds), " ".join(begun), len(again), self.on_record().get(STEPS[0]))
            )
            print(*self.rows[-1], flush=True)


async def measure() -> tuple[list[Row], list[Figure]]:
    """A row for each boundary, and the figures."""
    cache = Settings.from_env().cache
    await asyncio.to_thread(load_world, CONFIG.curate.world, cache)
    await asyncio.to_thread(resolve, CONFIG.curate.closed_book.model, cache)
    with TemporaryDirectory() as folder:
        for made in ("worlds", "models"):
            (Path(folder) / made).symlink_to(cache / made)
        drill = Drill(Path(folder))
        await asyncio.to_thread(drill.play)
        return drill.rows, [
            Figure("boundaries_survived", drill.survived, f"== {len(STEPS)}"),
            Figure("boundaries_repeated_steps", drill.repeated, "== 0"),
            Figure("boundaries_same_held_out", len({row[-1] for row in drill.rows}), "== 1"),
        ]


def at(folder: Path) -> Settings:
    return Settings(store=str(folder), cache=folder)


def play(folder: Path) -> None:
    """The rounds in this process, as the command line does them; each step that is begun is written down."""
    settings = at(folder)

    def tell(number: int, step: str) -> None:
        with (folder / BEGUN).open("a") as file:
            file.write(f"{number}/{step}\n")

    asyncio.run(go_on(begin(CONFIG, settings), Here(settings), settings, tell))


def _kill(life: "subprocess.Popen[bytes]") -> None:
    """The process and everything that it started, at once."""
    with contextlib.suppress(psutil.NoSuchProcess):
        first = psutil.Process(life.pid)
        for one in (first, *first.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
    life.wait()


if __name__ == "__main__":
    play(Path(sys.argv[1]))
