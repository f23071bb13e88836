"""Graded cases as data. A line of `cases.jsonl` is a gold, a text, the verdict that the text deserves, and why it is there."""

from collections import Counter
from pathlib import Path

import pytest

from pipeline.grading import Verdict, grade
from pipeline.grading.cases import Case, read_cases

CASES = read_cases(Path(__file__).with_name("cases.jsonl"))
KINDS = ("entity", "number", "date", "expression", "set", "multiset", "tuple", "interval", "code", "text")


def kind(case: Case) -> str:
    return case.spec.shape if case.spec.kind == "collection" else case.spec.kind


@pytest.mark.parametrize("case", [pytest.param(c, id=f"{n}: {kind(c)}: {c.why}") for n, c in enumerate(CASES, 1)])
def test_a_text_gets_the_verdict_it_deserves(case: Case) -> None:
    assert grade(case.spec, case.text).verdict is case.verdict


def test_every_kind_has_its_share_of_right_and_of_wrong_texts() -> None:
    found = Counter((kind(case), case.verdict) for case in CASES)
    assert {kind for kind, _ in found} == set(KINDS)
    assert all(min(found[kind, Verdict.RIGHT], found[kind, Verdict.WRONG]) >= 15 for kind in KINDS)


def test_every_case_is_there_once_and_says_why() -> None:
    assert max(Counter((case.spec, case.text) for case in CASES).values()) == 1
    assert all(case.why and case.verdict for case in CASES)
