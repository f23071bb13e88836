"""Rejects a question that contains its own answer, or the name of an entity it only describes."""

from collections.abc import Iterator

from pipeline.census import tokens, words
from pipeline.corpora.world import World
from pipeline.filters.base import Certifier, Filter
from schemas.answer import AnswerSpec, EntityAnswer, NumberAnswer, canonical_answer
from schemas.certificate import Certificate
from schemas.query import Query
from schemas.task import Task

VERSION = "1"
SHORT = 3
"""A name of so few letters ("US", "IN") is only found as it is written, or every "in" would be Indiana."""


def leaks(task: Task, world: World | None) -> Certificate:
    """Names are compared as whole words without case and accents, so "Niger" is not in "Nigeria"; formulas with their signs.

    A short number is no leak: "2" stands in many questions whose answer happens to be 2.
    """
    certify = Certifier(task, "leaks", VERSION)
    if isinstance(task.answer, EntityAnswer):
        gold = next((n for n in (task.answer.name, *task.answer.aliases) if mentions(task.question, n)), None)
    else:
        gold = _formula_in(task.question, task.answer)
    if gold is not None:
        return certify.reject("answer_in_question", name=gold)
    if world is not None and isinstance(task.constraints, Query):
        for entity in sorted(_described(task.constraints, world)):
            for name in names_of(entity, world):
                if mentions(task.question, name):
                    return certify.reject("described_entity_named", entity=entity, name=name)
    return certify.keep()


def mentions(text: str, name: str) -> bool:
    """Whether the words of `name` stand in `text` in a row."""
    if len(name) <= SHORT and name.isupper():
        return name in "".join(c if c.isalnum() else " " for c in text).split()
    return _contains(words(text), words(name))


def names_of(entity: str, world: World) -> tuple[str, ...]:
    found = world.entities[entity]
    return tuple(dict.fromkeys((found.name, found.title, *found.aliases)))


def _contains(have: list[str], wanted: list[str]) -> bool:
    if not wanted:
        return False
    return any(have[i : i + len(wanted)] == wanted for i in range(len(have) - len(wanted) + 1))


def _formula_in(question: str, gold: AnswerSpec) -> str | None:
    text = gold.value if isinstance(gold, NumberAnswer) else canonical_answer(gold)
    return text if len(text) > SHORT and _contains(tokens(question), tokens(text)) else None


def _described(query: Query, world: World) -> Iterator[str]:
    """Entities that a nested query stands for: the reader must find them, so the text may not name them."""
    for clue in query.clues:
        if isinstance(clue.target, Query):
            yield from world.certain(clue.target)
            yield from _described(clue.target, world)


FILTER = Filter("leaks", VERSION, lambda task, given: leaks(task, given.world))
