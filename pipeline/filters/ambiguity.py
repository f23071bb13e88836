"""Rejects a question whose clues more than one entity, or none, can satisfy."""

from pipeline.corpora.world import World
from pipeline.filters.base import Certifier, Filter, listed, need
from schemas.answer import EntityAnswer
from schemas.certificate import Certificate
from schemas.query import Query
from schemas.task import Task

VERSION = "1"
SHOWN = 5


def ambiguity(task: Task, world: World) -> Certificate:
    """Both readings of the world must leave the answer alone: what facts prove, and what no fact refutes.

    The second one keeps a missing fact from making an answer look unique.
    """
    certify = Certifier(task, "ambiguity", VERSION)
    if not isinstance(task.constraints, Query) or not isinstance(task.answer, EntityAnswer):
        raise TypeError(f"a {task.constraints.kind} with an {task.answer.kind} answer has no uniqueness certificate")
    answer = frozenset({task.answer.entity})
    certain, possible = world.certain(task.constraints), world.possible(task.constraints)
    if certain != answer:
        reason = "answer_not_proved" if not answer <= certain else "several_answers"
        return certify.reject(reason, witnesses=listed(certain - answer)[:SHOWN])
    if possible != answer:
        return certify.reject("several_possible_answers", witnesses=listed(possible - answer)[:SHOWN])
    runners_up = world.runners_up(task.constraints)
    return certify.keep(runners_up=listed(runners_up)[:SHOWN], runners_up_count=len(runners_up))


FILTER = Filter("ambiguity", VERSION, lambda task, given: ambiguity(task, need(given.world, "world")))
