"""Rejects a question that can be answered without finding every fact it asks for."""

from collections.abc import Iterator

from pipeline.corpora.world import World
from pipeline.filters.base import Certifier, Filter, need
from schemas.certificate import Certificate
from schemas.query import Clue, Query
from schemas.task import Task

VERSION = "1"


def shortcuts(task: Task, world: World) -> Certificate:
    """Leaving out any one clue, described ones included, must leave a second entity that facts prove to fit.

    Then no smaller set of clues identifies the answer either, and every hop is needed. The score is the smallest number
    of entities that all clues but one leave.
    """
    certify = Certifier(task, "shortcuts", VERSION)
    if not isinstance(task.constraints, Query):
        raise TypeError(f"a {task.constraints.kind} has no clues to leave out")
    left = len(world.of_type(task.constraints.type))
    for clue, rest in without_one(task.constraints):
        count = len(world.certain(rest))
        if count < 2:
            return certify.reject("redundant_clue", clue=clue.model_dump(mode="json"))
        left = min(left, count)
    return certify.keep(score=left)


def without_one(query: Query) -> Iterator[tuple[Clue, Query]]:
    """Each clue at any depth, with the query that lacks it. A description without clues stands for anything of its type."""
    for i, clue in enumerate(query.clues):
        others = query.clues[:i], query.clues[i + 1 :]
        yield clue, query.model_copy(update={"clues": (*others[0], *others[1])})
        if isinstance(clue.target, Query):
            for inner, target in without_one(clue.target):
                looser = clue.model_copy(update={"target": target})
                yield inner, query.model_copy(update={"clues": (*others[0], looser, *others[1])})


FILTER = Filter("shortcuts", VERSION, lambda task, given: shortcuts(task, need(given.world, "world")))
