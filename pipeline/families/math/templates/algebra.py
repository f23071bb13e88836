"""Equations and inequalities; one solver is algebra, the other searches."""

import operator
from fractions import Fraction
from random import Random

import sympy as sp  # type: ignore[import-untyped]

from pipeline.families.math.templates.base import (
    Parameters,
    Template,
    is_small,
    misses,
    number,
    numbers,
    signed,
    term,
)
from schemas.answer import AnswerSpec, CollectionAnswer
from schemas.task import NearMiss

_X = sp.Symbol("x")


def _draw_linear(rng: Random) -> Parameters:
    small = is_small(rng)
    a, x = rng.randint(2, 9), rng.randint(2, 30) if small else rng.choice((1, -1)) * rng.randint(2, 60)
    b = rng.choice((1, -1)) * rng.randint(1, 9 if small else 40)
    return {"left": [a, b], "right": [0, a * x + b]}


def _draw_both_sides(rng: Random) -> Parameters:
    small = is_small(rng)
    a, x = rng.randint(3, 9), rng.randint(2, 25) if small else rng.choice((1, -1)) * rng.randint(2, 60)
    c = rng.randint(1, a - 2) if small else -rng.randint(2, 9)
    b = rng.choice((1, -1)) * rng.randint(1, 9 if small else 40)
    return {"left": [a, b], "right": [c, (a - c) * x + b]}


def _ask_linear(p: Parameters, rng: Random) -> str:
    (a, b), (c, d) = p["left"], p["right"]
    right = f"{term(c, 'x')}{signed(d)}" if c else str(d)
    equation = f"{term(a, 'x')}{signed(b)} = {right}"
    return rng.choice(
        (f"Solve {equation} for x.", f"Find x if {equation}.", f"What is the value of x when {equation}?")
    )


def _root(p: Parameters) -> AnswerSpec:
    (a, b), (c, d) = p["left"], p["right"]
    return number(Fraction(d - b, a - c))


def _root_by_search(p: Parameters) -> AnswerSpec:
    (a, b), (c, d) = p["left"], p["right"]
    (x,) = [x for x in range(-1000, 1001) if a * x + b == c * x + d]
    return number(x)


def _work_linear(p: Parameters) -> list[str]:
    (a, b), (c, d) = p["left"], p["right"]
    lines = []
    if c:
        lines.append(f"{term(a, 'x')}{signed(-c, 'x')} = {term(a - c, 'x')}")
    if b > 0:
        lines.append(f"{d} - {b} = {d - b}")
    else:
        lines.append(f"{d} + {-b} = {d - b}")
    if a - c != 1:
        lines.append(f"{d - b} / {a - c} = {(d - b) // (a - c)}")
    return lines


def _slip_linear(p: Parameters) -> list[NearMiss]:
    (a, b), (c, d) = p["left"], p["right"]
    x = Fraction(d - b, a - c)
    return misses(
        x,
        (Fraction(d + b, a - c), "moved with its sign"),
        (-x, "wrong sign"),
        (x + 1, "one too many"),
        (d - b, "not divided"),
    )


def _draw_system(rng: Random) -> Parameters:
    small = is_small(rng)
    y, x = sorted(rng.sample(range(1, 13 if small else 25), 2))
    return {"x": x, "y": y, "times": 1 if small else rng.choice((1, 2, 3))}


def _ask_system(p: Parameters, rng: Random) -> str:
    total, difference = _sides(p)
    system = f"{term(p['times'], 'x')} + y = {total} and x - y = {difference}"
    return rng.choice(
        (f"Solve the system {system}. Give the ordered pair (x, y).", f"Find the ordered pair (x, y) with {system}.")
    )


def _sides(p: Parameters) -> tuple[int, int]:
    return p["times"] * p["x"] + p["y"], p["x"] - p["y"]


def _system(p: Parameters) -> AnswerSpec:
    """Cramer's rule."""
    (total, difference), k = _sides(p), p["times"]
    return numbers("tuple", (Fraction(-total - difference, -k - 1), Fraction(k * difference - total, -k - 1)))


def _system_by_search(p: Parameters) -> AnswerSpec:
    """Every pair of small numbers, tried in the two equations as they are asked."""
    (total, difference), k = _sides(p), p["times"]
    (pair,) = [(x, y) for x in range(-60, 60) for y in range(-60, 60) if k * x + y == total and x - y == difference]
    return numbers("tuple", pair)


def _work_system(p: Parameters) -> list[str]:
    (total, difference), x = _sides(p), p["x"]
    both = total + difference
    return [f"{total} + {difference} = {both}", f"{both} / {p['times'] + 1} = {x}", f"{x} - {difference} = {p['y']}"]


def _slip_system(p: Parameters) -> list[NearMiss]:
    x, y = p["x"], p["y"]
    return misses(
        f"({x}, {y})", (f"({y}, {x})", "swapped"), (f"({x + 1}, {y + 1})", "off by one"), (f"({x}, {-y})", "wrong sign")
    )


def _draw_quadratic(rng: Random) -> Parameters:
    small = is_small(rng)
    r, s = rng.sample([v for v in range(-12, 13) if v and (not small or 0 < v < 10)], 2)
    return {"roots": sorted((r, s)), "lead": 1 if small else rng.choice((1, 2, 3))}


def _coefficients(p: Parameters) -> tuple[int, int, int]:
    (r, s), k = p["roots"], p["lead"]
    return k, -k * (r + s), k * r * s


def _ask_quadratic(p: Parameters, rng: Random) -> str:
    a, b, c = _coefficients(p)
    equation = f"{term(a, 'x^2')}{signed(b, 'x')}{signed(c)} = 0"
    return rng.choice((f"Find the set of real solutions of {equation}.", f"What is the solution set of {equation}?"))


def _roots(p: Parameters) -> AnswerSpec:
    a, b, c = _coefficients(p)
    return numbers("set", sorted(int(r) for r in sp.roots(a * _X**2 + b * _X + c, _X)))


def _roots_by_search(p: Parameters) -> AnswerSpec:
    a, b, c = _coefficients(p)
    return numbers("set", [x for x in range(-200, 201) if a * x * x + b * x + c == 0])


def _work_quadratic(p: Parameters) -> list[str]:
    (r, s), k = p["roots"], p["lead"]
    lines = [f"divide by {k}: x^2{signed(-(r + s), 'x')}{signed(r * s)} = 0"] if k != 1 else []
    return [*lines, f"{r} + {s} = {r + s} and {r} * {s} = {r * s}", f"x = {r} or x = {s}"]


def _slip_quadratic(p: Parameters) -> list[NearMiss]:
    r, s = p["roots"]
    right = {r, s}
    candidates = [
        ((-r, -s), "wrong signs"),
        ((r,), "one root only"),
        ((r, s + 1), "off by one"),
        ((r + 1, s), "off by one"),
    ]
    return [NearMiss(answer="{" + ", ".join(map(str, c)) + "}", why=why) for c, why in candidates if set(c) != right]


def _draw_inequality(rng: Random) -> Parameters:
    small = is_small(rng)
    a, x = rng.randint(2, 9), rng.randint(2, 40)
    b = rng.choice((-1, 1)) * rng.randint(2, 9 if small else 40)
    if not small:
        a, x = a * rng.choice((-1, 1)), x * rng.choice((-1, 1))
    return {"a": a, "b": b, "c": a * x + b, "sign": rng.choice(("<", "<=", ">", ">="))}


def _ask_inequality(p: Parameters, rng: Random) -> str:
    text = f"{term(p['a'], 'x')}{signed(p['b'])} {p['sign']} {p['c']}"
    return rng.choice(
        (f"Solve {text} over the real numbers. Give an interval.", f"For which real x is {text}? Give an interval.")
    )


def _ray(end: int, upward: bool, closed: bool) -> AnswerSpec:
    items = (str(end), "oo") if upward else ("-oo", str(end))
    return CollectionAnswer(shape="interval", items=items, closed=(closed and upward, closed and not upward))


def _inequality(p: Parameters) -> AnswerSpec:
    end = (p["c"] - p["b"]) // p["a"]
    return _ray(end, upward=(p["sign"][0] == ">") == (p["a"] > 0), closed="=" in p["sign"])


def _inequality_by_trying(p: Parameters) -> AnswerSpec:
    """Test every integer around; the border is where the truth changes, or the last true one if it belongs to the set."""
    compare = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[p["sign"]]
    true = [x for x in range(-500, 501) if compare(p["a"] * x + p["b"], p["c"])]
    upward = true[-1] == 500
    nearest = true[0] if upward else true[-1]
    closed = p["a"] * nearest + p["b"] == p["c"]
    return _ray(nearest if closed else nearest + (-1 if upward else 1), upward, closed)


def _work_inequality(p: Parameters) -> list[str]:
    rest = p["c"] - p["b"]
    first = f"{p['c']} {'-' if p['b'] > 0 else '+'} {abs(p['b'])} = {rest}"
    return [first, f"{rest} / {p['a']} = {rest // p['a']}"]


def _slip_inequality(p: Parameters) -> list[NearMiss]:
    end = (p["c"] - p["b"]) // p["a"]
    upward, closed = (p["sign"][0] == ">") == (p["a"] > 0), "=" in p["sign"]
    flip = {True: f"{'[' if closed else '('}{end}, oo)", False: f"(-oo, {end}{']' if closed else ')'}"}
    other = {True: f"{'(' if closed else '['}{end}, oo)", False: f"(-oo, {end}{')' if closed else ']'}"}
    return [
        NearMiss(answer=flip[not upward], why="the wrong way"),
        NearMiss(answer=other[upward], why="end taken wrongly"),
        NearMiss(answer=flip[upward].replace(str(end), str(end + 1)), why="off by one"),
    ]


TEMPLATES = (
    Template(
        "linear_equation",
        "algebra",
        _draw_linear,
        _ask_linear,
        _root,
        _root_by_search,
        _work_linear,
        _slip_linear,
        share=3,
    ),
    Template(
        "x_on_both_sides", "algebra", _draw_both_sides, _ask_linear, _root, _root_by_search, _work_linear, _slip_linear
    ),
    Template(
        "linear_system",
        "algebra",
        _draw_system,
        _ask_system,
        _system,
        _system_by_search,
        _work_system,
        _slip_system,
        share=4,
    ),
    Template(
        "quadratic_roots",
        "algebra",
        _draw_quadratic,
        _ask_quadratic,
        _roots,
        _roots_by_search,
        _work_quadratic,
        _slip_quadratic,
    ),
    Template(
        "inequality",
        "algebra",
        _draw_inequality,
        _ask_inequality,
        _inequality,
        _inequality_by_trying,
        _work_inequality,
        _slip_inequality,
    ),
)
