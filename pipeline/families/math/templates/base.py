"""What a template is, and the small helpers that templates share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

from schemas.answer import AnswerSpec, CollectionAnswer, ExpressionAnswer, NumberAnswer
from schemas.task import NearMiss

Parameters = dict[str, Any]
"""Plain JSON: numbers, strings and lists that state one problem completely, whatever words it is asked in."""


@dataclass(frozen=True)
class Template:
    """One kind of problem.

    `ask` has two wordings or more. `solve` and `resolve` find the gold in ways that share no step. `work` writes one line a
    step, the last one reaching the answer; its length is the number of hops. `slips` are the answers that a typical mistake
    gives, never a right one.
    """

    name: str
    group: str
    draw: Callable[[Random], Parameters]
    ask: Callable[[Parameters, Random], str]
    solve: Callable[[Parameters], AnswerSpec]
    resolve: Callable[[Parameters], AnswerSpec]
    work: Callable[[Parameters], list[str]]
    slips: Callable[[Parameters], list[NearMiss]]
    source: str = ""
    """Name, version and configuration of the dataset it draws from; empty for our own."""
    share: int = 1
    """Draws in a round of candidates that no configuration limits."""


SMALL = 0.8
"""Share of draws with numbers so small that a model of 100 million parameters can hope to work the problem out."""


def is_small(rng: Random) -> bool:
    return rng.random() < SMALL


def number(value: int | Fraction, unit: str | None = None) -> NumberAnswer:
    return NumberAnswer(value=str(value), unit=unit)


def numbers(shape: str, values: Sequence[int | Fraction]) -> CollectionAnswer:
    return CollectionAnswer.model_validate({"shape": shape, "items": [str(v) for v in values]})


def expression(value: object, *variables: str) -> ExpressionAnswer:
    return ExpressionAnswer(value=str(value), variables=variables)


def misses(right: object, *candidates: tuple[object, str]) -> list[NearMiss]:
    """The candidates that differ from `right` and from each other, in order."""
    seen = {str(right)}
    found = []
    for answer, why in candidates:
        if str(answer) not in seen:
            seen.add(str(answer))
            found.append(NearMiss(answer=str(answer), why=why))
    return found


def signed(number: int, variable: str = "") -> str:
    """A further term of a sum: ` + 3`, ` - 2x`, ` + x`; nothing for 0."""
    if number == 0:
        return ""
    size = "" if abs(number) == 1 and variable else str(abs(number))
    return f" {'-' if number < 0 else '+'} {size}{variable}"


def term(number: int, variable: str) -> str:
    """The first term of a sum: `3x`, `-x`."""
    return {1: variable, -1: f"-{variable}"}.get(number, f"{number}{variable}")
