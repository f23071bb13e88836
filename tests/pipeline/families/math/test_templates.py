"""Every registered template, drawn a few hundred times: what is added later is held to the same."""

import operator
import re
from collections import Counter
from fractions import Fraction
from random import Random

import pytest

from pipeline.families.math import TEMPLATES
from pipeline.families.math.templates.gym import shown
from pipeline.grading import Verdict, grade
from schemas.answer import NumberAnswer, canonical_answer
from schemas.base import canonical_json

names = pytest.mark.parametrize("name", TEMPLATES)
DRAWS = 300
STEP = re.compile(r"(?<![\w*/+.-] )(?<![\w.^-])(-?[\d.]+) ([-+*/]) (-?[\d.]+) = (-?[\d.]+)(?![\w.]| [-+*/])")
OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


@names
def test_two_solvers_agree(name: str) -> None:
    template = TEMPLATES[name]
    for i in range(DRAWS):
        parameters = template.draw(Random(f"test/{name}/{i}"))
        first, second = template.solve(parameters), template.resolve(parameters)
        assert first == second or grade(first, canonical_answer(second)).verdict is Verdict.RIGHT, parameters


@names
def test_the_stored_answer_grades_right_and_near_misses_wrong(name: str) -> None:
    template = TEMPLATES[name]
    for i in range(40):
        parameters = template.draw(Random(f"test/{name}/{i}"))
        gold = template.solve(parameters)
        assert grade(gold, canonical_answer(gold)).verdict is Verdict.RIGHT, parameters
        slips = template.slips(parameters)
        assert len(slips) >= 2, parameters
        for slip in slips:
            assert grade(gold, slip.answer).verdict is Verdict.WRONG, (parameters, slip)


@names
def test_worked_steps_are_true_and_reach_the_answer(name: str) -> None:
    template = TEMPLATES[name]
    for i in range(40):
        parameters = template.draw(Random(f"test/{name}/{i}"))
        work = template.work(parameters)
        assert 1 <= len(work) <= 8, parameters
        assert all(len(line) < 80 and "\n" not in line for line in work)
        for a, sign, b, c in (m.groups() for line in work for m in STEP.finditer(line)):
            assert OPERATIONS[sign](Fraction(a), Fraction(b)) == Fraction(c), work
        gold = template.solve(parameters)
        if isinstance(gold, NumberAnswer) and name != "gcd":
            assert re.search(rf"[=:] {shown(Fraction(gold.value))}(?![\d.])", work[-1]), (gold, work)


@names
def test_questions_ask_one_thing_in_several_wordings_and_never_hold_the_worked_answer(name: str) -> None:
    template = TEMPLATES[name]
    for i in range(5):
        parameters = template.draw(Random(f"test/{name}/{i}"))
        assert len({template.ask(parameters, Random(j)) for j in range(40)}) >= 2
    for i in range(60):
        question = template.ask(template.draw(Random(f"test/{name}/{i}")), Random(i))
        assert question.count("?") <= 1
        assert question[0].isupper() or question[0].isdigit()
        assert "  " not in question


@names
def test_no_answer_is_right_often_enough_to_guess(name: str) -> None:
    """The most frequent of 1,000 answers: of a true share of 5 %, more than 7 % would show once in 500 times."""
    template = TEMPLATES[name]
    answers = Counter(canonical_answer(template.solve(template.draw(Random(f"guess/{name}/{i}")))) for i in range(1000))
    assert answers.most_common(1)[0][1] <= 70, answers.most_common(3)


@names
def test_parameters_are_plain_json_that_the_draw_alone_decides(name: str) -> None:
    template = TEMPLATES[name]
    once, again = (template.draw(Random(f"test/{name}/5")) for _ in "ab")
    assert canonical_json(once) == canonical_json(again)
