"""Every figure of a run is described, named with its population, and comes back from its file."""

import math

import pyarrow.parquet as pq
import pytest

from rl.train.metrics import FILE, METRICS_OF, POPULATIONS, MetricError, describe, read, record, undescribed
from schemas.measured import Metric


def test_what_was_recorded_is_read(tmp_path):
    assert read(tmp_path) == []
    record(tmp_path, 1, 2.5, {"reward/graded": 0.25, "entropy/targets": 1})
    record(tmp_path, 2, 5.0, {"reward/graded": 0.5})
    assert read(tmp_path) == [
        Metric(step=1, seconds=2.5, name="reward", population="graded", value=0.25),
        Metric(step=1, seconds=2.5, name="entropy", population="targets", value=1.0),
        Metric(step=2, seconds=5.0, name="reward", population="graded", value=0.5),
    ]
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_a_step_that_is_taken_again_replaces_itself_and_what_followed(tmp_path):
    for step, value in ((1, 0.1), (2, 0.2), (3, 0.3), (2, 0.4)):
        record(tmp_path, step, step, {"reward/graded": value})
    assert [(each.step, each.value) for each in read(tmp_path)] == [(1, 0.1), (2, 0.4)]


def test_a_figure_that_is_no_number_is_absent_and_not_dropped(tmp_path):
    record(tmp_path, 1, 1.0, {"loss/trained": math.nan})
    assert [each.value for each in read(tmp_path)] == [None]
    assert pq.read_table(tmp_path / FILE)["value"].null_count == 1


@pytest.mark.parametrize("name", ["reward", "reward/everyone", "cleverness/graded", "reward/graded/right"])
def test_a_figure_that_nobody_described_is_refused(tmp_path, name):
    assert undescribed([name, "reward/graded"]) == [name]
    with pytest.raises(MetricError, match="nobody said what it means"):
        record(tmp_path, 1, 1.0, {name: 1.0})
    assert not (tmp_path / FILE).exists()


def test_the_table_has_a_line_for_each():
    lines = describe().splitlines()
    assert len(lines) == 2 + len(METRICS_OF) + len(POPULATIONS)
    assert {line.count("|") - line.count("\\|") for line in lines} == {4}
