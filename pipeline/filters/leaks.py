"""Rejects a question that contains its own answer, or the name of an entity it only describes."""

import re
from collections.abc import Iterable
from functools import lru_cache

from pipeline.binding import described, names_of
from pipeline.census import tokens, words
from pipeline.corpora.world import World
from pipeline.filters.base import Certifier, Filter
from schemas.answer import AnswerSpec, EntityAnswer, NumberAnswer, canonical_answer
from schemas.certificate import Certificate
from schemas.query import Query, named
from schemas.task import Task

VERSION = "1"
SHORT = 3
"""A name of so few letters ("US", "IN") is only found as it is written, or every "in" would be Indiana."""


def leaks(task: Task, world: World | None) -> Certificate:
    """Names are compared as whole words without case and accents, so "Niger" is not in "Nigeria"; formulas with their signs.

    "Virginia" in "West Virginia" is no mention where the question asks about West Virginia. A short number is no leak: "2"
    stands in many questions whose answer happens to be 2.
    """
    certify = Certifier(task, "leaks", VERSION)
    if not isinstance(task.answer, EntityAnswer):
        formula = _formula_in(task.question, task.answer)
        return certify.reject("answer_in_question", name=formula) if formula else certify.keep()
    query = task.constraints if isinstance(task.constraints, Query) else None
    given = {name for entity in named(query) for name in names_of(entity, world)} if world and query else set()
    for name in (task.answer.name, *task.answer.aliases):
        if mentions(_without_longer(task.question, name, given), name):
            return certify.reject("answer_in_question", name=name)
    if world and query:
        for entity in sorted(described(query, task.answer.entity, world)):
            for name in names_of(entity, world):
                if mentions(_without_longer(task.question, name, given), name):
                    return certify.reject("described_entity_named", entity=entity, name=name)
    return certify.keep()


def mentions(text: str, name: str) -> bool:
    """Whether the words of `name` stand in `text` in a row."""
    if len(name) <= SHORT and name.isupper():
        return name in _as_written(text)
    return _contains(words(text), words(name))


@lru_cache(maxsize=1 << 12)
def _as_written(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text))


def _contains(have: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    if not wanted or wanted[0] not in have:
        return False
    return any(have[i : i + len(wanted)] == wanted for i in range(len(have) - len(wanted) + 1))


def _without_longer(text: str, name: str, given: Iterable[str]) -> str:
    """The text without those given names that contain `name` and more."""
    for longer in sorted(given, key=lambda other: (-len(other), other)):
        if len(words(longer)) > len(words(name)) and mentions(longer, name):
            text = re.sub(rf"(?<!\w){re.escape(longer)}(?!\w)", "_", text, flags=re.IGNORECASE)
    return text


def _formula_in(question: str, gold: AnswerSpec) -> str | None:
    text = gold.value if isinstance(gold, NumberAnswer) else canonical_answer(gold)
    return text if len(text) > SHORT and _contains(tokens(question), tokens(text)) else None


FILTER = Filter("leaks", VERSION, lambda task, given: leaks(task, given.world))
