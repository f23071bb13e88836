"""The drill at the boundaries of rounds sees what is on record, and what is begun though it is."""

from pathlib import Path

import pytest

from bench.boundaries import STEPS, Drill, at
from rl.rounds import opened
from tests.rl import couples
from tests.rl.couples import Dies, played


class DrilledHere(Drill):
    """Each life is one in this process, which an error ends."""

    def live(self, end: str | None) -> str:
        if end is None:
            played(self.folder)
            return ""
        with pytest.raises(RuntimeError):
            played(self.folder, die=Dies(end, "written", killed=False))
        return ""


class Forgetful(DrilledHere):
    """Begins a step that is on record."""

    def live(self, end: str | None) -> str:
        if end == "2/train":
            couples.Parts(at(self.folder)).tell(1, "train")
        return super().live(end)


class Early(DrilledHere):
    """Ends before the first step is on record."""

    def live(self, end: str | None) -> str:
        if end == "0/curate":
            return "not over"
        return super().live(end)


def test_rounds_that_go_on_survive_every_boundary(tmp_path: Path) -> None:
    drill = DrilledHere(tmp_path)
    drill.play()
    assert (drill.survived, drill.repeated) == (len(STEPS), 0)
    assert [row[0] for row in drill.rows] == [*STEPS] == [*couples.STEPS]
    assert [row[3] for row in drill.rows] == [*STEPS[1:], ""]
    assert {row[-1] for row in drill.rows} == {opened("latest", at(tmp_path)).held_out}
    assert drill.on_record().keys() == {*STEPS}


def test_a_step_that_is_begun_though_it_is_on_record_counts_as_repeated(tmp_path: Path) -> None:
    drill = Forgetful(tmp_path)
    drill.play()
    assert drill.repeated == 1
    assert [row[4] for row in drill.rows if row[4]] == [1]


def test_a_boundary_that_was_not_reached_is_not_survived(tmp_path: Path) -> None:
    drill = Early(tmp_path)
    drill.play()
    assert (drill.survived, drill.repeated) == (len(STEPS) - 1, 0)
