"""Shares, rates, percentages and ages: a ratio found first, then used."""

from fractions import Fraction
from random import Random

import sympy as sp  # type: ignore[import-untyped]

from pipeline.families.math.templates.base import Parameters, Template, is_small, misses, number
from schemas.answer import AnswerSpec
from schemas.task import NearMiss


def _draw_rate(rng: Random) -> Parameters:
    small = is_small(rng)
    price = rng.randint(2, 9 if small else 30)
    known, wanted = rng.sample(range(2, 10 if small else 12), 2)
    return {
        "price": price,
        "known": known,
        "wanted": wanted,
        "thing": rng.choice(("pens", "tickets", "lamps", "mugs", "bricks")),
    }


def _ask_rate(p: Parameters, rng: Random) -> str:
    total, thing = p["known"] * p["price"], p["thing"]
    return rng.choice(
        (
            f"{p['known']} {thing} cost {total} dollars. At the same price, how many dollars do {p['wanted']} {thing} cost?",
            f"If you pay {total} dollars for {p['known']} {thing}, how many dollars do you pay for {p['wanted']} {thing}?",
        )
    )


def _cost(p: Parameters) -> AnswerSpec:
    return number(p["price"] * p["wanted"], "dollars")


def _cost_by_trying(p: Parameters) -> AnswerSpec:
    """The first price that is to the wanted number as the total is to the known one."""
    total = p["known"] * p["price"]
    return number(next(x for x in range(1, 10_000) if x * p["known"] == total * p["wanted"]), "dollars")


def _work_rate(p: Parameters) -> list[str]:
    one, wanted = p["price"], p["wanted"]
    return [f"1 costs {p['known'] * one} / {p['known']} = {one}", f"{wanted} cost {one} * {wanted} = {one * wanted}"]


def _slip_rate(p: Parameters) -> list[NearMiss]:
    right = p["price"] * p["wanted"]
    total = p["known"] * p["price"]
    return misses(
        right,
        (total + p["wanted"] - p["known"], "difference for ratio"),
        (total * p["wanted"], "not divided"),
        (right + p["price"], "one too many"),
    )


def _draw_share(rng: Random) -> Parameters:
    small = is_small(rng)
    a, b = rng.sample(range(1, 6 if small else 8), 2)
    thing = rng.choice(("dollars", "marbles", "sweets", "stickers"))
    return {"ratio": [a, b], "unit": rng.randint(*((2, 12) if small else (4, 40))), "thing": thing}


def _ask_share(p: Parameters, rng: Random) -> str:
    (a, b), (x, y) = p["ratio"], rng.sample(("Ana", "Ben", "Chen", "Dora", "Emil", "Faye"), 2)
    total = (a + b) * p["unit"]
    return rng.choice(
        (
            f"{x} and {y} share {total} {p['thing']} in the ratio {a}:{b}. How many {p['thing']} does {x} get?",
            f"{total} {p['thing']} are split between {x} and {y} so that {x} has {a} parts and {y} has {b} parts. "
            f"How many {p['thing']} does {x} have?",
        )
    )


def _share(p: Parameters) -> AnswerSpec:
    return number(p["ratio"][0] * p["unit"], p["thing"])


def _share_by_dealing(p: Parameters) -> AnswerSpec:
    """Deal the heap out, round by round."""
    a, b = p["ratio"]
    heap, mine = (a + b) * p["unit"], 0
    while heap:
        heap, mine = heap - a - b, mine + a
    return number(mine, p["thing"])


def _work_share(p: Parameters) -> list[str]:
    (a, b), u = p["ratio"], p["unit"]
    return [f"{a} + {b} = {a + b} parts", f"1 part: {(a + b) * u} / {a + b} = {u}", f"{a} parts: {u} * {a} = {u * a}"]


def _slip_share(p: Parameters) -> list[NearMiss]:
    (a, b), u = p["ratio"], p["unit"]
    return misses(
        u * a, (u * b, "the other share"), (u, "one part"), (u * (a + 1), "a part too many"), (u * a + 1, "off by one")
    )


def _draw_rise(rng: Random) -> Parameters:
    return _draw_percent(rng) | {"rise": True}


def _draw_discount(rng: Random) -> Parameters:
    return _draw_percent(rng) | {"rise": False}


def _draw_percent(rng: Random) -> Parameters:
    small = is_small(rng)
    percent = rng.choice((10, 20, 30, 50) if small else (10, 20, 30, 40, 60, 70, 80, 90))
    return {"price": 10 * rng.randint(3, 30 if small else 60), "percent": percent}


def _ask_discount(p: Parameters, rng: Random) -> str:
    if p["rise"]:
        return rng.choice(
            (
                f"A rent of {p['price']} dollars is raised by {p['percent']} %. How many dollars is the new rent?",
                f"A price of {p['price']} dollars goes up by {p['percent']} percent. How many dollars is it then?",
            )
        )
    return rng.choice(
        (
            f"A coat costs {p['price']} dollars. In a sale it is {p['percent']} % off. How many dollars does it cost in the sale?",
            f"A shop takes {p['percent']} percent off a price of {p['price']} dollars. How many dollars must you pay?",
        )
    )


def _discounted(p: Parameters) -> AnswerSpec:
    factor = 1 + Fraction(p["percent"], 100) * (1 if p["rise"] else -1)
    return number(p["price"] * factor, "dollars")


def _discounted_by_equation(p: Parameters) -> AnswerSpec:
    """Solve for the price whose difference from the old one is the stated share of the old one."""
    x = sp.Symbol("x")
    change = (x - p["price"]) if p["rise"] else (p["price"] - x)
    (root,) = sp.solve(sp.Eq(100 * change, p["percent"] * p["price"]), x)
    return number(Fraction(str(root)), "dollars")


def _work_discount(p: Parameters) -> list[str]:
    tenth, tens = p["price"] // 10, p["percent"] // 10
    part = tenth * tens
    sign, new = ("+", p["price"] + part) if p["rise"] else ("-", p["price"] - part)
    return [
        f"10 percent: {p['price']} / 10 = {tenth}",
        f"{p['percent']} percent: {tenth} * {tens} = {part}",
        f"new price: {p['price']} {sign} {part} = {new}",
    ]


def _slip_discount(p: Parameters) -> list[NearMiss]:
    part = p["price"] * p["percent"] // 100
    up, down = p["price"] + part, p["price"] - part
    right, other = (up, down) if p["rise"] else (down, up)
    return misses(
        right,
        (part, "the change alone"),
        (right + 1, "off by one"),
        (other, "the wrong way"),
        (p["price"] - p["percent"], "percent taken for dollars"),
    )


def _draw_ages(rng: Random) -> Parameters:
    small = is_small(rng)
    return {
        "child": rng.randint(3, 9 if small else 20),
        "times": rng.randint(2, 3 if small else 5),
        "older": rng.randint(2, 9 if small else 30),
        "years": rng.randint(2, 20 if small else 30),
    }


def _ask_ages(p: Parameters, rng: Random) -> str:
    x, y, z = rng.sample(("Nora", "Paul", "Sara", "Kofi", "Aiko", "Hugo", "Vera"), 3)
    times = {2: "twice", 3: "three times", 4: "four times", 5: "five times"}[p["times"]]
    return rng.choice(
        (
            f"{z} is {p['child']} years old. {y} is {times} as old as {z}. {x} is {p['older']} years older than {y}. "
            f"How old will {x} be in {p['years']} years?",
            f"{x} is {p['older']} years older than {y}, and {y} is {times} as old as {z}, who is {p['child']}. "
            f"How old is {x} in {p['years']} years?",
        )
    )


def _age(p: Parameters) -> AnswerSpec:
    return number(p["child"] * p["times"] + p["older"] + p["years"], "years")


def _age_by_equations(p: Parameters) -> AnswerSpec:
    """The three sentences as linear equations."""
    x, y, z, later = sp.symbols("x y z later")
    told = [z - p["child"], y - p["times"] * z, x - y - p["older"], later - x - p["years"]]
    return number(int(sp.solve(told, [x, y, z, later])[later]), "years")


def _work_ages(p: Parameters) -> list[str]:
    y = p["child"] * p["times"]
    x = y + p["older"]
    times = f"{p['child']} * {p['times']} = {y}"
    return [
        f"{p['times']} times: {times}",
        f"{p['older']} older: {y} + {p['older']} = {x}",
        f"{p['years']} years later: {x} + {p['years']} = {x + p['years']}",
    ]


def _slip_ages(p: Parameters) -> list[NearMiss]:
    right = p["child"] * p["times"] + p["older"] + p["years"]
    return misses(
        right,
        (right - p["years"], "the age now"),
        (right - 2 * p["older"], "younger instead of older"),
        (right + 1, "one year too many"),
    )


TEMPLATES = (
    Template("unit_price", "proportion", _draw_rate, _ask_rate, _cost, _cost_by_trying, _work_rate, _slip_rate),
    Template("ratio_share", "proportion", _draw_share, _ask_share, _share, _share_by_dealing, _work_share, _slip_share),
    Template(
        "percent_rise",
        "proportion",
        _draw_rise,
        _ask_discount,
        _discounted,
        _discounted_by_equation,
        _work_discount,
        _slip_discount,
        share=3,
    ),
    Template(
        "percent_discount",
        "proportion",
        _draw_discount,
        _ask_discount,
        _discounted,
        _discounted_by_equation,
        _work_discount,
        _slip_discount,
    ),
    Template("ages", "proportion", _draw_ages, _ask_ages, _age, _age_by_equations, _work_ages, _slip_ages),
)
