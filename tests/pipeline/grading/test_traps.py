"""Answers that graders elsewhere got wrong, with the verdict each deserves."""

from math import factorial

import pytest

from pipeline.grading import Verdict, grade
from schemas.answer import AnswerSpec, CollectionAnswer, DateAnswer, EntityAnswer, ExpressionAnswer, NumberAnswer


def entity(name: str, *aliases: str) -> EntityAnswer:
    return EntityAnswer(entity=f"x/{name}", name=name, aliases=aliases)


def number(value: str, unit: str | None = None, tolerance: float | None = None) -> NumberAnswer:
    return NumberAnswer(value=value, unit=unit, tolerance=tolerance)


def date(value: str) -> DateAnswer:
    return DateAnswer(value=value)


def several(shape: str, *items: str, closed: tuple[bool, bool] = (True, True)) -> CollectionAnswer:
    return CollectionAnswer.model_validate({"shape": shape, "items": items, "closed": closed})


def expression(value: str, *variables: str) -> ExpressionAnswer:
    return ExpressionAnswer(value=value, variables=variables)


Case = tuple[AnswerSpec, str, Verdict]
R, W, U = Verdict.RIGHT, Verdict.WRONG, Verdict.UNDECIDED

NAMES: list[Case] = [
    (entity("World War I"), "World War II", W),
    (entity("Austria"), "Australia", W),
    (entity("North Korea"), "South Korea", W),
    (entity("Iran"), "Iraq", W),
    (entity("3.5 million"), "3.5 billion", W),
    (entity("12 March 1879"), "14 March 1879", W),
    (entity("1989"), "1998", W),
    (entity("Louis XIV"), "Louis XVI", W),
    (entity("hyperthyroidism"), "hypothyroidism", W),
    (entity("Paris"), "Paris or London", W),
    (entity("Paris"), "not Paris", W),
    (entity("Paris"), "Paris, London", W),
    (entity("Paris"), "<answer>London</answer> or <answer>Paris</answer>", W),
    (entity("Guinea"), "Equatorial Guinea", W),
    (entity("C"), "C++", W),
    (entity("C++"), "C#", W),
    (entity("Vitamin A"), "Vitamin", W),
    (entity("Kurt Gödel"), "Kurt Godel", R),
    (entity("Łódź"), "Lodz", R),
    (entity("Côte d'Ivoire"), "cote d’ivoire", R),
    (entity("Guinea-Bissau"), "Guinea Bissau", R),
    (entity("United States", "USA", "United States of America"), "USA", R),
    (entity("United States", "USA"), "U.S.A.", R),
    (entity("Johann Sebastian Bach", "J. S. Bach"), "J.S. Bach", R),
    (entity("The Gambia"), "gambia", R),
    (entity("Niger"), "**Niger**.", R),
    (entity("Niger"), "Nigeria", W),
    (entity("D"), r"\boxed{\text{D}}", R),
    (entity("D"), r"\boxed{D: the option's text}", R),
    (entity("D"), r"\boxed{E: D was close}", W),
    (entity("D"), r"\boxed{\textbf{(D)}\ 42}", R),
    (entity("Niger"), '"Niger"', R),
    (entity("Niger"), "*Niger*", R),
    (entity("Niger"), "The answer isn't Niger.", W),
    (entity("Niger"), "The answer is Niger. No, Chad.", W),
    (entity("Niger"), "<answer>Chad</answer><answer>Niger</answer>", W),
    (entity("می‌خواهم"), "می‌خواهم", R),
    (entity("No Country for Old Men"), "The answer is No Country for Old Men.", R),
    (entity("M*A*S*H"), "Answer: M*A*S*H", R),
]

QUANTITIES: list[Case] = [
    (number("7", "m"), "7 km", W),
    (number("7", "km"), "7000 m", R),
    (number("7", "m"), "7", R),
    (number("7"), "7 km", W),
    (number("1/10"), "10%", R),
    (number("1/10"), r"10\%", R),
    (number("1/10"), "0.1", R),
    (number("1/10"), "10", W),
    (number("10", "%"), "10%", R),
    (number("10", "%"), "0.1", R),
    (number("10", "%"), "10", W),
    (number("10", "percent"), "10", R),
    (number("10", "percent"), "10%", R),
    (number("10", "percent"), "10 percent", R),
    (number("10", "percent"), "0.1", W),
    (number("31", "dollars"), "$31.00", R),
    (number("31", "dollars"), "€31", W),
    (number("31", "dollars"), "3100 cents", R),
    (number("3500000"), "3.5 million", R),
    (number("3500000"), "3.5 billion", W),
    (number("1234"), "1,234", R),
    (number("1234"), "1.234", W),
    (number("12"), "1,2", W),
    (number("5/4"), "1 1/4", R),
    (number("5/4"), "1¼", R),
    (number("5/4"), r"\frac{5}{4}", R),
    (number("5/4"), "1.25", R),
    (number("1/3"), "0.333", W),
    (number("1/3", tolerance=0.01), "about 0.333", R),
    (number("42"), "４２", R),
    (number("-3"), "−3", R),
    (number("3"), "-3", W),
    (number("12"), "12 apples", W),
    (number("12", "apples"), "12 apples", R),
    (number("12", "apples"), "12 oranges", W),
    (number("60", "km/h"), "60 kilometers per hour", R),
    (number("2", "hours"), "120 minutes", R),
    (number("20", "km²"), "20 km^2", R),
    (number("20", "km²"), "20 square kilometres", R),
    (number("20", "km²"), "20 km", W),
    (number("1500"), "1.5 × 10^3", R),
    (number("1500"), "1.5e3", R),
    (number("6"), "x = 6", R),
    (number("42"), r"\frac{84}2", R),
    (number("1/2"), r"\frac12", R),
    (number("2"), r"\frac84", R),
    (number("7/3"), r"\cfrac{7}{3}", R),
    (number("7/3"), r"2\frac{1}{3}", R),
    (number("2/3"), r"2\frac{1}{3}", W),
    (number("1000"), "10^3", R),
    (number("10"), "10^3", W),
    (number("1000"), "1{,}000", R),
    (number("30", "degrees"), r"30^{\circ}", R),
    (number("42"), '"42"', R),
    (number("42"), "4\u200b2", R),
    (number("42", "dollars"), r"\$42", R),
    (number("42"), r"\$42", W),
    (number("42"), "~42", W),
    (number("5"), "5~m", W),
    (number("5", "m"), "5~m", R),
    (number("2", "km"), r"\sqrt{4}", R),
    (number("50", "%"), r"\sqrt{1/4}", R),
    (number("42"), "The answer is not 42, it is 41", W),
    (number("42"), "The answer is 41 or 42.", W),
    (number("42"), "41, 42", W),
    (number("5"), r"5\sqrt(3)", W),
    (number("5"), r"\sqrt{25}", R),
    (number("61"), "4 * 61 + 61 = 305\nFinal: **61**", R),
    (number("305"), "4 * 61 + 61 = 305\nFinal: **61**", W),
]

BOXES: list[Case] = [
    (number("6"), r"\boxed{8} hmm, actually \boxed{6}", R),
    (number("8"), r"\boxed{8} hmm, actually \boxed{6}", W),
    (number("510"), r"So \boxed{510}. Checking again. Final: \boxed{510}", R),
    (number("1/2"), r"\boxed{\frac{1}{2}}", R),
    (number("42"), r"\boxed{41} or \boxed{42}", W),
    (number("41"), r"\boxed{41} or \boxed{42}", W),
    (several("set", "41", "42"), r"\boxed{41} and \boxed{42}", R),
    (number("6"), r"\boxed{6} and then \boxed{8", R),
    (number("6"), r"<answer>\boxed{6}</answer>", R),
    (number("42"), r"\boxed{\boxed{42}}", R),
    (number("42"), "The answer is:\n\n42", R),
    (number("42"), "Final answer:\n\\[42\\]", R),
    (number("42"), r"not \boxed{42}", W),
    (number("42"), r"answer is not \boxed{42}", W),
    (number("42"), "The answer is 42. Actually, no, it is 43.", W),
    (number("42"), "The answer is 42.\n\nWait, that is wrong. It is 43.", W),
    (number("42"), r"\boxed{42}. No wait, the answer is 43.", W),
    (number("42"), r"\boxed{42} is wrong", W),
    (number("42"), r"\boxed{42}. That is correct.", R),
    (number("42"), "The answer is 42. No further steps are needed.", R),
    (number("42"), r"\boxed{43} \boxed{42}", W),
    (number("1234"), r"\boxed{1} \boxed{234}", W),
    (number("3/2"), r"\boxed{1} \boxed{1/2}", W),
    (number("42"), "<answer>43</answer> <answer>42</answer>", W),
    (number("42"), "<answer>42", W),
    (number("6"), r"<answer>6</answer> though \boxed{7} tempts", R),
]

TINY: list[Case] = [
    (number(f"1/{3**80}"), "1/3^79", W),
    (number(f"1/{3**80}"), "1/3^80", R),
    (number(f"1/{factorial(1500)}"), "1/1502!", W),
    (number(f"1/{factorial(1500)}"), "1/1500!", R),
    (number("0.0000001"), "0.0000002", W),
]

SHAPES: list[Case] = [
    (several("interval", "0", "4", closed=(False, False)), "{0,4}", W),
    (several("interval", "2", "oo", closed=(False, False)), "x > 2", R),
    (several("interval", "2", "oo", closed=(False, False)), r"(2,\infty)", R),
    (several("interval", "2", "oo"), "x >= 2", R),
    (several("interval", "2", "oo", closed=(False, False)), "x ≥ 2", W),
    (several("interval", "-oo", "3", closed=(False, False)), "x<3", R),
    (several("interval", "-oo", "3", closed=(False, False)), r"(-\infty, 3)", R),
    (several("interval", "1", "2", closed=(True, False)), "(1,2)", W),
    (several("interval", "1", "2", closed=(True, False)), "1 <= x < 2", R),
    (several("interval", "1", "2", closed=(True, False)), "2 > x >= 1", R),
    (several("tuple", "1", "2"), "(2,1)", W),
    (several("tuple", "1", "2"), "(1, 2)", R),
    (several("tuple", "1", "2"), "{1,2}", W),
    (several("tuple", "1", "2"), "x = 1, y = 2", R),
    (several("tuple", "1", "2"), "y = 1, x = 2", W),
    (several("set", "1", "2"), "{2,1}", R),
    (several("set", "1", "2"), "(1,2)", W),
    (several("set", "1", "2"), "x = 1 or x = 2", R),
    (several("set", "1", "2"), "1 or 2", W),
    (several("set", "1", "2"), r"x \in \{1,2\}", R),
    (several("set", "-2", "2"), r"x = \pm 2", R),
    (several("set", "2"), "±2", W),
    (several("set"), r"\emptyset", R),
    (several("set", "0"), r"\emptyset", W),
    (several("tuple", "1", "2"), "(x, y) = (1, 2)", R),
    (several("tuple", "1", "2"), "(y, x) = (1, 2)", W),
    (several("tuple", "1", "2"), "(1,2) or (2,1)", W),
    (several("interval", "1", "2"), "[1,2] or [3,4]", W),
    (several("interval", "1/2", "2"), r"[\frac12, 2]", R),
    (several("set", "1331", "1728"), "1728", W),
    (several("set", "2", "3", "4"), "n = 1,2,3", W),
    (several("set", "1/2", "2"), r"\left\{2, \frac{1}{2}\right\}", R),
    (several("multiset", "1", "1", "2"), "1, 2, 1", R),
    (several("multiset", "1", "1", "2"), "1, 2, 2", W),
    (several("set", "-5**(1/2)", "5**(1/2)"), r"\sqrt{5} and -\sqrt{5}", R),
]

ALGEBRA: list[Case] = [
    (expression("2*x-1*y+5=0", "x", "y"), "2x + 7y + 9=0", W),
    (expression("2*x-1*y+5=0", "x", "y"), "y = 2x + 5", R),
    (expression("2*x-1*y+5=0", "x", "y"), "-4x + 2y = 10", R),
    (expression("2*x-1*y+5=0", "x", "y"), "0 = 0", W),
    (expression("(x+1)**2", "x"), "x^2 + 2x + 1", R),
    (expression("(x+1)**2", "x"), "x^2 + 2x", W),
    (expression("(x+1)**2", "x"), "f(x) = x² + 2x + 1", R),
    (expression("6*x+2", "x"), "y' = 6x + 2", R),
    (expression("6*x+2", "x"), "6x + 2 + C", W),
    (expression("1", "x"), r"\sin^2 x + \cos^2 x", R),
    (expression("x**2/2", "x"), r"\frac{1}{2}x^{2}", R),
    (expression("x*y", "x", "y"), "xy", R),
    (expression("x", "x"), "x; import os", W),
    (expression("3*x**2 - 4*x", "x"), "Answer: 3*x**2 - 4*x", R),
    (expression("3*x**2", "x"), "Answer: 3*x*2", W),
    (expression("6*x+2", "x"), r"\frac{dy}{dx} = 6x + 2", R),
    (expression("x/y", "x", "y"), r"\frac xy", R),
    (expression("x_1+x_2", "x_1", "x_2"), "x_{1}+x_{2}", R),
    (expression("x**2", "x"), "not x^2", W),
]


DATES: list[Case] = [
    (date("1987-03-12"), "12 March 1987", R),
    (date("1987-03-12"), "The answer is March 12th, 1987.", R),
    (date("1987-03-12"), "1987-3-12", R),
    (date("1987-03-12"), "12-Mar-1987", R),
    (date("1987-03-12"), r"\boxed{\text{March 12, 1987}}", R),
    (date("1987-03-12"), "12/03/1987", U),
    (date("1987-03-12"), "13/03/1987", W),
    (date("1987-03-12"), "14 March 1987", W),
    (date("1987-03-12"), "March 1987", W),
    (date("1987-03-12"), "not 12 March 1987", W),
    (date("1987-03-12"), "12 or 13 March 1987", W),
    (date("1987"), "c. 1987", W),
    (date("1987"), "1987 BC", W),
    (date("-0043"), "29 February 44 BC", W),
    (date("-0043-03-15"), "15 March 44 BC", R),
]

BROKEN_GOLDS: list[Case] = [
    (expression("2*", "x"), "2", U),
    (expression("t**2", "x"), "t^2", U),
    (expression("x = y = 1", "x", "y"), "x = 1", U),
    (several("set", "1", "2+"), "3", U),
    (several("interval", "a", "2"), "[1,2]", U),
]

DEEP: list[Case] = [
    (number("7"), "\\boxed{" + unit * 400 + "7}", W) for unit in ("(", "-", "\\sin ", "\\frac", "√", "2^", "|")
]


@pytest.mark.parametrize(
    ("spec", "text", "verdict"),
    [*NAMES, *QUANTITIES, *BOXES, *TINY, *SHAPES, *ALGEBRA, *DATES, *BROKEN_GOLDS, *DEEP],
)
def test_a_known_trap_gets_the_verdict_it_deserves(spec: AnswerSpec, text: str, verdict: Verdict) -> None:
    assert grade(spec, text).verdict is verdict
