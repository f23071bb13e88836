"""`grade`: a pure function of (spec, text), with three verdicts. `undecided` is nobody's failure and never counts as wrong."""

import asyncio
import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from fractions import Fraction

from pipeline.grading import collections as several
from pipeline.grading.code import CODE
from pipeline.grading.dates import readings
from pipeline.grading.final import final_answer, unfenced
from pipeline.grading.numbers import LONGEST, close, extended, quantity, stripped, without_hedge
from pipeline.grading.syntax import Unreadable, parse
from pipeline.grading.text import fold, literal, plain
from pipeline.grading.units import PLAIN, unit
from pipeline.grading.workers import WORKERS, Undecided
from schemas.answer import (
    AnswerSpec,
    CodeAnswer,
    CollectionAnswer,
    DateAnswer,
    EntityAnswer,
    ExpressionAnswer,
    NumberAnswer,
    TextAnswer,
)
from schemas.base import Record

VERSION = "5"

_CHOICE = re.compile(r"\(?([A-Z])\)?\s*(?:[:.)]\s*(.*))?", re.DOTALL)
_MORE_CHOICES = re.compile(
    r"^\W*(?:or|and)\b|(?:^|[\s,;/])(?:\([A-Z]\)|[A-Z]:)|;\s*[A-Z]\.|^(?:[^(]*\s)?[A-Z]\)|\bor\s+[A-Z](?:\.|$)|^(?:\W|[A-Z]\b|(?:or|and)\b)+$"
)
"""In what follows the letter of a choice: another letter that is chosen too, and not the text of the first."""
_NAMED_FUNCTION = re.compile(
    r"^(?:\\?[dt]?frac\{d[a-z]\}\{d[a-z]\}|d[a-z]/d[a-z]|[a-zA-Z]'{0,3}\([a-zA-Z]\)|[a-zA-Z]'{0,3})\s*=(?!=)\s*"
)


class Verdict(StrEnum):
    RIGHT = "right"
    WRONG = "wrong"
    UNDECIDED = "undecided"


class Grade(Record):
    """A verdict and, unless it is right, why."""

    verdict: Verdict
    reason: str = ""


RIGHT = Grade(verdict=Verdict.RIGHT)


def _wrong(reason: str) -> Grade:
    return Grade(verdict=Verdict.WRONG, reason=reason)


def grade(spec: AnswerSpec, text: str) -> Grade:
    """Whether the final answer of `text` is what `spec` asks for.

    Never raises on any text. Algebra beyond plain numbers runs in a killable process; what it cannot settle within its time
    and memory is undecided, with that as the reason. Code runs in a sandbox, and what it takes too much of makes it wrong.
    """
    return _grade(spec, text, WORKERS.compare)


async def agrade(spec: AnswerSpec, text: str) -> Grade:
    """`grade`, off the event loop where it needs a process; a plain answer never waits behind one that does."""
    try:
        return _grade(spec, text, _no_process)
    except _ProcessNeeded:
        return await asyncio.to_thread(grade, spec, text)


Table = list[list[str]]
Compare = Callable[[Sequence[str], Sequence[str], Sequence[str], float | None], Table]


class _ProcessNeeded(Exception):
    pass


def _no_process(golds: Sequence[str], texts: Sequence[str], variables: Sequence[str], tolerance: float | None) -> Table:
    raise _ProcessNeeded


def _grade(spec: AnswerSpec, text: str, compare: Compare) -> Grade:
    if isinstance(spec, CodeAnswer):
        return _code(spec, text, compare)
    if isinstance(spec, TextAnswer):
        return _text(spec, text)
    answer = final_answer(text)
    if answer is None:
        return _wrong("no_answer")
    if isinstance(spec, EntityAnswer):
        return _entity(spec, answer)
    if len(answer) > LONGEST:
        return Grade(verdict=Verdict.UNDECIDED, reason="too_long")
    if not _gold_is_readable(spec):
        return Grade(verdict=Verdict.UNDECIDED, reason="unreadable_gold")
    match spec:
        case NumberAnswer():
            return _number(spec, answer, compare)
        case DateAnswer():
            return _date(spec, answer)
        case ExpressionAnswer():
            return _expression(spec, answer, compare)
        case CollectionAnswer():
            judge = _interval if spec.shape == "interval" else _collection
            return judge(spec, answer, compare)


def _gold_is_readable(spec: AnswerSpec) -> bool:
    """Whether an expression or every item parses: a schema cannot tell, and no answer is wrong for a gold that means nothing."""
    try:
        match spec:
            case ExpressionAnswer():
                sides = [parse(side, spec.variables) for side in spec.value.split("=")]
                return len(sides) <= 2
            case CollectionAnswer():
                return all(extended(item) is not None or parse(item) for item in spec.items)
    except Unreadable:
        return False
    return True


def _code(spec: CodeAnswer, text: str, compare: Compare) -> Grade:
    if compare is _no_process:
        raise _ProcessNeeded
    try:
        reason = CODE.failing(spec, text)
    except Undecided as doubt:
        return Grade(verdict=Verdict.UNDECIDED, reason=str(doubt))
    return _wrong(reason) if reason else RIGHT


def _text(spec: TextAnswer, text: str) -> Grade:
    """What reading takes off an answer, quotes say, it takes off the gold too; a text that is the gold needs no reading."""
    gold = literal(unfenced(spec.value))
    if literal(unfenced(text)) == gold:
        return RIGHT
    answer = final_answer(text)
    if answer is None:
        return _wrong("no_answer")
    read = literal(final_answer(f"<answer>{spec.value}</answer>") or spec.value)
    return RIGHT if literal(answer) in (gold, read) else _wrong("other_text")


def _entity(spec: EntityAnswer, answer: str) -> Grade:
    names = {fold(name) for name in (spec.name, *spec.aliases)}
    if fold(answer) in names:
        return RIGHT
    choice = _CHOICE.fullmatch(plain(answer))
    if choice and re.fullmatch("[A-Z]", spec.name) and choice[1] == spec.name:
        return _wrong("several_choices") if _MORE_CHOICES.search(choice[2] or "") else RIGHT
    return _wrong("other_name")


def _number(spec: NumberAnswer, answer: str, compare: Compare) -> Grade:
    gold = Fraction(spec.value)
    asked = unit(plain(spec.unit or ""))
    if spec.tolerance is not None:
        answer = without_hedge(answer)
    found = quantity(answer)
    if found is not None:
        if found.unit in (PLAIN, asked):
            value = found.value
            if found.unit == PLAIN and asked.dimension == "" and asked != PLAIN:
                value /= asked.factor  # the gold is a share written in %, the answer a plain number
        elif found.unit.dimension == asked.dimension:
            value = found.value * found.unit.factor / asked.factor
        elif found.unit.dimension == "percent" and asked.dimension == "":
            value = found.value / 100 / asked.factor
        elif found.unit == unit("%") and asked.dimension == "percent":
            value = found.value
        else:
            return _wrong("other_unit")
        return RIGHT if close(value, gold, spec.tolerance) else _wrong("other_number")
    share = asked.factor if asked.dimension == "" else 1
    return _algebra(f"{spec.value}*({share})", stripped(answer), (), spec.tolerance, compare)


def _date(spec: DateAnswer, answer: str) -> Grade:
    gold = readings(spec.value)[0]
    found = readings(answer)
    if not found:
        return _wrong("no_date")
    fitting = [gold.covers(day) for day in found]
    if all(fitting):
        return RIGHT
    if any(fitting):
        return Grade(verdict=Verdict.UNDECIDED, reason="day_or_month_first")
    return _wrong("less_precise" if found[0].covers(gold) else "other_date")


def _expression(spec: ExpressionAnswer, answer: str, compare: Compare) -> Grade:
    text = answer
    if "=" not in spec.value:
        named = _NAMED_FUNCTION.match(text)
        if named and named[0].split("=")[0].strip() not in spec.variables:
            text = text[named.end() :]
    return _algebra(spec.value, text, spec.variables, None, compare)


def _algebra(gold: str, text: str, variables: tuple[str, ...], tolerance: float | None, compare: Compare) -> Grade:
    checked = _table([gold], [text], variables, tolerance, compare)
    if isinstance(checked, Grade):
        return checked
    cell = checked[0][0]
    if cell == "equal":
        return RIGHT
    return Grade(verdict=Verdict.UNDECIDED, reason=cell) if cell == "unproved" else _wrong(cell)


def _table(
    golds: Sequence[str], texts: Sequence[str], variables: tuple[str, ...], tolerance: float | None, compare: Compare
) -> Table | Grade:
    """Every gold against every text, or the grade that ends it: unreadable text is wrong before any process is asked."""
    try:
        for text in texts:
            for side in text.split("="):
                parse(side, variables)
    except Unreadable:
        return _wrong("unreadable")
    try:
        return compare(golds, texts, variables, tolerance)
    except Undecided as doubt:
        return Grade(verdict=Verdict.UNDECIDED, reason=str(doubt))


def _equalities(golds: Sequence[str], texts: Sequence[str], compare: Compare) -> Table | Grade:
    """`_table`, without a process where all are plain numbers or infinite."""
    left, right = [extended(g) for g in golds], [extended(t) for t in texts]
    if None not in left and None not in right:
        return [["equal" if g == t else "different" for t in right] for g in left]
    # A plain number may be written as algebra cannot read it, "1 1/2" say.
    read = [text if value is None else str(value) for text, value in zip(texts, right, strict=True)]
    return _table(golds, read, (), None, compare)


def _collection(spec: CollectionAnswer, answer: str, compare: Compare) -> Grade:
    found = several.items(answer, spec.shape)
    if found is None:
        return _wrong("other_shape")
    ordered = spec.shape == "tuple"
    if (ordered or spec.shape == "multiset") and len(found) != len(spec.items):
        return _wrong("other_length")
    if not found or not spec.items:
        return RIGHT if not found and not spec.items else _wrong("other_length")
    table = _equalities(spec.items, found, compare)
    if isinstance(table, Grade):
        return table
    if ordered:
        cells = [table[i][i] for i in range(len(found))]
    elif spec.shape == "set":
        cells = [_best(row) for row in table] + [_best(column) for column in zip(*table, strict=True)]
    else:
        cells = _paired(table)
    return _worst(cells)


def _best(cells: Sequence[str]) -> str:
    return next((c for c in ("equal", "unproved") if c in cells), "different")


def _worst(cells: Sequence[str]) -> Grade:
    if all(c == "equal" for c in cells):
        return RIGHT
    only_doubts = all(c in ("equal", "unproved") for c in cells)
    return Grade(verdict=Verdict.UNDECIDED, reason="unproved") if only_doubts else _wrong("other_members")


def _paired(table: Table) -> list[str]:
    """A cell for each gold of a multiset, each text used once; equality is transitive, so greedy pairing is exact."""
    free = set(range(len(table[0])))
    cells = []
    for row in table:
        match = min(
            free, key=lambda j: (("equal", "unproved").index(row[j]) if row[j] in ("equal", "unproved") else 2, j)
        )
        cells.append(row[match])
        free.discard(match)
    return cells


def _interval(spec: CollectionAnswer, answer: str, compare: Compare) -> Grade:
    found = several.interval(answer)
    if found is None:
        return _wrong("other_shape")
    low, high = spec.items
    gold = several.Interval(low, high, spec.closed)
    table = _equalities((low, high), (found.low, found.high), compare)
    if isinstance(table, Grade):
        return table
    ends = _worst([table[0][0], table[1][1]])
    if ends.verdict is not Verdict.RIGHT:
        return ends
    open_at_infinity = tuple(shut and "oo" not in end for shut, end in zip(gold.closed, (low, high), strict=True))
    return RIGHT if found.closed == open_at_infinity else _wrong("other_ends")
