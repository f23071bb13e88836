"""Every figure of a run is described, named with its population, and comes in the order of steps."""

import ast
import math
from pathlib import Path

import pytest

from rl.train.metrics import METRICS_OF, POPULATIONS, MetricError, tabled, undescribed
from schemas.measured import Metric

ROOT = Path(__file__).resolve().parents[3] / "rl"


def test_figures_are_split_into_name_and_population_and_time_adds_up():
    steps = [(1, 2.5, {"reward/valid": 0.25, "entropy/targets": 1}), (2, 5.0, {"reward/valid": 0.5})]
    assert tabled(steps) == [
        Metric(step=1, seconds=2.5, name="reward", population="valid", value=0.25),
        Metric(step=1, seconds=2.5, name="entropy", population="targets", value=1.0),
        Metric(step=2, seconds=7.5, name="reward", population="valid", value=0.5),
    ]


def test_a_figure_that_is_no_number_is_absent_and_not_dropped():
    assert [each.value for each in tabled([(1, 1.0, {"loss/trained": math.nan})])] == [None]


@pytest.mark.parametrize("name", ["reward", "reward/everyone", "cleverness/valid", "reward/valid/right"])
def test_a_figure_that_nobody_described_is_refused(name):
    assert undescribed([name, "reward/valid"]) == [name]
    with pytest.raises(MetricError, match="nobody said what it means"):
        tabled([(1, 1.0, {name: 1.0})])


def named_in_the_code() -> set[str]:
    """Keys of dicts and of assignments that look like a metric's name; what is filled in at run time is a `*`."""
    found = set()
    for path in (*ROOT.glob("learn/*.py"), *ROOT.glob("train/*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            keys = node.keys if isinstance(node, ast.Dict) else []
            keys += [node.slice] if isinstance(node, ast.Subscript) else []
            for key in keys:
                parts = key.values if isinstance(key, ast.JoinedStr) else [key]
                text = "".join(part.value if isinstance(part, ast.Constant) else "*" for part in parts if is_text(part))
                found |= {text} if text.count("/") == 1 else set()
    return found


def is_text(part: ast.AST) -> bool:
    return isinstance(part, ast.FormattedValue) or (isinstance(part, ast.Constant) and isinstance(part.value, str))


def test_every_figure_in_the_code_is_described_and_every_description_has_a_figure():
    names = named_in_the_code()
    assert not [
        name for name in names if name.split("/")[0] not in METRICS_OF or name.split("/")[1] not in {*POPULATIONS, "*"}
    ]
    assert {name.split("/")[0] for name in names} == set(METRICS_OF)
