import time

import pytest

from pipeline.grading import final_answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<answer>Niger</answer>", "Niger"),
        ("<answer>Chad</answer> no, <answer>Niger</answer>", "Niger"),
        ("<answer>Chad</answer> or <answer>Niger</answer>", "Chad or Niger"),
        ("<answer>Chad</answer> and then <answer>Niger", "Chad"),
        (r"first \boxed{8}, then \boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{\boxed{6}}", "6"),
        (r"$\boxed{41}$ $\boxed{42}$", "41 ; 42"),
        (r"\boxed{42} \boxed{42}", "42"),
        ("<answer>Chad</answer>\n<answer>Niger</answer>", "Chad ; Niger"),
        (r"It is not \boxed{42}", "not 42"),
        ("The answer is:\n\n42", "42"),
        (r"not equal to $\boxed{42}$", "not 42"),
        (r"x \neq \boxed{42}", "not 42"),
        (r"It cannot be \boxed{42}", "not 42"),
        ("It is not hard: <answer>42</answer>", "42"),
        ("The answer is 42. Actually, no, it is 43.", "42. Actually, no, it is 43"),
        ("The answer is 42.\nWait, it is 43.", "42.\nWait, it is 43"),
        (r"\boxed{42}. No wait, 43.", "42. No wait, 43"),
        ("<answer>42</answer> is wrong", "42 is wrong"),
        ("The answer is 42. Note that 43 is wrong.", "42"),
        ("The answer is 42. No further steps are needed.", "42"),
        ("<answer>42", "<answer>42"),
        ("<answer>42</answer> <answer> </answer>", "42"),
        ("<answer>The answer is 42.</answer>", "42"),
        ("**Final Answer**\n\n42", "42"),
        ("**Answer:** *42*", "42"),
        ("Final answer:\n\\[\n42\n\\]", "42"),
        ("Answer:\n```text\n42\n```", "42"),
        ("Answer: 3*x**2 - 2*x**3", "3*x**2 - 2*x**3"),
        ("Answer: **x**2**", "x**2"),
        ("The answer is “42”.", "42"),
        ("The Final: Part Two", "Part Two"),
        ("<answer>The Final: Part Two</answer>", "The Final: Part Two"),
        ("The answer is 42\u200b", "42"),
        ("I think so. The answer is 12. That is all.", "12"),
        ("The answer is St. Louis.", "St. Louis"),
        ("The answer is J. S. Bach.", "J. S. Bach"),
        ("The final answer is: 3.5", "3.5"),
        ("12 + 3 = 15\n#### 15", "15"),
        ("Answer: 12\nWait.\nAnswer: 13", "13"),
        ("Niger", "Niger"),
        ("$42$", "42"),
        ("A long remark that goes on and on, with no commitment to anything at all, whatever you may ask of it.", None),
        ("line one\nline two", None),
        ("", None),
    ],
)
def test_the_answer_a_text_ends_on_is_read(text: str, answer: str | None) -> None:
    assert final_answer(text) == answer


@pytest.mark.parametrize(
    "unit",
    [
        "<answer>",
        "\\boxed{",
        "{",
        "the answer is ",
        "\\",
        "</answer>",
        "**",
        ".",
        "<answer></answer>,,,,,",
        " *a",
        "_a_ ",
        "```\n",
        "answer\n",
        "(“",
    ],
)
def test_reading_takes_linear_time_on_hostile_repetition(unit: str) -> None:
    started = time.process_time()
    final_answer(unit * 50_000)
    assert time.process_time() - started < 3
