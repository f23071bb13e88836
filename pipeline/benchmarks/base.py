"""What a format says of a row, and the typed gold of a published answer."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.grading.dates import Day, readings
from pipeline.grading.numbers import quantity
from pipeline.grading.units import PLAIN
from schemas.answer import AnswerSpec, DateAnswer, EntityAnswer, NumberAnswer

LONGEST = 12
"""Words of an answer that somebody may give back word for word."""
_FORMULA = re.compile(r"[\\^_{}=<>≤≥$|]")


class Skip(Exception):
    """A row that is no task; the message is the reason, one word."""


@dataclass(frozen=True, slots=True)
class Item:
    """A row that can be a task. `id` is empty where the format has none; `category` is the stratum inside the benchmark."""

    question: str
    gold: AnswerSpec
    id: str = ""
    category: str = "all"


@dataclass(frozen=True, slots=True)
class Format:
    """`columns` tell the format from others; `read` makes an item of a row, or raises `Skip`."""

    name: str
    columns: frozenset[str]
    read: Callable[[Mapping[str, Any]], Item]


def text(row: Mapping[str, Any], column: str) -> str:
    """A cell without space around it; empty where there is none. Raises `Skip` for half a character."""
    value = row.get(column)
    found = "" if value is None else str(value).strip()
    if any("\ud800" <= letter <= "\udfff" for letter in found):
        raise Skip("no_text")
    return found


def gold(answer: str) -> AnswerSpec:
    """The spec of a free-text answer: what is wholly a plain number or a date is one, other text is a name without aliases.

    Raises `Skip` for what no rule can grade: a formula, whose kind the file does not say, and prose.
    """
    if not answer:
        raise Skip("empty_answer")
    if (number := quantity(answer)) is not None and number.unit == PLAIN:
        try:
            return NumberAnswer(value=str(number.value))
        except ValueError:
            raise Skip("number_too_long") from None
    if len(days := readings(answer)) == 1:
        return DateAnswer(value=_iso(days[0]))
    if _FORMULA.search(answer):
        raise Skip("formula")
    if len(answer.split()) > LONGEST:
        raise Skip("prose")
    return EntityAnswer(entity=answer, name=answer)


def _iso(day: Day) -> str:
    year = f"{'-' if day.year < 0 else ''}{abs(day.year):04d}"
    return "-".join([year, *(f"{part:02d}" for part in (day.month, day.day) if part is not None)])
