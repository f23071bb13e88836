"""Rejects wordings that have no one checkable answer, whatever the facts are."""

import re
from collections.abc import Iterator

from pipeline.census import tokens
from pipeline.corpora.world import World
from pipeline.filters.base import Certifier, Filter
from schemas.answer import EntityAnswer, ExpressionAnswer, NumberAnswer, canonical_answer
from schemas.certificate import Certificate
from schemas.query import Query
from schemas.task import Task

VERSION = "1"
SHORTEST, LONGEST = 4, 400
"""Words and signs of a question."""
LONGEST_NAME = 3
"""Words of a named gold of a computed question; more is prose that no grader can compare."""


def _pattern(*words: str, names: bool = False) -> re.Pattern[str]:
    """Any of the words; `names`: not capitalised, since Best and Worst are also places."""
    return re.compile(rf"\b(?:{'|'.join(words)})\b", 0 if names else re.IGNORECASE)


RELATIVE_TIME = _pattern(
    r"(?<!electric )(?<!alternating )(?<!direct )(?<!ocean )current(?:ly)?",
    "latest|newest|now|nowadays|today|tonight|yesterday|tomorrow|at present|presently|recent(?:ly)?|incumbent",
    "so far|to date|as of now|until now|up to now|these days",
    "(?:last|this|next) (?:year|month|week|decade|century|season|election)",
    "(?:how )?(?:many|much) (?:days|weeks|months|years|time) (?:ago|since)",
)
AS_OF = re.compile(
    r"\b(?:as of|in|on|at the end of|by|according to|for)\b[^.?!;]{0,40}?\b(?:1\d{3}|20\d{2})\b", re.IGNORECASE
)
SUPERLATIVE = _pattern(
    "largest|biggest|smallest|highest|lowest|longest|shortest|tallest|oldest|youngest|richest|poorest|greatest|fewest",
    "heaviest|lightest|deepest|best|worst|the (?:most|least) [a-z]+",
    names=True,
)
OWNED = re.compile(r"(?:\b(?:whose|its|their|his|her)|'s)\s+(?:[\w-]+\s+){0,2}$", re.IGNORECASE)
SCOPED = re.compile(r"^[^.?!;,]{0,60}?\b(?:of|in|among|within|on|from|by)\b", re.IGNORECASE)
YES_NO = re.compile(
    r"^(?:is|are|was|were|do|does|did|can|could|has|have|had|will|would|should|may|must)\b", re.IGNORECASE
)
CHOICE = re.compile(
    r"which of the following|true or false|(?:^|\s)\(?A[).:]\s.*\s\(?B[).:]\s", re.IGNORECASE | re.DOTALL
)
PROOF = _pattern("prove|disprove|show that|demonstrate that|justify|explain why|verify that")
OPEN_LIST = _pattern(
    r"(?:what|which|who|name|give|find) (?:is |are |was |were )?(?:any )?one of",
    "such as",
    "or similar",
    "name (?:an?|any|some|two|three)",
    "give an example",
)
SECOND_QUESTION = re.compile(
    r"\?.*\?|[,;] and (?:what|who|when|where|why|how many|how much) (?:is|are|was|were|did|does|do|has|have)\b",
    re.IGNORECASE | re.DOTALL,
)
MEASURE = _pattern("how (?:long|tall|far|heavy|high|deep|fast|wide|big|large|old)")
UNIT_WORDS = {
    "km²": ("square kilomet", "km2", "sq km"),
    "km": ("kilomet",),
    "m": ("metre", "meter"),
    "people": ("people", "inhabitants", "population", "how many"),
    "year": ("year", "when"),
    "%": ("percent", "per cent"),
    "u": ("atomic mass unit", "dalton"),
}


def form(task: Task, world: World | None) -> Certificate:
    """The first defect found names the reject; the words that show it are stored."""
    certify = Certifier(task, "form", VERSION)
    for reason, shown in _defects(task, world):
        return certify.reject(reason, shown=shown)
    return certify.keep()


def _defects(task: Task, world: World | None) -> Iterator[tuple[str, str]]:
    question = task.question.strip()
    if not SHORTEST <= (length := len(tokens(question))) <= LONGEST:
        yield ("too_short" if length < SHORTEST else "too_long"), f"{length} words"
    yield from _uncheckable(task, question)
    if found := SECOND_QUESTION.search(question):
        yield "several_questions", found.group()[-60:]
    if found := OPEN_LIST.search(question):
        yield "open_list", found.group()
    if isinstance(task.answer, NumberAnswer):
        yield from _unit(task.answer, question)
    if isinstance(task.constraints, Query):
        yield from _moves_with_time(task.constraints, question, world)
        yield from _unanchored(question)


def _uncheckable(task: Task, question: str) -> Iterator[tuple[str, str]]:
    """Proofs, yes/no and multiple choice can be guessed or not compared at all; so can golds that are prose."""
    gold = canonical_answer(task.answer)
    if found := PROOF.search(question):
        yield "proof", found.group()
    if found := CHOICE.search(question):
        yield "multiple_choice", found.group()[:60]
    asked = re.split(r"(?<=[.!?:;\n])\s+", question)[-1]
    if YES_NO.match(asked) or gold.casefold() in {"yes", "no", "true", "false"}:
        yield "yes_no", asked[:60]
    words = re.findall(r"[^\W\d_]{2,}", gold)
    prose = (
        isinstance(task.answer, EntityAnswer | ExpressionAnswer) and task.family == "math" and len(words) > LONGEST_NAME
    )
    if prose or gold.endswith("."):
        yield "prose_gold", gold[:60]


def _unit(gold: NumberAnswer, question: str) -> Iterator[tuple[str, str]]:
    """A measure needs a unit, and a unit that the gold has must be asked for."""
    if gold.unit is None:
        if found := MEASURE.search(question):
            yield "missing_unit", found.group()
        return
    words = (gold.unit, *UNIT_WORDS.get(gold.unit, ()))
    if not any(re.search(rf"(?<!\w){re.escape(word)}", question, re.IGNORECASE) for word in words):
        yield "missing_unit", gold.unit


def _moves_with_time(query: Query, question: str, world: World | None) -> Iterator[tuple[str, str]]:
    """Words that mean another time to every reader, and facts that move, need a stated date."""
    if AS_OF.search(question):
        return
    if found := RELATIVE_TIME.search(question):
        yield "relative_time", found.group()
    if world is not None:
        for relation in _relations(query):
            if world.relations[relation].dated:
                yield "dated_without_as_of", relation


def _relations(query: Query) -> Iterator[str]:
    for clue in query.clues:
        yield clue.relation
        if isinstance(clue.target, Query):
            yield from _relations(clue.target)


def _unanchored(question: str) -> Iterator[tuple[str, str]]:
    """A superlative needs a whole to be the most of: "the largest city in Chad", "whose highest point is Emi Koussi"."""
    for found in SUPERLATIVE.finditer(question):
        if not OWNED.search(question[: found.start()]) and not SCOPED.match(question[found.end() :]):
            yield "unanchored_superlative", found.group()


FILTER = Filter("form", VERSION, lambda task, given: form(task, given.world))
