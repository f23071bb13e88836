"""A run's folder holds complete files or none, and one process works in it at a time."""

import json

import pytest

from pipeline.runs import Origin, Run, RunError
from schemas.arrow import CANDIDATES
from schemas.config import CurateConfig
from schemas.row import Candidate
from tests.infra.test_store import run_limited

ORIGIN = Origin(generator="1", filters={"form": "1"})
CONFIG = CurateConfig(family="math", candidates=5)
MISSES = [Candidate(index=i, miss="none") for i in range(3)]


@pytest.fixture
def run(tmp_path) -> Run:
    return Run.create(tmp_path, CONFIG, ORIGIN)


def test_what_was_written_is_read(run):
    assert not run.has("candidates", 0)
    run.write("candidates", 0, CANDIDATES.pack(MISSES))
    assert run.has("candidates", 0) and not run.has("candidates", 1)
    assert run.read("candidates", 0, CANDIDATES) == MISSES
    assert sorted(p.name for p in run.path.iterdir()) == ["candidates-00000.parquet", "run.json"]


def test_an_equal_config_finds_its_folder_and_any_change_another(tmp_path, run):
    assert Run.create(tmp_path, CurateConfig(family="math", candidates=5), ORIGIN) == run
    assert Run.open(run.path) == run
    others = [
        Run.create(tmp_path, CONFIG.model_copy(update={"seed": 1}), ORIGIN),
        Run.create(tmp_path, CONFIG, ORIGIN.model_copy(update={"generator": "2"})),
        Run.create(tmp_path, CONFIG, ORIGIN.model_copy(update={"filters": {"form": "2"}})),
        Run.create(tmp_path, CONFIG, ORIGIN.model_copy(update={"world_hash": "x"})),
    ]
    assert len({run.path, *(other.path for other in others)}) == 5


@pytest.mark.parametrize("left", [b"", b"PAR1", b"PAR1 half of it"])
def test_a_damaged_file_counts_as_not_done(run, left):
    run.write("candidates", 0, CANDIDATES.pack(MISSES))
    (run.path / "candidates-00000.parquet").write_bytes(left)
    assert not run.has("candidates", 0)
    run.write("candidates", 0, CANDIDATES.pack(MISSES))
    assert run.read("candidates", 0, CANDIDATES) == MISSES


def test_a_cut_file_counts_as_not_done(run):
    run.write("candidates", 0, CANDIDATES.pack(MISSES))
    path = run.path / "candidates-00000.parquet"
    path.write_bytes(path.read_bytes()[:-3])
    assert not run.has("candidates", 0)


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(RunError, match="is no run"):
        Run.open(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(RunError, match="is no run"):
        Run.open(tmp_path)


def test_a_full_disk_leaves_no_file_and_keeps_what_was_done(run):
    """Files of at most 8 KiB: three misses fit, four thousand random floats do not."""
    said = run_limited(
        """
        import random, sys
        from pathlib import Path
        import pyarrow as pa
        from infra.store import DiskFull
        from pipeline.runs import Run
        run = Run.open(Path(sys.argv[1]))
        run.write("small", 0, pa.table({"a": [1]}))
        try:
            run.write("large", 0, pa.table({"a": [random.random() for _ in range(4000)]}))
        except DiskFull as error:
            print(error)
        """,
        8192,
        str(run.path),
    )
    assert "large-00000.parquet: File too large; free some space and run again" in said
    assert sorted(p.name for p in run.path.iterdir()) == ["run.json", "small-00000.parquet"]


def test_one_run_is_measured_by_one_solver(run):
    run.use_solver("tools", "starter@1")
    run.use_solver("closed_book", "memory@1")
    run.use_solver("tools", "starter@1")
    assert Run.open(run.path).solvers == {"closed_book": "memory@1", "tools": "starter@1"}
    with pytest.raises(RunError, match="measured with starter@1, and starter@2 is served now"):
        run.use_solver("tools", "starter@2")


def test_a_run_with_a_setting_that_no_longer_exists_is_refused_in_one_line(run):
    described = json.loads((run.path / "run.json").read_text())
    described["config"]["old"] = 1
    (run.path / "run.json").write_text(json.dumps(described))
    with pytest.raises(RunError, match="old") as caught:
        Run.open(run.path)
    assert "\n" not in str(caught.value)
