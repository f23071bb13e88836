"""Whatever the text and the gold: a grade, never an exception; and no writing of a near-miss makes it right."""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.families import FAMILIES, generator
from pipeline.families.math import TEMPLATES
from pipeline.grading import Grade, Verdict, grade
from schemas.answer import AnswerSpec, CollectionAnswer, DateAnswer, NumberAnswer, TextAnswer, canonical_answer
from schemas.config import CurateConfig, HardSearchConfig
from schemas.task import Task
from tests.schemas import strategies
from tests.worlds import toy_world

WRITINGS = (
    "<answer>{}</answer>",
    "<answer>The answer is {}.</answer>",
    "Some steps first.\nAnswer: {}",
    "So 1 + 1 = 2.\nThe final answer is: **{}**.",
    "**Final Answer**\n\n{}",
    "Maybe <answer>nothing</answer>? Better: <answer>\n{}\n</answer>\nThat is correct.",
    "\\boxed{{{}}}",
    "$$\\boxed{{\\boxed{{{}}}}}$$ I hope it is correct.",
    "Answer:\n```\n{}\n```",
    'The answer is "{}".',
)
FRAGMENTS = (
    "<answer>", "</answer>", "\\boxed{", "}", "{", "\\frac", "\\sqrt", "(", ")", "[", "]", "|", "!", "=", "<", ">=", "^", "**", "*", "/",
    "-", "+", "±", "\\pm ", ",", ";", " and ", " or ", "not ", "x", "y", "\\in ", "oo", "\\infty", "0", "1", "42", ".", "%", "$", "\\$",
    " km", "^2", "²", "½", "\\text{", "March ", "1987", "BC", "The answer is ", "Answer: ", "####", "\n", " ", "**", "_", "`", "\u200b",
    "\x00", "\ud800", "sin ", "ln", "e", "i", "pi", "1e9", "actually", "no, ", "∅", "٤",
)  # fmt: skip
texts = st.text(max_size=40) | st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join)
whole = st.integers(-(10**6), 10**6)
fractions = st.fractions(max_denominator=1000).map(str)
typed = st.one_of(
    st.builds(
        NumberAnswer, value=fractions, unit=st.sampled_from([None, "km", "%", "percent", "dollars", "apples", "km/h"])
    ),
    st.dates().map(lambda day: DateAnswer(value=day.isoformat())),
    st.builds(
        CollectionAnswer,
        shape=st.sampled_from(["set", "multiset", "tuple"]),
        items=st.lists(whole.map(str) | fractions, max_size=4).map(tuple),
    ),
    st.builds(
        CollectionAnswer,
        shape=st.just("interval"),
        items=st.tuples(fractions, st.just("oo") | fractions),
        closed=st.tuples(st.booleans(), st.booleans()),
    ),
    st.builds(TextAnswer, value=st.from_regex(r"[a-z]{3}(, [0-9]{3}| [a-z]{3}){0,3}", fullmatch=True)),
)
sweep = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@sweep
@given(strategies.answers | typed, texts)
def test_any_text_gets_a_grade_for_any_gold(spec: AnswerSpec, text: str) -> None:
    assert isinstance(grade(spec, text), Grade)


@sweep
@given(typed, st.sampled_from(WRITINGS))
def test_the_canonical_answer_is_right_in_every_writing(spec: AnswerSpec, writing: str) -> None:
    assert grade(spec, writing.format(canonical_answer(spec))).verdict is Verdict.RIGHT


@sweep
@given(typed, st.sampled_from(WRITINGS), st.sampled_from(["not ", "-(", "2*", "not equal to "]))
def test_a_canonical_answer_that_is_denied_or_changed_is_not_right(spec: AnswerSpec, writing: str, before: str) -> None:
    said = canonical_answer(spec)
    if said.split()[0] != "0":
        assert grade(spec, writing.format(before + said)).verdict is not Verdict.RIGHT


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_s_near_miss_is_right_in_no_writing_and_its_answer_in_every(name: str) -> None:
    template = TEMPLATES[name]
    for i in range(2):
        parameters = template.draw(Random(f"writings/{name}/{i}"))
        gold = template.solve(parameters)
        for writing in WRITINGS:
            assert grade(gold, writing.format(canonical_answer(gold))).verdict is Verdict.RIGHT, (gold, writing)
            for slip in template.slips(parameters):
                assert grade(gold, writing.format(slip.answer)).verdict is Verdict.WRONG, (gold, slip, writing)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_s_near_miss_is_right_in_no_writing_and_its_answer_in_every(family: str) -> None:
    own = {"hard_search": HardSearchConfig(types=("country", "capital city"))} if family == "hard_search" else {}
    make = generator(CurateConfig.model_validate({"family": family, **own}), toy_world())
    tasks = [task for index in range(15) if isinstance(task := make(7, index), Task)]
    assert tasks
    for task in tasks:
        for writing in WRITINGS:
            assert grade(task.answer, writing.format(canonical_answer(task.answer))).verdict is Verdict.RIGHT
            for near in task.near_misses:
                assert grade(task.answer, writing.format(near.answer)).verdict is Verdict.WRONG, (task, near, writing)
