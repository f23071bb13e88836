"""Rounds that are killed, broken, damaged or begun twice at once: the same call goes on, and no step is done again."""

import json
import multiprocessing
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from infra.files import FolderInUse
from infra.settings import Settings
from rl.rounds import Rounds, RoundsError, begin, opened
from schemas.rounds import RoundsConfig
from tests.pipeline.runs import calls
from tests.pipeline.tasks import search_task
from tests.rl.couples import CONFIG, STEPS, Dies, begun, handed, played

pytestmark = pytest.mark.timeout(1800)  # many processes, on a machine that may be busy

ONE = CONFIG.model_copy(update={"rounds": 1})
MOMENTS = [
    (step, moment)
    for step in STEPS
    for moment in ("begun", *(["middle"] if step.endswith("train") else []), "done", "written")
]
"""Of two rounds: before each step, at its end, and when that is on record."""


class Hangs:
    """Stays in a step for ever."""

    def __call__(self, step: str, moment: str) -> None:
        if (step, moment) == ("1/curate", "begun"):
            time.sleep(600)


@pytest.fixture(scope="module")
def processes() -> multiprocessing.context.ForkServerContext:
    """Starts processes that have everything imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.rl.couples", "pipeline.families.math", "rl.train.curves"])
    return context


def ended(rounds: Rounds) -> tuple[str | None, list[dict[str, Any]]]:
    return rounds.held_out, [each.model_dump() for each in rounds.rounds]


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_kill_9_at_every_moment_of_every_step_repeats_and_skips_nothing(
    processes: multiprocessing.context.ForkServerContext, tmp_path: Path
) -> None:
    """One life for each moment, one after another in one folder, and a last one that comes to the end.

    A step is begun once in every life in which it was not on record: one more than the moments before that.
    """
    home = tmp_path / "home"  # policies are known by where they lie, so that equal rounds are in equal folders
    home.mkdir()
    undisturbed = ended(played(home)[0])
    asked = sorted(calls(home / "calls"))
    shutil.rmtree(home)
    home.mkdir()
    held_out = set()
    for step, moment in MOMENTS:
        life = processes.Process(target=played, args=(home, CONFIG, Dies(step, moment)))
        life.start()
        life.join()
        assert life.exitcode == -signal.SIGKILL, (step, moment)
        held_out.add(begin(CONFIG, Settings(str(home), home)).held_out)
    assert ended(played(home)[0]) == undisturbed
    assert held_out == {None, undisturbed[0]}
    lives = {step: 4 if step.endswith("train") else 3 for step in STEPS}
    assert begun(home) == [step for step in STEPS for _ in range(lives[step])]
    assert sorted(calls(home / "calls")) == asked
    assert len([*(home / "runs").iterdir()]) == 3 and len([*(home / "training").iterdir()]) == 2


@pytest.fixture
def stopped(tmp_path: Path) -> Rounds:
    """Rounds that an error has ended while the first was trained."""
    with pytest.raises(RuntimeError, match="1/train: middle"):
        played(tmp_path, ONE, Dies("1/train", "middle", killed=False))
    return begin(ONE, Settings(str(tmp_path), tmp_path))


def test_an_error_ends_the_rounds_and_the_same_call_goes_on(stopped: Rounds, tmp_path: Path) -> None:
    assert stopped.round(1).release is not None and stopped.round(1).run is None
    assert played(tmp_path, ONE)[0].round(1).plan is not None
    assert begun(tmp_path) == ["0/curate", "1/curate", "1/train", "1/train", "1/steer"]


def test_two_processes_cannot_do_the_same_rounds_at_once(
    processes: multiprocessing.context.ForkServerContext, tmp_path: Path
) -> None:
    life = processes.Process(target=played, args=(tmp_path, ONE, Hangs()))
    life.start()
    try:
        deadline = time.monotonic() + 240
        while not (tmp_path / "begun").exists() or begun(tmp_path)[-1] != "1/curate":
            assert life.is_alive() and time.monotonic() < deadline
            time.sleep(0.05)
        before = files(tmp_path)
        with pytest.raises(FolderInUse, match=f"process {life.pid} works on this run"):
            played(tmp_path)  # of two rounds, which is another number of the same
        assert files(tmp_path) == before
    finally:
        life.kill()
        life.join()
    assert played(tmp_path, ONE)[0].round(1).plan is not None


@pytest.mark.parametrize(
    ("name", "left", "way_out"),
    [
        ("round-0001.json", b"", "correct it, or remove it to do the round again"),
        ("round-0001.json", b'{"number": 1, "relase": "r-1"}', "relase=.*is no known key.*remove it to do the round again"),
        ("round-0001.json", b'{"number": 2}', "it is of another round.*remove it to do the round again"),
        ("round-0001.json", b'{"number": 1, "plan": "p-1"}', "a later step is there without the one before it"),
        ("held-out.json", b"{", "begin anew with another seed"),
        ("held-out.json", b'{"release": null}', "begin anew with another seed"),
        ("held-out.json", b"\xff", "begin anew with another seed"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_named_with_the_way_out(tmp_path: Path, name: str, left: bytes, way_out: str) -> None:
    config = RoundsConfig()
    rounds = begin(config, Settings(str(tmp_path), tmp_path))
    rounds.hold_out(handed(tmp_path, "test", search_task()))
    (rounds.path / name).write_bytes(left)
    with pytest.raises(RoundsError, match=rf"{name}: is damaged.*{way_out}"):
        played(tmp_path, config)
    assert (rounds.path / name).read_bytes() == left


@pytest.mark.parametrize("left", [b"", b"[]", b"\xff", b'{"rounds": 0}', b'{"old": 1}'])
def test_damaged_settings_are_named_and_the_same_call_writes_them_anew(tmp_path: Path, left: bytes) -> None:
    settings = Settings(str(tmp_path), tmp_path)
    rounds = begin(ONE, settings)
    (rounds.path / "rounds.json").write_bytes(left)
    with pytest.raises(
        RoundsError, match=r"rounds\.json: is damaged or of another version .* writes it anew"
    ) as caught:
        opened("latest", settings)
    assert "\n" not in str(caught.value)
    assert begin(ONE, settings) == opened("latest", settings)


def test_a_folder_without_rounds_says_how_to_begin_some(tmp_path: Path) -> None:
    settings = Settings(str(tmp_path), tmp_path)
    for name in ("latest", "rounds-0", str(tmp_path)):
        with pytest.raises(RoundsError, match="holds no rounds; begin some with `touchstone couple`"):
            opened(name, settings)


def test_a_round_whose_file_was_removed_comes_to_the_same_again(stopped: Rounds, tmp_path: Path) -> None:
    """Its curation is over and is found again; so is what it trained."""
    over = played(tmp_path, ONE)[0].round(1)
    asked = len(calls(tmp_path / "calls"))
    (stopped.path / "round-0001.json").unlink()
    assert played(tmp_path, ONE)[0].round(1) == over
    assert len(calls(tmp_path / "calls")) == asked


def test_settings_are_kept_as_they_were_given(stopped: Rounds) -> None:
    described = json.loads((stopped.path / "rounds.json").read_text())
    assert described["train"] == {"family": "math", "rollout": {"group": 4}, "steps": 1}
