"""Short chains of unlike steps: number machines, mixed units, rectangles. The easiest templates, for the smallest solvers."""

from itertools import pairwise
from random import Random

from pipeline.families.math.templates.base import Parameters, Template, is_small, misses, number
from schemas.answer import AnswerSpec
from schemas.task import NearMiss

_DONE = {"+": "Add {n}.", "-": "Subtract {n}.", "*": "Multiply by {n}."}
_DOING = {"+": "adds {n}", "-": "subtracts {n}", "*": "multiplies by {n}"}


def _apply(value: int, sign: str, n: int) -> int:
    return value + n if sign == "+" else value - n if sign == "-" else value * n


def _draw_machine(rng: Random) -> Parameters:
    """Always the same three operations: a small model copies the shape of its examples, whatever is asked."""
    small = is_small(rng)
    start, plus, minus = (rng.randint(*((2, 12) if small else (11, 60))) for _ in "abc")
    times = rng.randint(2, 5 if small else 9)
    return {"start": start, "steps": [["+", plus], ["*", times], ["-", min(minus, (start + plus) * times - 1)]]}


def _ask_machine(p: Parameters, rng: Random) -> str:
    if rng.random() < 0.5:
        told = " ".join(_DONE[sign].format(n=n) for sign, n in p["steps"])
        return f"Start with {p['start']}. {told} What is the result?"
    doing = [_DOING[sign].format(n=n) for sign, n in p["steps"]]
    who = rng.choice(("Zoe", "Noah", "Amina", "Luis"))
    return f"{who} thinks of {p['start']}, {', '.join(doing[:-1])} and then {doing[-1]}. Which number does {who} get?"


def _machine(p: Parameters) -> AnswerSpec:
    value: int = p["start"]
    for sign, n in p["steps"]:
        value = _apply(value, sign, n)
    return number(value)


def _machine_backwards(p: Parameters) -> AnswerSpec:
    """The one result from which the undone steps lead back to the start."""

    def undone(value: int) -> int | None:
        for sign, n in reversed(p["steps"]):
            if sign == "*" and value % n:
                return None
            value = value // n if sign == "*" else value - n if sign == "+" else value + n
        return value

    (result,) = [r for r in range(1, 20_000) if undone(r) == p["start"]]
    return number(result)


def _work_machine(p: Parameters) -> list[str]:
    lines, value = [], p["start"]
    for sign, n in p["steps"]:
        lines.append(f"{value} {sign} {n} = {_apply(value, sign, n)}")
        value = _apply(value, sign, n)
    return lines


def _slip_machine(p: Parameters) -> list[NearMiss]:
    right = int(_machine(p).value)  # type: ignore[union-attr]
    last_sign, last = p["steps"][-1]
    before = _work_machine({"start": p["start"], "steps": p["steps"][:-1]})[-1].split(" = ")[1]
    return misses(
        right, (before, "the last step forgotten"), (right + 1, "off by one"), (right + last, f"{last_sign} done twice")
    )


_UNITS = {
    "days": ("weeks", 7),
    "inches": ("feet", 12),
    "minutes": ("hours", 60),
    "seconds": ("minutes", 60),
    "months": ("years", 12),
    "eggs": ("dozen eggs", 12),
}


def _draw_units(rng: Random) -> Parameters:
    unit = rng.choice(sorted(_UNITS))
    return {
        "unit": unit,
        "large": rng.randint(2, 9 if is_small(rng) else 40),
        "rest": rng.randint(1, _UNITS[unit][1] - 1),
    }


def _ask_units(p: Parameters, rng: Random) -> str:
    unit, (larger, _) = p["unit"], _UNITS[p["unit"]]
    rest = f"{p['rest']} {unit if p['rest'] > 1 else unit.removesuffix('es') if unit == 'inches' else unit.removesuffix('s')}"
    if unit == "eggs":
        return rng.choice(
            (
                f"A cook has {p['large']} dozen eggs and {rest} more. How many eggs is that?",
                f"How many eggs are {p['large']} dozen eggs and {rest}?",
            )
        )
    return rng.choice(
        (
            f"How many {unit} are {p['large']} {larger} and {rest}?",
            f"Write {p['large']} {larger} and {rest} in {unit} only.",
        )
    )


def _units(p: Parameters) -> AnswerSpec:
    return number(p["large"] * _UNITS[p["unit"]][1] + p["rest"], p["unit"])


def _units_by_counting(p: Parameters) -> AnswerSpec:
    """Count up, starting a new large unit whenever one is full."""
    full, loose, counted = 0, 0, 0
    while (full, loose) != (p["large"], p["rest"]):
        counted, loose = counted + 1, loose + 1
        if loose == _UNITS[p["unit"]][1]:
            full, loose = full + 1, 0
    return number(counted, p["unit"])


def _work_units(p: Parameters) -> list[str]:
    larger, size = _UNITS[p["unit"]]
    whole = p["large"] * size
    return [
        f"{p['large']} {larger}: {p['large']} * {size} = {whole}",
        f"in all: {whole} + {p['rest']} = {whole + p['rest']}",
    ]


def _slip_units(p: Parameters) -> list[NearMiss]:
    size = _UNITS[p["unit"]][1]
    right = p["large"] * size + p["rest"]
    return misses(
        right,
        (p["large"] * 10 + p["rest"], "ten to one"),
        (right + size, "a large unit too many"),
        (right - p["rest"], "the rest forgotten"),
        (right + 1, "off by one"),
    )


def _draw_fence(rng: Random) -> Parameters:
    small = is_small(rng)
    a, b = rng.sample(range(2, 13) if small else range(11, 80), 2)
    return {"sides": [a, b], "price": rng.randint(2, 5) if small else rng.randint(3, 12)}


def _ask_fence(p: Parameters, rng: Random) -> str:
    a, b = p["sides"]
    place = rng.choice(("garden", "field", "pool", "yard"))
    return rng.choice(
        (
            f"A {place} is {a} metres long and {b} metres wide. A fence around it costs {p['price']} dollars a metre. "
            f"How many dollars does the fence cost?",
            f"How many dollars does a fence around a {place} of {a} by {b} metres cost at {p['price']} dollars a metre?",
        )
    )


def _fence(p: Parameters) -> AnswerSpec:
    return number(2 * sum(p["sides"]) * p["price"], "dollars")


def _fence_walked(p: Parameters) -> AnswerSpec:
    """Walk around the corners of the rectangle, paying for every metre."""
    a, b = p["sides"]
    corners = [(0, 0), (a, 0), (a, b), (0, b), (0, 0)]
    paid = 0
    for (x, y), (u, v) in pairwise(corners):
        while (x, y) != (u, v):
            x, y = x + (u > x) - (u < x), y + (v > y) - (v < y)
            paid += p["price"]
    return number(paid, "dollars")


def _work_fence(p: Parameters) -> list[str]:
    (a, b), price = p["sides"], p["price"]
    around = 2 * (a + b)
    return [
        f"half: {a} + {b} = {a + b}",
        f"around: {a + b} * 2 = {around}",
        f"cost: {around} * {price} = {around * price}",
    ]


def _slip_fence(p: Parameters) -> list[NearMiss]:
    (a, b), price = p["sides"], p["price"]
    right = 2 * (a + b) * price
    return misses(
        right,
        (a * b * price, "area for border"),
        ((a + b) * price, "two sides only"),
        (right + price, "a metre too many"),
    )


def _draw_league(rng: Random) -> Parameters:
    small = is_small(rng)
    return {
        "wins": rng.randint(2, 12 if small else 60),
        "draws": rng.randint(1, 9 if small else 60),
        "win": 3 if small else rng.choice((2, 4)),
    }


def _ask_league(p: Parameters, rng: Random) -> str:
    rule = f"A win is worth {p['win']} points and a draw 1 point."
    draws = f"{p['draws']} draw{'s' if p['draws'] > 1 else ''}"
    return rng.choice(
        (
            f"{rule} A team has {p['wins']} wins and {draws}. How many points does it have?",
            f"{rule} How many points do {p['wins']} wins and {draws} give?",
        )
    )


def _league(p: Parameters) -> AnswerSpec:
    return number(p["wins"] * p["win"] + p["draws"], "points")


def _league_match_by_match(p: Parameters) -> AnswerSpec:
    points = 0
    for match in "w" * p["wins"] + "d" * p["draws"]:
        points += p["win"] if match == "w" else 1
    return number(points, "points")


def _work_league(p: Parameters) -> list[str]:
    won = p["wins"] * p["win"]
    return [f"{p['wins']} wins: {p['wins']} * {p['win']} = {won}", f"in all: {won} + {p['draws']} = {won + p['draws']}"]


def _slip_league(p: Parameters) -> list[NearMiss]:
    right = p["wins"] * p["win"] + p["draws"]
    return misses(
        right,
        (p["wins"] + p["draws"], "matches for points"),
        (right + p["win"], "a win too many"),
        ((p["wins"] + p["draws"]) * p["win"], "draws taken for wins"),
        (right + 1, "off by one"),
    )


TEMPLATES = (
    Template(
        "league_points",
        "steps",
        _draw_league,
        _ask_league,
        _league,
        _league_match_by_match,
        _work_league,
        _slip_league,
        share=5,
    ),
    Template(
        "number_machine",
        "steps",
        _draw_machine,
        _ask_machine,
        _machine,
        _machine_backwards,
        _work_machine,
        _slip_machine,
    ),
    Template(
        "mixed_units", "steps", _draw_units, _ask_units, _units, _units_by_counting, _work_units, _slip_units, share=2
    ),
    Template("fence", "steps", _draw_fence, _ask_fence, _fence, _fence_walked, _work_fence, _slip_fence, share=5),
)
