"""Rejects a question that one search answers, and one whose evidence no search finds."""

from collections.abc import Iterator

from infra.search import SearchIndex
from pipeline.corpora.world import World
from pipeline.filters.base import Certifier, Filter, listed, need
from pipeline.filters.leaks import mentions, names_of
from schemas.answer import EntityAnswer
from schemas.certificate import Certificate
from schemas.query import Band, Clue, EntityRef, Query
from schemas.task import Task

VERSION = "1"
SNIPPETS = 1
"""Results whose title and snippet are read; the question itself is the query."""
REACH = 100
"""Results among which the evidence must appear for some query that an honest searcher could write."""


def top1(task: Task, world: World, index: SearchIndex) -> Certificate:
    """Trivial when the best result of the question names the answer; infeasible when a page of the evidence stays unseen."""
    certify = Certifier(task, "top1", VERSION)
    if not isinstance(task.constraints, Query) or not isinstance(task.answer, EntityAnswer):
        raise TypeError(f"a {task.constraints.kind} with an {task.answer.kind} answer is not searched for")
    names = (task.answer.name, *names_of(task.answer.entity, world), *task.answer.aliases)
    for rank, hit in enumerate(index.search(task.question, k=SNIPPETS), start=1):
        shown = f"{hit.title}. {hit.snippet}"
        if found := next((name for name in names if mentions(shown, name)), None):
            return certify.reject("single_search", rank=rank, page=hit.id, name=found)
    wanted = {item.document for item in task.evidence} | ({task.answer.entity} & world.documents.keys())
    unseen = set(wanted)
    queries = 0
    for query in _searches(task.constraints, task.answer.entity, world):
        if not unseen:
            break
        queries += 1
        unseen -= {hit.id for hit in index.search(query, k=REACH)}
    if unseen:
        return certify.reject("unreachable", pages=listed(unseen), queries=queries)
    return certify.keep(pages=len(wanted), queries=queries)


def _searches(query: Query, entity: str, world: World) -> Iterator[str]:
    """What a searcher may ask who works from the inside out: a clue said of its target, the target alone, the clue alone.

    The target of a nested clue is known by then; the answer's own name never is.
    """
    for clue in query.clues:
        for target in _targets(clue, entity, world):
            if isinstance(clue.target, Query):
                yield from _searches(clue.target, target, world)
            name = world.entities[target].name
            yield f"{query.type} {_said(clue, world, name)}"
            yield name
    yield " ".join([query.type, *(_said(clue, world, "") for clue in query.clues)])


def _targets(clue: Clue, entity: str, world: World) -> list[str]:
    match clue.target:
        case EntityRef(entity=target):
            return [target]
        case Band():
            return []
        case Query() as inner:
            ends = world.subjects(clue.relation, entity) if clue.inverse else world.objects(entity, clue.relation)
            return sorted(end for end in ends & world.certain(inner) if isinstance(end, str))


def _said(clue: Clue, world: World, name: str) -> str:
    relation = world.relations[clue.relation]
    words = relation.inverse_clue if clue.inverse and relation.inverse_clue else relation.clue
    return words.replace("{o}", name).replace("{s}", name)


FILTER = Filter(
    "top1", VERSION, lambda task, given: top1(task, need(given.world, "world"), need(given.world, "world").index)
)
