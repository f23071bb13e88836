"""Number theory and sequences; one solver by formula, the other step by step."""

from math import gcd, lcm
from random import Random

from pipeline.families.math.templates.base import Parameters, Template, is_small, misses, number
from schemas.answer import AnswerSpec
from schemas.task import NearMiss


def _draw_gcd(rng: Random) -> Parameters:
    small = is_small(rng)
    g = rng.randint(2, 30 if small else 60)
    a, b = rng.sample(range(2, 6 if small else 16), 2)
    return {"numbers": [g * a, g * b], "unit": rng.choice((None, "centimetres"))}


def _ask_gcd(p: Parameters, rng: Random) -> str:
    a, b = p["numbers"]
    if p["unit"]:
        return rng.choice(
            (
                f"A floor of {a} by {b} {p['unit']} is tiled with equal square tiles, none cut. "
                f"What is the largest side of a tile in {p['unit']}?",
                f"Two ropes of {a} and {b} {p['unit']} are cut into equal pieces without a rest. "
                f"How many {p['unit']} long are the longest possible pieces?",
            )
        )
    return rng.choice(
        (
            f"What is the greatest common divisor of {a} and {b}?",
            f"Find the largest whole number that divides both {a} and {b}.",
        )
    )


def _gcd(p: Parameters) -> AnswerSpec:
    return number(gcd(*p["numbers"]), p["unit"])


def _gcd_by_trying(p: Parameters) -> AnswerSpec:
    a, b = p["numbers"]
    return number(max(d for d in range(1, min(a, b) + 1) if a % d == 0 and b % d == 0), p["unit"])


def _work_gcd(p: Parameters) -> list[str]:
    a, b = sorted(p["numbers"], reverse=True)
    lines = []
    while b:
        lines.append(f"{a} = {a // b} * {b} + {a % b}")
        a, b = b, a % b
    return lines


def _slip_gcd(p: Parameters) -> list[NearMiss]:
    g = gcd(*p["numbers"])
    return misses(g, (lcm(*p["numbers"]), "the least common multiple"), (g + 1, "off by one"), (2 * g, "doubled"))


def _draw_lcm(rng: Random) -> Parameters:
    numbers = rng.sample(range(4, 16) if is_small(rng) else range(6, 61), 2)
    return {"numbers": numbers, "unit": rng.choice((None, "seconds"))}


def _ask_lcm(p: Parameters, rng: Random) -> str:
    a, b = p["numbers"]
    if p["unit"]:
        return rng.choice(
            (
                f"One lamp flashes every {a} {p['unit']}, another every {b} {p['unit']}. They flash together now. "
                f"After how many {p['unit']} do they next flash together?",
                f"Two runners start together; one needs {a} {p['unit']} a lap, the other {b} {p['unit']}. "
                f"After how many {p['unit']} do they first cross the starting line together again?",
            )
        )
    return rng.choice(
        (
            f"What is the least common multiple of {a} and {b}?",
            f"Find the smallest positive number that both {a} and {b} divide.",
        )
    )


def _lcm(p: Parameters) -> AnswerSpec:
    return number(lcm(*p["numbers"]), p["unit"])


def _lcm_by_counting(p: Parameters) -> AnswerSpec:
    a, b = p["numbers"]
    multiple = a
    while multiple % b:
        multiple += a
    return number(multiple, p["unit"])


def _work_lcm(p: Parameters) -> list[str]:
    a, b = p["numbers"]
    g = gcd(a, b)
    return [f"gcd of {a} and {b} is {g}", f"{a} / {g} = {a // g}", f"{a // g} * {b} = {lcm(a, b)}"]


def _slip_lcm(p: Parameters) -> list[NearMiss]:
    a, b = p["numbers"]
    return misses(
        lcm(a, b),
        (2 * a * b, "twice the product"),
        (gcd(a, b), "the greatest common divisor"),
        (lcm(a, b) + a, "one step too far"),
    )


def _draw_power(rng: Random) -> Parameters:
    return {"base": rng.randint(2, 19), "exponent": rng.randint(4, 31), "modulus": rng.randint(101, 997)}


def _ask_power(p: Parameters, rng: Random) -> str:
    power = f"{p['base']}^{p['exponent']}"
    return rng.choice(
        (f"What is the remainder when {power} is divided by {p['modulus']}?", f"Compute {power} modulo {p['modulus']}.")
    )


def _power(p: Parameters) -> AnswerSpec:
    return number(pow(p["base"], p["exponent"], p["modulus"]))


def _power_by_whole_number(p: Parameters) -> AnswerSpec:
    whole = 1
    for _ in range(p["exponent"]):
        whole *= p["base"]
    return number(whole - whole // p["modulus"] * p["modulus"])


def _work_power(p: Parameters) -> list[str]:
    """Square and multiply, from the leading bit of the exponent."""
    lines, value, done = [], p["base"] % p["modulus"], 1
    for bit in bin(p["exponent"])[3:]:
        value, done = value * value % p["modulus"], 2 * done
        if bit == "1":
            value, done = value * p["base"] % p["modulus"], done + 1
        lines.append(f"{p['base']}^{done} = {value} mod {p['modulus']}")
    return lines


def _slip_power(p: Parameters) -> list[NearMiss]:
    right = pow(p["base"], p["exponent"], p["modulus"])
    return misses(
        right,
        (p["base"] * p["exponent"] % p["modulus"], "product for power"),
        (pow(p["base"], p["exponent"] - 1, p["modulus"]), "one factor too few"),
        (right + 1, "off by one"),
    )


def _draw_sequence(rng: Random) -> Parameters:
    small = is_small(rng)
    return {
        "first": rng.randint(1, 9 if small else 25),
        "times": 2 if small else rng.choice((2, 3)),
        "plus": rng.choice((-1, 1)) * rng.randint(1, 5 if small else 9),
        "index": 3,
    }


def _ask_sequence(p: Parameters, rng: Random) -> str:
    grow, change = "doubling" if p["times"] == 2 else "tripling", "adding" if p["plus"] > 0 else "subtracting"
    rule = f"{grow} the term before and then {change} {abs(p['plus'])}"
    nth = {3: "third", 4: "fourth"}[p["index"]]
    return rng.choice(
        (
            f"A sequence starts with {p['first']}. Each next term is made by {rule}. What is the {nth} term?",
            f"The first term is {p['first']}, and every further term comes from {rule}. Find the {nth} term.",
        )
    )


def _nth(p: Parameters) -> AnswerSpec:
    """x_n = k^(n-1) x_1 + c (k^(n-1) - 1) / (k - 1)."""
    scale = p["times"] ** (p["index"] - 1)
    return number(scale * p["first"] + p["plus"] * (scale - 1) // (p["times"] - 1))


def _nth_by_recursion(p: Parameters) -> AnswerSpec:
    value: int = p["first"]
    for _ in range(p["index"] - 1):
        value = p["times"] * value + p["plus"]
    return number(value)


def _work_sequence(p: Parameters) -> list[str]:
    lines, value = [], p["first"]
    for _ in range(p["index"] - 1):
        grown = value * p["times"]
        lines.append(
            f"{value} * {p['times']} = {grown}, {grown} {'+' if p['plus'] > 0 else '-'} {abs(p['plus'])} = {grown + p['plus']}"
        )
        value = grown + p["plus"]
    return lines


def _slip_sequence(p: Parameters) -> list[NearMiss]:
    value = right = int(_nth(p).value)  # type: ignore[union-attr]
    return misses(
        right,
        ((value - p["plus"]) // p["times"], "one term too early"),
        (value * p["times"] + p["plus"], "one term too far"),
        (right - p["plus"], "last addition forgotten"),
        (right + 1, "off by one"),
    )


def _draw_series(rng: Random) -> Parameters:
    small = is_small(rng)
    first, step = rng.randint(1, 9 if small else 30), rng.randint(1, 5 if small else 12)
    return {
        "first": first,
        "step": step,
        "terms": rng.randint(*((4, 10) if small else (8, 24))),
        "unit": rng.choice((None, "seats")),
    }


def _ask_series(p: Parameters, rng: Random) -> str:
    a, d = p["first"], p["step"]
    if p["unit"]:
        return rng.choice(
            (
                f"A theatre has {p['terms']} rows. The first row has {a} seats and every row has {d} seats more than the row before. "
                f"How many seats are there in all?",
                f"A stand is built with {p['terms']} rows: {a} seats in the first, then {d} more in each row than in the one before. "
                f"How many seats does it have?",
            )
        )
    terms = f"{a}, {a + d}, {a + 2 * d}, ..."
    return rng.choice(
        (
            f"What is the sum of the first {p['terms']} terms of the arithmetic sequence {terms}?",
            f"Add up the first {p['terms']} terms of the arithmetic sequence {terms}",
        )
    )


def _series(p: Parameters) -> AnswerSpec:
    n = p["terms"]
    return number(n * (2 * p["first"] + (n - 1) * p["step"]) // 2, p["unit"])


def _series_by_adding(p: Parameters) -> AnswerSpec:
    return number(sum(range(p["first"], p["first"] + p["terms"] * p["step"], p["step"])), p["unit"])


def _work_series(p: Parameters) -> list[str]:
    a, d, n = p["first"], p["step"], p["terms"]
    last = a + (n - 1) * d
    return [
        f"{n - 1} * {d} = {(n - 1) * d}",
        f"{a} + {(n - 1) * d} = {last}",
        f"{a} + {last} = {a + last}",
        f"{a + last} * {n} / 2 = {(a + last) * n // 2}",
    ]


def _slip_series(p: Parameters) -> list[NearMiss]:
    a, d, n = p["first"], p["step"], p["terms"]
    right = n * (2 * a + (n - 1) * d) // 2
    return misses(
        right, (a + (n - 1) * d, "the last term"), (right + a + n * d, "one term too many"), (right + 1, "off by one")
    )


TEMPLATES = (
    Template("gcd", "integers", _draw_gcd, _ask_gcd, _gcd, _gcd_by_trying, _work_gcd, _slip_gcd),
    Template("lcm", "integers", _draw_lcm, _ask_lcm, _lcm, _lcm_by_counting, _work_lcm, _slip_lcm),
    Template(
        "power_modulo", "integers", _draw_power, _ask_power, _power, _power_by_whole_number, _work_power, _slip_power
    ),
    Template(
        "sequence_term",
        "sequences",
        _draw_sequence,
        _ask_sequence,
        _nth,
        _nth_by_recursion,
        _work_sequence,
        _slip_sequence,
    ),
    Template(
        "series_sum", "sequences", _draw_series, _ask_series, _series, _series_by_adding, _work_series, _slip_series
    ),
)
