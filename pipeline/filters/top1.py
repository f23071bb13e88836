"""Rejects a question that one search answers, and one whose evidence no search finds."""

from collections.abc import Iterator

from infra.search import SearchIndex
from pipeline.binding import facts_behind, names_of
from pipeline.corpora.world import World
from pipeline.filters.base import Certifier, Filter, listed, need
from pipeline.filters.leaks import mentions
from schemas.answer import EntityAnswer
from schemas.certificate import Certificate
from schemas.query import Clue, Query
from schemas.task import Task

VERSION = "1"
GUESS = 0.25
"""Chance at which naming an entity of the right type off the first result makes a question trivial."""
GLANCE, REACH = 5, 100
"""Results among which the evidence must appear for some query that an honest searcher could write; most is at the top."""


def top1(task: Task, world: World, index: SearchIndex) -> Certificate:
    """Trivial when the best result for the question gives the answer away; infeasible when a page of the evidence stays unseen.

    The best result gives it away by being its page, or when its snippet names so few entities of the type, other than those
    that the question names, that picking one is right with probability `GUESS` or more. That chance is the score.
    """
    certify = Certifier(task, "top1", VERSION)
    if not isinstance(task.constraints, Query) or not isinstance(task.answer, EntityAnswer):
        raise TypeError(f"a {task.constraints.kind} with an {task.answer.kind} answer is not searched for")
    hits = index.search(task.question, k=1)
    page = hits[0].id if hits else ""
    if page == task.answer.entity:
        return certify.reject("single_search", score=1.0, page=page)
    choices = _choices(task, f"{hits[0].title}. {hits[0].snippet}", task.constraints.type, world) if hits else set()
    chance = 1 / len(choices) if task.answer.entity in choices else 0.0
    if chance >= GUESS:
        return certify.reject("single_search", score=chance, page=page, choices=listed(choices))
    wanted = {item.document for item in task.evidence}
    if unseen := _unseen(wanted, list(_searches(task.constraints, task.answer.entity, world)), index):
        return certify.reject("unreachable", score=chance, pages=listed(unseen))
    return certify.keep(score=chance, pages=len(wanted))


def _choices(task: Task, shown: str, type: str, world: World) -> set[str]:
    """Entities of the type that the text names and the question does not."""
    return {
        entity
        for entity in world.of_type(type)
        if any(mentions(shown, name) and not mentions(task.question, name) for name in names_of(entity, world))
    }


def _unseen(wanted: set[str], queries: list[str], index: SearchIndex) -> set[str]:
    """Pages that no query finds."""
    unseen = set(wanted)
    for k in (GLANCE, REACH):
        for query in queries:
            if not unseen:
                return unseen
            unseen -= {hit.id for hit in index.search(query, k=k)}
    return unseen


def _searches(query: Query, entity: str, world: World) -> Iterator[str]:
    """What a searcher may ask who works from the inside out: a clue said of its target, the target alone, all the clues.

    The target of a nested clue is known by then; the answer's own name never is.
    """
    for clue in query.clues:
        for _, target in facts_behind(clue, entity, world)[:1]:
            if isinstance(clue.target, Query):
                yield from _searches(clue.target, target, world)
            name = world.entities[target].name if target else ""
            yield f"{query.type} {_said(clue, world, name)}"
            if name:
                yield name
    yield " ".join([query.type, *(_said(clue, world, "") for clue in query.clues)])


def _said(clue: Clue, world: World, name: str) -> str:
    relation = world.relations[clue.relation]
    words = relation.inverse_clue if clue.inverse and relation.inverse_clue else relation.clue
    return words.replace("{o}", name).replace("{s}", name)


FILTER = Filter(
    "top1", VERSION, lambda task, given: top1(task, need(given.world, "world"), need(given.world, "world").index)
)
