"""Typed golds: the grader never guesses what kind of answer it compares."""

from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field, field_validator

from schemas.base import Record


class EntityAnswer(Record):
    """A name. Any of `aliases` is as right as `name`; nothing else is."""

    kind: Literal["entity"] = "entity"
    entity: str
    name: str
    aliases: tuple[str, ...] = ()


class NumberAnswer(Record):
    """A number. `value` is an exact decimal or fraction ("-3", "0.25", "7/3").

    `tolerance` is relative and `None` means exact. `unit` must be given back in the same or a convertible unit where the
    answer states one; `None` means a plain number.
    """

    kind: Literal["number"] = "number"
    value: str
    tolerance: float | None = Field(default=None, ge=0, lt=1, allow_inf_nan=False)
    unit: str | None = None

    @field_validator("value")
    @classmethod
    def _is_exact(cls, value: str) -> str:
        if len(value) > 8_000 or "e" in value.lower():
            raise ValueError("write the number out, as a decimal or a fraction of at most 8,000 characters")
        try:
            Fraction(value)
        except ZeroDivisionError as error:
            raise ValueError("the fraction has the denominator 0") from error
        return value


class DateAnswer(Record):
    """An ISO date as precise as `value` writes it: "1987", "1987-03" or "1987-03-12"."""

    kind: Literal["date"] = "date"
    value: str = Field(pattern=r"^-?\d{4}(-\d{2}(-\d{2})?)?$")


class ExpressionAnswer(Record):
    """An algebraic expression in `variables`, written for sympy; equal means identically equal."""

    kind: Literal["expression"] = "expression"
    value: str
    variables: tuple[str, ...] = ()


class CollectionAnswer(Record):
    """Several numbers or expressions. `shape` decides whether order and repetition count.

    For `interval`, `items` are the two ends and `closed` says which belong to it.
    """

    kind: Literal["collection"] = "collection"
    shape: Literal["set", "multiset", "tuple", "interval"]
    items: tuple[str, ...]
    closed: tuple[bool, bool] = (True, True)


AnswerSpec = Annotated[
    EntityAnswer | NumberAnswer | DateAnswer | ExpressionAnswer | CollectionAnswer, Field(discriminator="kind")
]


def canonical_answer(spec: AnswerSpec) -> str:
    """The one text a release shows for a gold. It grades right against its own spec."""
    match spec:
        case EntityAnswer():
            return spec.name
        case NumberAnswer():
            return f"{spec.value} {spec.unit}" if spec.unit else spec.value
        case DateAnswer() | ExpressionAnswer():
            return spec.value
        case CollectionAnswer():
            body = ", ".join(spec.items)
            match spec.shape:
                case "set" | "multiset":
                    return "{" + body + "}"
                case "tuple":
                    return f"({body})"
                case "interval":
                    return f"{'[' if spec.closed[0] else '('}{body}{']' if spec.closed[1] else ')'}"
