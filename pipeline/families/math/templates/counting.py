"""Counting; one solver by formula, the other by enumeration or addition."""

from itertools import pairwise, product
from math import comb, factorial, lcm, prod
from random import Random

from pipeline.families.math.templates.base import Parameters, Template, is_small, misses, number
from schemas.answer import AnswerSpec
from schemas.task import NearMiss


def _draw_committee(rng: Random) -> Parameters:
    small = is_small(rng)
    women, men = (rng.randint(*((3, 8) if small else (4, 12))) for _ in "wm")
    return {"women": women, "men": men, "picks": [rng.randint(1, 2 if small else 3), rng.randint(1, 2 if small else 3)]}


def _ask_committee(p: Parameters, rng: Random) -> str:
    w, m = p["picks"]
    ladies, men = f"{w} {'woman' if w == 1 else 'women'}", f"{m} {'man' if m == 1 else 'men'}"
    return rng.choice(
        (
            f"In how many ways can a committee of {ladies} and {men} be chosen from {p['women']} women and {p['men']} men?",
            f"A club has {p['women']} women and {p['men']} men. How many different teams of {ladies} and {men} can it send?",
        )
    )


def _committee(p: Parameters) -> AnswerSpec:
    return number(comb(p["women"], p["picks"][0]) * comb(p["men"], p["picks"][1]))


def _committee_by_pascal(p: Parameters) -> AnswerSpec:
    """Rows of Pascal's triangle, by addition only."""

    def entry(n: int, k: int) -> int:
        row = [1]
        for _ in range(n):
            row = [1, *(a + b for a, b in pairwise(row)), 1]
        return row[k]

    return number(entry(p["women"], p["picks"][0]) * entry(p["men"], p["picks"][1]))


def _work_committee(p: Parameters) -> list[str]:
    ways = [comb(n, k) for n, k in ((p["women"], p["picks"][0]), (p["men"], p["picks"][1]))]
    choices = [f"choose {k} of {n}: {w}" for n, k, w in zip((p["women"], p["men"]), p["picks"], ways, strict=True)]
    return [*choices, f"{ways[0]} * {ways[1]} = {ways[0] * ways[1]}"]


def _slip_committee(p: Parameters) -> list[NearMiss]:
    a, b = comb(p["women"], p["picks"][0]), comb(p["men"], p["picks"][1])
    ordered = a * b * factorial(p["picks"][0]) * factorial(p["picks"][1])
    return misses(a * b, (a + b, "sum for product"), (ordered, "order counted"), (a * b + 1, "off by one"))


def _draw_multiples(rng: Random) -> Parameters:
    small = is_small(rng)
    a, b = rng.sample(range(2, 8 if small else 13), 2)
    return {"limit": rng.randint(*((20, 100) if small else (80, 900))), "divisors": sorted((a, b))}


def _ask_multiples(p: Parameters, rng: Random) -> str:
    (a, b), n = p["divisors"], p["limit"]
    return rng.choice(
        (
            f"How many whole numbers from 1 to {n} are divisible by {a} or by {b}?",
            f"Of the numbers 1, 2, ..., {n}, how many are multiples of {a} or {b} (or both)?",
        )
    )


def _multiples(p: Parameters) -> AnswerSpec:
    (a, b), n = p["divisors"], p["limit"]
    return number(n // a + n // b - n // lcm(a, b))


def _multiples_by_counting(p: Parameters) -> AnswerSpec:
    a, b = p["divisors"]
    return number(sum(1 for i in range(1, p["limit"] + 1) if i % a == 0 or i % b == 0))


def _work_multiples(p: Parameters) -> list[str]:
    (a, b), n = p["divisors"], p["limit"]
    m = lcm(a, b)
    x, y, z = n // a, n // b, n // m
    return [f"by {a}: {x}", f"by {b}: {y}", f"by {m}: {z}", f"{x} + {y} = {x + y}", f"{x + y} - {z} = {x + y - z}"]


def _slip_multiples(p: Parameters) -> list[NearMiss]:
    (a, b), n = p["divisors"], p["limit"]
    right = n // a + n // b - n // lcm(a, b)
    return misses(
        right,
        (n // a + n // b, "both counted twice"),
        (n // lcm(a, b), "and for or"),
        (n - right, "the others"),
        (right + 1, "off by one"),
    )


def _draw_choices(rng: Random) -> Parameters:
    high = 9 if is_small(rng) else 20
    return {"counts": [rng.randint(2, high) for _ in "abc"]}


def _ask_choices(p: Parameters, rng: Random) -> str:
    a, b, c = p["counts"]
    return rng.choice(
        (
            f"A menu has {a} starters, {b} main courses and {c} desserts. How many different meals of three courses are there?",
            f"With {a} shirts, {b} skirts and {c} hats, how many different outfits of one each can be put together?",
        )
    )


def _choices(p: Parameters) -> AnswerSpec:
    return number(prod(p["counts"]))


def _choices_listed(p: Parameters) -> AnswerSpec:
    return number(len(set(product(*(range(n) for n in p["counts"])))))


def _work_choices(p: Parameters) -> list[str]:
    a, b, c = p["counts"]
    return [f"{a} * {b} = {a * b}", f"{a * b} * {c} = {a * b * c}"]


def _slip_choices(p: Parameters) -> list[NearMiss]:
    a, b, c = p["counts"]
    return misses(
        a * b * c, (a * b + c, "added at the end"), (a * b * c + 1, "off by one"), (a * b * c + a * b, "one too many")
    )


TEMPLATES = (
    Template(
        "choices",
        "counting",
        _draw_choices,
        _ask_choices,
        _choices,
        _choices_listed,
        _work_choices,
        _slip_choices,
        share=2,
    ),
    Template(
        "committee",
        "counting",
        _draw_committee,
        _ask_committee,
        _committee,
        _committee_by_pascal,
        _work_committee,
        _slip_committee,
    ),
    Template(
        "multiples",
        "counting",
        _draw_multiples,
        _ask_multiples,
        _multiples,
        _multiples_by_counting,
        _work_multiples,
        _slip_multiples,
    ),
)
