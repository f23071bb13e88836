"""Problems of reasoning-gym's datasets, those that pass `admission`.

The dataset draws an item and computes its answer; the question is asked in our words, and our own solver, which shares no
code with the dataset's, finds the answer again from the formula in it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from importlib.metadata import version
from math import prod
from random import Random
from typing import Any

from pipeline.families.math.templates.base import Parameters, Template, misses, number, numbers
from pipeline.grading.syntax import Node, parse
from schemas.answer import AnswerSpec
from schemas.base import canonical_json
from schemas.task import NearMiss

SIGN = {"add": "+", "mul": "*", "div": "/"}


@dataclass(frozen=True)
class Dataset:
    """A dataset, the configuration it is drawn with, and the parts of an item's metadata that state its problem."""

    name: str
    config: Mapping[str, Any]
    keys: tuple[str, ...]

    @property
    def source(self) -> str:
        return f"reasoning_gym {version('reasoning_gym')} {self.name} {canonical_json(dict(self.config))}"

    def item(self, seed: int) -> dict[str, Any]:
        """The first item under `seed`. The import takes seconds and is left to whoever draws."""
        from reasoning_gym import create_dataset  # type: ignore[import-untyped]

        found: dict[str, Any] = create_dataset(self.name, seed=seed, size=1, **self.config)[0]
        return found

    def draw(self, rng: Random) -> Parameters:
        item = self.item(rng.randrange(2**31))
        return {key: item["metadata"][key] for key in self.keys} | {"answer": item["answer"]}


def evaluate(node: Node, lines: list[str] | None = None) -> Fraction:
    """The exact value of a parsed formula without variables; `lines` collects one line an operation, innermost first."""
    match node:
        case ("num", digits):
            return Fraction(digits)
        case ("neg", a):
            return -evaluate(a, lines)
        case ("add", a, ("neg", b)):
            x, y, sign = evaluate(a, lines), evaluate(b, lines), "-"
            value = x - y
        case (operation, a, b):
            x, y, sign = evaluate(a, lines), evaluate(b, lines), SIGN[operation]
            value = x + y if sign == "+" else x * y if sign == "*" else x / y
        case _:
            raise ValueError(f"{node}: neither a number nor an operation")
    if lines is not None:
        lines.append(f"{shown(x)} {sign} {shown(y)} = {shown(value)}")
    return value


def shown(value: Fraction) -> str:
    """As a decimal where it has a short one."""
    decimal = Decimal(value.numerator) / Decimal(value.denominator)
    return f"{decimal.normalize():f}" if Fraction(decimal) == value else str(value)


def _given(p: Parameters) -> AnswerSpec:
    return number(Fraction(p["answer"]))


def _from_formula(p: Parameters) -> AnswerSpec:
    return number(evaluate(parse(p["expression"])))


def _work_formula(p: Parameters) -> list[str]:
    lines: list[str] = []
    evaluate(parse(p["expression"]), lines)
    return lines


def _slip_formula(p: Parameters) -> list[NearMiss]:
    right = Fraction(p["answer"])
    return misses(
        shown(right),
        (shown(right + 1), "off by one"),
        (shown(-right), "wrong sign"),
        (shown(right + 10), "a carry too many"),
    )


def _ask_formula(p: Parameters, rng: Random) -> str:
    formula = " ".join(p["expression"].split()).replace("( ", "(").replace(" )", ")")
    return rng.choice((f"What is {formula}?", f"Calculate {formula}.", f"Work out the value of {formula}."))


def _work_product(p: Parameters) -> list[str]:
    """Tens and ones of the second factor apart, as written multiplication does."""
    a, b = map(int, p["expression"].split("*"))
    tens, ones = b // 10 * 10, b % 10
    if not tens or not ones:
        return [f"{a} * {b} = {a * b}"]
    return [f"{a} * {tens} = {a * tens}", f"{a} * {ones} = {a * ones}", f"{a * tens} + {a * ones} = {a * b}"]


def _draw_equation(rng: Random) -> Parameters:
    """The first item with one solution: the dataset also makes equations that any number solves."""
    while True:
        parameters = EQUATIONS.draw(rng)
        f = _sides(parameters)
        if f(1) != f(0):
            return parameters


def _ask_equation(p: Parameters, rng: Random) -> str:
    v, equation = p["variable"], p["equation"].replace(f"*{p['variable']}", p["variable"])
    return rng.choice((f"Solve for {v}: {equation}", f"Find the value of {v} in the equation {equation}."))


def _sides(p: Parameters) -> Callable[[int], Fraction]:
    """Left minus right of the equation, as a function of its variable."""
    left, right = p["equation"].split("=")
    return lambda x: evaluate(parse(f"({left}) - ({right})".replace(p["variable"], f"({x})")))


def _equation_by_secant(p: Parameters) -> AnswerSpec:
    """The root of a linear function through two of its values."""
    f = _sides(p)
    return number(-f(0) / (f(1) - f(0)))


def _work_equation(p: Parameters) -> list[str]:
    f = _sides(p)
    slope, root = f(1) - f(0), Fraction(p["answer"])
    return [
        f"{shown(slope)}{p['variable']} = {shown(slope * root)}",
        f"{shown(slope * root)} / {shown(slope)} = {shown(root)}",
    ]


def _ask_factors(p: Parameters, rng: Random) -> str:
    n = p["number"]
    return rng.choice(
        (
            f"List the prime factors of {n}, each as often as it divides {n}, separated by commas.",
            f"Write {n} as a product of primes. List the primes with repetition, separated by commas.",
        )
    )


def _draw_factors(rng: Random) -> Parameters:
    """The first item with three prime factors or more; a prime would be its own answer."""
    while True:
        parameters = FACTORS.draw(rng)
        if parameters["answer"].count("×") >= 2:
            return parameters


def _factors(p: Parameters) -> AnswerSpec:
    return numbers("multiset", sorted(int(f) for f in p["answer"].split("×")))


def _factors_by_sieve(p: Parameters) -> AnswerSpec:
    """Divide by the primes of a sieve until 1 is left."""
    n: int = p["number"]
    sieve = [True] * (n + 1)
    found, rest = [], n
    for i in range(2, n + 1):
        if sieve[i]:
            sieve[i * i :: i] = [False] * len(sieve[i * i :: i])
            while rest % i == 0:
                found.append(i)
                rest //= i
    return numbers("multiset", found)


def _work_factors(p: Parameters) -> list[str]:
    rest, lines = p["number"], []
    for f in sorted(int(f) for f in p["answer"].split("×")):
        lines.append(f"{rest} / {f} = {rest // f}")
        rest //= f
    return lines


def _slip_factors(p: Parameters) -> list[NearMiss]:
    found = sorted(int(f) for f in p["answer"].split("×"))
    candidates = [
        (found[:-1], "a factor forgotten"),
        ([*found, 2], "a factor too many"),
        ([prod(found[:2]), *found[2:]], "not all prime"),
    ]
    return [NearMiss(answer=", ".join(map(str, c)), why=why) for c, why in candidates if c and c != found]


_FORMULA = ("expression",)
CHAIN = Dataset("chain_sum", {"min_terms": 4, "max_terms": 4, "min_digits": 1, "max_digits": 2}, _FORMULA)
DECIMALS = Dataset(
    "decimal_chain_sum",
    {
        "min_terms": 2,
        "max_terms": 3,
        "min_digits": 1,
        "max_digits": 1,
        "min_decimal_places": 1,
        "max_decimal_places": 1,
    },
    _FORMULA,
)
PRODUCTS = Dataset("products", {"min_terms": 2, "max_terms": 2, "min_digits": 2, "max_digits": 2}, _FORMULA)
ARITHMETIC = Dataset(
    "basic_arithmetic",
    {
        "min_terms": 3,
        "max_terms": 4,
        "min_digits": 1,
        "max_digits": 1,
        "operators": ["+", "-", "*"],
        "allow_negation": False,
    },
    _FORMULA,
)
EQUATIONS = Dataset("simple_equations", {"min_value": 1, "max_value": 50}, ("equation", "variable"))
FACTORS = Dataset("prime_factorization", {"min_value": 12, "max_value": 600}, ("number",))

ADMITTED = (CHAIN, DECIMALS, PRODUCTS, ARITHMETIC, EQUATIONS, FACTORS)


def _formula(dataset: Dataset, work: Callable[[Parameters], list[str]] = _work_formula) -> Template:
    """A dataset whose items are a formula to calculate."""
    name = f"gym_{dataset.name}"
    return Template(
        name, "formulas", dataset.draw, _ask_formula, _given, _from_formula, work, _slip_formula, dataset.source
    )


TEMPLATES = (
    _formula(CHAIN),
    _formula(DECIMALS),
    _formula(PRODUCTS, _work_product),
    _formula(ARITHMETIC),
    Template(
        "gym_simple_equations",
        "algebra",
        _draw_equation,
        _ask_equation,
        _given,
        _equation_by_secant,
        _work_equation,
        _slip_formula,
        EQUATIONS.source,
    ),
    Template(
        "gym_prime_factorization",
        "integers",
        _draw_factors,
        _ask_factors,
        _factors,
        _factors_by_sieve,
        _work_factors,
        _slip_factors,
        FACTORS.source,
    ),
)
