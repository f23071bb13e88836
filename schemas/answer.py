"""Typed golds: the grader never guesses what kind of answer it compares."""

import json
import keyword
import re
from datetime import date
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from schemas.base import Record

_EXACT = re.compile(r"-?([0-9]+(\.[0-9]+)?|[0-9]+/0*[1-9][0-9]*)")


class EntityAnswer(Record):
    """A name. Any of `aliases` is as right as `name`; nothing else is."""

    kind: Literal["entity"] = "entity"
    entity: str
    name: str = Field(pattern=r"\S")
    aliases: tuple[str, ...] = ()


class NumberAnswer(Record):
    """A number. `value` is an exact decimal or fraction ("-3", "0.25", "7/3"), as long as a factorial's may be.

    `tolerance` is relative and `None` means exact. `unit` must be given back in the same or a convertible unit where the
    answer states one; `None` means a plain number.
    """

    kind: Literal["number"] = "number"
    value: str
    tolerance: float | None = Field(default=None, ge=0, lt=1, allow_inf_nan=False)
    unit: str | None = Field(default=None, max_length=100)

    @field_validator("value")
    @classmethod
    def _is_exact(cls, value: str) -> str:
        if len(value) > 4_200 or not _EXACT.fullmatch(value):
            raise ValueError(
                f"{value[:40]!r}: is no exact number; write a decimal or fraction of at most 4,200 characters"
            )
        return value


def is_day(year: int, month: int = 1, day: int = 1) -> bool:
    """Whether the Gregorian calendar, which repeats every 400 years, has that day. Year 0 is 1 BC."""
    try:
        return bool(date(2000 + year % 400, month, day))
    except ValueError:
        return False


class DateAnswer(Record):
    """An ISO date as precise as `value` writes it: "1987", "1987-03" or "1987-03-12"."""

    kind: Literal["date"] = "date"
    value: str = Field(pattern=r"^-?[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?$")

    @field_validator("value")
    @classmethod
    def _is_in_the_calendar(cls, value: str) -> str:
        sign, digits = ("-", value[1:]) if value.startswith("-") else ("", value)
        year, *rest = digits.split("-")
        if not is_day(int(sign + year), *map(int, rest)):
            raise ValueError(f"{value}: is no day of the calendar; give a date that exists")
        return value


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

    @model_validator(mode="after")
    def _has_two_ends(self) -> Self:
        if self.shape == "interval" and len(self.items) != 2:
            raise ValueError(f"items={len(self.items)}: an interval has two ends; give both, -oo and oo included")
        return self


class CodeAnswer(Record):
    """A Python function called `entry`, judged by what it gives.

    Each of `cases` is the JSON list of its arguments and the JSON of the value expected. JSON's lists stand for tuples too.
    """

    kind: Literal["code"] = "code"
    entry: str = Field(max_length=100)
    cases: tuple[tuple[str, str], ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _can_be_judged(self) -> Self:
        if not self.entry.isidentifier() or keyword.iskeyword(self.entry):
            raise ValueError(f"entry={self.entry!r}: is no name of a function; give one that Python takes")
        seen = set()
        for case in self.cases:
            try:
                arguments, _ = map(json.loads, case)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"case={case}: is no JSON ({error}); write a list of arguments and a value") from error
            if not isinstance(arguments, list):
                raise ValueError(f"arguments={case[0]}: are no list; write one item for each argument")
            seen.add(_arguments_key(case))
        if len(seen) != len(self.cases):
            raise ValueError("cases: two have the same arguments; keep one of them")
        return self


class TextAnswer(Record):
    """Literal text, such as what a program prints. Case, spacing, typography and marks around it all do not count; the rest does."""

    kind: Literal["text"] = "text"
    value: str = Field(pattern=r"[\p{L}\p{N}]")


def _arguments_key(case: tuple[str, str]) -> str:
    return json.dumps(json.loads(case[0]), sort_keys=True)


AnswerSpec = Annotated[
    EntityAnswer | NumberAnswer | DateAnswer | ExpressionAnswer | CollectionAnswer | CodeAnswer | TextAnswer,
    Field(discriminator="kind"),
]


def canonical_answer(spec: AnswerSpec) -> str:
    """The one text a release shows for a gold. It grades right against its own spec; of code it is a table of the cases."""
    match spec:
        case EntityAnswer():
            return spec.name
        case NumberAnswer():
            return f"{spec.value} {spec.unit}" if spec.unit else spec.value
        case DateAnswer() | ExpressionAnswer() | TextAnswer():
            return spec.value
        case CodeAnswer():
            table = {_arguments_key(case): case[1] for case in spec.cases}
            return (
                f"import json\n\n\ndef {spec.entry}(*arguments):\n    table = {table!r}\n"
                "    return json.loads(table[json.dumps(arguments, sort_keys=True)])"
            )
        case CollectionAnswer():
            body = ", ".join(spec.items)
            match spec.shape:
                case "set" | "multiset":
                    return "{" + body + "}"
                case "tuple":
                    return f"({body})"
                case "interval":
                    return f"{'[' if spec.closed[0] else '('}{body}{']' if spec.closed[1] else ')'}"
