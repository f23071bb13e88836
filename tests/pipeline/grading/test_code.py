"""Code is judged by what it gives, and by nothing that it says."""

import asyncio

import pytest

from bench.attacks import FORGERIES
from pipeline.grading import Grade, Verdict, agrade, code, grade
from pipeline.grading.code import candidate, same
from schemas.answer import CodeAnswer, canonical_answer

ADD = CodeAnswer(entry="add", cases=(("[1, 2]", "3"), ('["a", "b"]', '"ab"'), ("[[1], [2]]", "[1, 2]")))
RIGHT = "def add(a, b):\n    return a + b"


def test_the_canonical_answer_is_right() -> None:
    assert grade(ADD, canonical_answer(ADD)).verdict is Verdict.RIGHT


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no_code"),
        ("the answer is 3", "no_code"),
        ("```python\n\n```", "no_code"),
        ("def add(a, b) return a + b", "syntax_error"),
        ("```python\nadd(a, b) -> a + b =\n```", "syntax_error"),
        ("def add(a, b): return a # \ud800", "syntax_error"),
        ("def plus(a, b): return a + b", "no_function"),
        ("add = 3", "no_function"),
        ("def add(a, b): raise SyntaxError", "error"),
        ("def add(a): return a", "error"),
        ("def add(a, b): return a + b if a != 'a' else 'ba'", "other_value"),
        ("def add(a, b): return True if a == 1 else a + b", "other_value"),
        ("import numpy as np\ndef add(a, b): return np.int64(3)", "not_plain"),
        ("def add(a, b): return {1, 2}", "not_plain"),
        ("def add(a, b):\n    x = []; x.append(x); return x", "not_plain"),
        ("def add(a, b): return 10 ** 5000", "not_plain"),
        ("def add(a, b): return 'x' * 10_000_000", "not_plain"),
        ("import os\nos._exit(0)", "crashed"),
        ("def add(a, b): return bytearray(8 << 30)", "memory_limit"),
        ("import os\nwhile True: os.fork()", "process_limit"),
        ("while True: print('x' * 1000)", "output_limit"),
    ],
)
def test_a_function_that_does_not_is_wrong_and_why_is_said(text: str, reason: str) -> None:
    assert grade(ADD, text) == Grade(verdict=Verdict.WRONG, reason=reason)


@pytest.mark.parametrize("trick", FORGERIES)
def test_no_trick_makes_a_wrong_function_right(trick: str) -> None:
    assert grade(ADD, FORGERIES[trick]).verdict is Verdict.WRONG


def test_code_that_takes_too_long_is_wrong_and_not_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "SECONDS", 0.3)
    assert grade(ADD, "def add(a, b): return sum(range(10 ** 10))") == Grade(verdict=Verdict.WRONG, reason="timeout")


def test_a_machine_without_isolation_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unisolated:
        def __init__(self, pool: int) -> None:
            pass

        async def __aenter__(self) -> None:
            raise code.NoIsolation("no program bwrap")

    monkeypatch.setattr(code, "Sandbox", Unisolated)
    code.CODE.close()
    assert grade(ADD, RIGHT) == Grade(verdict=Verdict.UNDECIDED, reason="no_isolation")
    monkeypatch.undo()
    assert grade(ADD, RIGHT).verdict is Verdict.RIGHT


async def test_many_are_judged_at_once_off_the_event_loop() -> None:
    texts = [RIGHT, "def add(a, b): return 0"] * 6
    found = await asyncio.gather(*(agrade(ADD, text) for text in texts))
    assert [g.verdict for g in found] == [Verdict.RIGHT, Verdict.WRONG] * 6


@pytest.mark.parametrize(
    ("value", "expected", "verdict"),
    [
        (2, 2.0, True), (0.1 + 0.2, 0.3, True), (0.3000001, 0.3, False), (True, 1, False), (1, True, False), (False, False, True),
        (float("nan"), float("nan"), True), (10**400, 1.5, False), ([1, [2]], [1, [2]], True), ([1], [1, 2], False), ("1", 1, False),
        ({"a": [1.0]}, {"a": [1]}, True), ({"a": 1}, {"a": 1, "b": 2}, False), (None, False, False), (None, None, True), ([], {}, False),
        (2**60 + 1, 2**60, False), (10.0**10 + 1, 10**10, False), (1000000006.5, 1000000007, False), (1e10, 10**10, True),
        (float(2**60), 2**60 + 1, False), (1e-17, 0.0, True), (1e-9, 0.0, False), (1e-17, 0, False), (0.0, 6.6e-34, False),
        (10**10 + 1, 1e10, True), (float("inf"), 10**400, False), (float("nan"), 1, False),
    ],
)  # fmt: skip
def test_values_are_equal_as_json_has_them(value: object, expected: object, verdict: bool) -> None:
    assert same(value, expected) is verdict


def test_the_candidate_is_the_last_block_that_is_closed() -> None:
    assert candidate("a\n```py\nx = 1\n```\nb\n```\ny\n```\nc") == "y\n"
    assert candidate("```\nx\n```\n```python\ncut sho") == "x\n"
    assert candidate("x = 1") == "x = 1"
    assert candidate('````\nx = """\n```\n"""\n````\n') == 'x = """\n```\n"""\n'
