"""The questions that are really asked: a few hundred about the atlas."""

import re
from collections import Counter
from functools import cache

import pytest

from pipeline.families.hard_search import HardSearch, parse
from pipeline.families.hard_search.proof import minimal, unique
from schemas.answer import EntityAnswer
from schemas.config import HardSearchConfig
from schemas.query import Clue, Query
from schemas.task import Task
from tests.worlds import atlas

CANDIDATES = 300
pytestmark = pytest.mark.timeout(900)
"""The first test that needs the atlas may have to build it."""


@cache
def tasks() -> list[Task]:
    family = HardSearch(atlas(), HardSearchConfig())
    return [task for index in range(CANDIDATES) if isinstance(task := family(1, index), Task)]


def asked(task: Task) -> Query:
    assert isinstance(task.constraints, Query)
    return task.constraints


def clues(query: Query) -> list[Clue]:
    """Of every level."""
    inner = [c.target for c in query.clues if isinstance(c.target, Query)]
    return [*query.clues, *(clue for q in inner for clue in clues(q))]


def test_misses_are_rare() -> None:
    assert len(tasks()) > 0.95 * CANDIDATES


def test_every_question_is_certified_on_the_world_and_minimal() -> None:
    for task in tasks():
        assert isinstance(task.answer, EntityAnswer)
        assert unique(atlas(), asked(task), task.answer.entity), task.question
        assert minimal(atlas(), asked(task)), task.question


def test_every_question_parses_back_to_its_constraints() -> None:
    for task in tasks():
        assert parse(task.question, atlas()).signature == task.constraints.signature, task.question


def test_questions_are_plain_english() -> None:
    wrong = re.compile(
        r"  |\b(the the|a a|an an|a the|an the|at at|of of|in in|a [aeioAEIO]|an [^aeiouAEIOU])\b|[ ,][.,?;]|[{}\[\]|]|\bNone\b"
    )
    for task in tasks():
        assert not wrong.search(task.question), task.question
        assert task.question[0].isupper()
        assert "name of" in task.question or re.match(r"(As of \d{4}, )?[Nn]ame the ", task.question)


def test_a_question_about_dated_facts_says_as_of_when() -> None:
    world = atlas()
    for task in tasks():
        dated = any(world.relations[c.relation].dated for c in clues(asked(task)))
        assert task.question.startswith("As of 20") == dated, task.question


def test_evidence_quotes_the_pages_word_for_word() -> None:
    for task in tasks():
        assert len(task.evidence) == asked(task).hops
        for item in task.evidence:
            page = atlas().documents[item.document]
            assert (page.hash, page.text[item.start : item.end]) == (item.document_hash, item.quote)
            assert item.quote.endswith(".")


def test_strata_are_spread() -> None:
    """A third of the plans name every end, a quarter describe one; the rest hide ends in other ways."""
    ways = Counter(t.stratum.split("/")[4] for t in tasks())
    assert set(ways) == {"none", "band", "region", "described", "mixed"}
    assert ways["none"] > 0.25 * len(tasks()) and ways["described"] > 0.15 * len(tasks())
    hops = Counter(asked(t).hops for t in tasks())
    assert set(hops) == {3, 4, 5, 6, 7}


def test_no_answer_and_no_relation_is_common() -> None:
    answers = Counter(t.answer.name for t in tasks() if isinstance(t.answer, EntityAnswer))
    assert answers.most_common(1)[0][1] <= 0.05 * len(tasks())
    relations = Counter(c.relation for t in tasks() for c in clues(asked(t)))
    assert len(relations) >= 30
    assert relations.most_common(1)[0][1] <= 0.15 * relations.total()


def test_questions_are_hardly_ever_asked_twice() -> None:
    assert len({t.constraints.signature for t in tasks()}) > 0.9 * len(tasks())
