import json
from pathlib import Path

import pytest

from bench.figures import Figure, report


@pytest.mark.parametrize(
    ("value", "goal", "line"),
    [
        (14.5, "< 15 ms", "figure call_ms 14.5 goal <15_ms met"),
        (15.0, "< 15 ms", "figure call_ms 15 goal <15_ms short"),
        (3.0, ">= 3", "figure call_ms 3 goal >=3 met"),
        (1.0, "== 0", "figure call_ms 1 goal ==0 short"),
    ],
)
def test_a_figure_says_whether_its_goal_is_met(value: float, goal: str, line: str) -> None:
    assert str(Figure("call_ms", value, goal)) == line


def test_a_report_is_printed_and_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOUCHSTONE_STORE", str(tmp_path))
    report("env", [Figure("escapes", 0, "== 0")])
    assert capsys.readouterr().out == "figure escapes 0 goal ==0 met\n"
    stored = json.loads((tmp_path / "bench" / "env.json").read_text())
    assert stored == [{"name": "escapes", "value": 0, "goal": "== 0", "met": True}]
