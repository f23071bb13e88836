"""Polynomials: values, derivatives and products; one solver is sympy, the other evaluates and interpolates."""

from fractions import Fraction
from random import Random
from typing import Any

import sympy as sp  # type: ignore[import-untyped]

from pipeline.families.math.templates.base import (
    Parameters,
    Template,
    expression,
    is_small,
    misses,
    number,
    signed,
    term,
)
from schemas.answer import AnswerSpec
from schemas.task import NearMiss

_X = sp.Symbol("x")


def _draw_polynomial(rng: Random) -> Parameters:
    if is_small(rng):
        return {"coefficients": [rng.randint(1, 5), rng.randint(1, 12), rng.randint(1, 9)]}
    signed_digit = [v for v in range(-9, 10) if v]
    return {"coefficients": [rng.randint(1, 5), *(rng.choice(signed_digit) for _ in range(rng.choice((2, 3))))]}


def _shown(coefficients: list[int]) -> str:
    degree = len(coefficients) - 1
    powers = ["" if n == 0 else "x" if n == 1 else f"x^{n}" for n in range(degree, -1, -1)]
    first, *rest = zip(coefficients, powers, strict=True)
    return term(*first) + "".join(signed(c, power) for c, power in rest)


def _ask_derivative(p: Parameters, rng: Random) -> str:
    f = _shown(p["coefficients"])
    return rng.choice(
        (f"Differentiate f(x) = {f} with respect to x.", f"What is the derivative of {f} with respect to x?")
    )


def _polynomial(coefficients: list[int]) -> Any:
    return sp.Poly(coefficients, _X).as_expr()


def _derivative(p: Parameters) -> AnswerSpec:
    return expression(sp.expand(sp.diff(_polynomial(p["coefficients"]), _X)), "x")


def _derivative_by_interpolation(p: Parameters) -> AnswerSpec:
    """Exact central differences of a polynomial of degree three at most, interpolated through three points."""

    def f(x: Fraction) -> Fraction:
        return Fraction(sum(c * x ** (len(p["coefficients"]) - 1 - i) for i, c in enumerate(p["coefficients"])))

    def slope(x: int) -> Fraction:
        h1, h2 = Fraction(1), Fraction(1, 2)
        coarse, fine = ((f(x + h) - f(x - h)) / (2 * h) for h in (h1, h2))
        return (4 * fine - coarse) / 3  # Richardson: exact through degree four

    return expression(sp.expand(sp.interpolate([(x, sp.Rational(str(slope(x)))) for x in range(3)], _X)), "x")


def _work_derivative(p: Parameters) -> list[str]:
    degree = len(p["coefficients"]) - 1
    return [
        f"{term(c, f'x^{n}' if n > 1 else 'x')} -> {_shown([c * n] + [0] * (n - 1))}"
        for c, n in zip(p["coefficients"], range(degree, 0, -1), strict=False)
    ]


def _slip_derivative(p: Parameters) -> list[NearMiss]:
    right = sp.diff(_polynomial(p["coefficients"]), _X)
    return misses(
        sp.expand(right),
        (sp.expand(right + 1), "a constant too many"),
        (sp.expand(-right), "wrong sign"),
        (sp.expand(_polynomial(p["coefficients"])), "not differentiated"),
    )


def _draw_value(rng: Random) -> Parameters:
    small = is_small(rng)
    b, x = rng.choice((-1, 1)) * rng.randint(2, 6 if small else 20), rng.randint(3, 9 if small else 15)
    return {"coefficients": [1, abs(b) if small else b, rng.randint(1, 20 if small else 90)], "at": x}


def _ask_value(p: Parameters, rng: Random) -> str:
    f, x = _shown(p["coefficients"]), p["at"]
    return rng.choice((f"What is {f} at x = {x}?", f"If f(x) = {f}, what is f({x})?", f"Evaluate {f} for x = {x}."))


def _value(p: Parameters) -> AnswerSpec:
    a, b, c = p["coefficients"]
    x = p["at"]
    return number((a * x + b) * x + c)


def _value_by_substitution(p: Parameters) -> AnswerSpec:
    return number(int(_polynomial(p["coefficients"]).subs(_X, p["at"])))


def _work_value(p: Parameters) -> list[str]:
    (a, b, c), x = p["coefficients"], p["at"]
    square = x * x
    lines = [f"{x} * {x} = {square}"]
    if a != 1:
        lines.append(f"{a} * {square} = {a * square}")
    lines.append(f"{abs(b)} * {x} = {abs(b) * x}")
    partial = a * square + b * x
    lines.append(f"{a * square} {'+' if b > 0 else '-'} {abs(b) * x} = {partial}")
    return [*lines, f"{partial} {'+' if c > 0 else '-'} {abs(c)} = {partial + c}"] if c else lines


def _slip_value(p: Parameters) -> list[NearMiss]:
    (a, b, c), x = p["coefficients"], p["at"]
    right = a * x * x + b * x + c
    return misses(
        right,
        (right - c, "constant forgotten"),
        (2 * a * x + b * x + c, "doubled instead of squared"),
        (right + 1, "off by one"),
    )


def _draw_product(rng: Random) -> Parameters:
    if is_small(rng):
        return {"factors": [[1, rng.randint(1, 9)] for _ in "ab"]}
    return {"factors": [[rng.randint(1, 5), rng.choice((-1, 1)) * rng.randint(1, 9)] for _ in "ab"]}


def _ask_product(p: Parameters, rng: Random) -> str:
    (a, b), (c, d) = p["factors"]
    product = f"({term(a, 'x')}{signed(b)})({term(c, 'x')}{signed(d)})"
    return rng.choice((f"Expand {product}.", f"Write {product} as a polynomial in x without brackets."))


def _product(p: Parameters) -> AnswerSpec:
    (a, b), (c, d) = p["factors"]
    return expression(sp.expand((a * _X + b) * (c * _X + d)), "x")


def _product_by_points(p: Parameters) -> AnswerSpec:
    (a, b), (c, d) = p["factors"]
    return expression(sp.expand(sp.interpolate([(x, (a * x + b) * (c * x + d)) for x in (-1, 0, 1)], _X)), "x")


def _work_product(p: Parameters) -> list[str]:
    (a, b), (c, d) = p["factors"]
    return [f"x^2: {a} * {c} = {a * c}", f"x: {a} * {d} + {b} * {c} = {a * d + b * c}", f"1: {b} * {d} = {b * d}"]


def _slip_product(p: Parameters) -> list[NearMiss]:
    (a, b), (c, d) = p["factors"]
    right = _shown_product(a * c, a * d + b * c, b * d)
    return misses(
        right,
        (_shown_product(a * c, a * d + b * c, -b * d), "wrong sign"),
        (_shown_product(a * c, 0, b * d), "outer and inner products forgotten"),
        (_shown_product(a * c, a * d + b * c + 1, b * d), "off by one"),
    )


def _shown_product(a: int, b: int, c: int) -> str:
    return f"{term(a, 'x^2')}{signed(b, 'x')}{signed(c)}"


TEMPLATES = (
    Template(
        "polynomial_value", "algebra", _draw_value, _ask_value, _value, _value_by_substitution, _work_value, _slip_value
    ),
    Template(
        "derivative",
        "algebra",
        _draw_polynomial,
        _ask_derivative,
        _derivative,
        _derivative_by_interpolation,
        _work_derivative,
        _slip_derivative,
        share=4,
    ),
    Template(
        "expand_product",
        "algebra",
        _draw_product,
        _ask_product,
        _product,
        _product_by_points,
        _work_product,
        _slip_product,
    ),
)
