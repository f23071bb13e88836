"""What a terminal of 80 columns shows."""

import pytest

from flows.cli.console import draw
from flows.cli.render import funnel_table, task_panel
from schemas.certificate import Certificate, Outcome
from schemas.manifest import FunnelStep
from schemas.row import Kept
from tests.pipeline.tasks import math_task


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    return " ".join(line.strip("│ ") for line in printed.splitlines())


def test_a_long_question_is_shown_whole(capsys: pytest.CaptureFixture[str]) -> None:
    question = " ".join(f"word{i}" for i in range(60))
    certificate = Certificate(task_id="0", filter="closed_book", version="1", outcome=Outcome.KEEP)
    draw(task_panel(Kept(task=math_task(question), difficulty=()), [certificate]))
    text = shown(capsys)
    assert question in text
    assert "closed_book keep" in text


def test_the_reasons_of_a_filter_keep_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    reasons = {"too_hard_for_solver": 78, "unanchored_superlative": 2}
    step = FunnelStep(filter="closed_book", seen=200, kept=120, rejected=80, failed=0, undecided=0, reasons=reasons)
    draw(funnel_table("math", [step]))
    text = shown(capsys)
    assert "closed_book" in text and "too_hard_for_solver 78" in text and "unanchored_superlative 2" in text
