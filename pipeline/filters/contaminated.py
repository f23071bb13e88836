"""Rejects a task that asks what a held-out one asks, or for what it asks for."""

from pipeline.apart import HeldOut
from pipeline.filters.base import Certifier, Filter
from schemas.certificate import Certificate
from schemas.task import Task

VERSION = "1"


def contaminated(task: Task, held_out: HeldOut) -> Certificate:
    """Formal question and answer, not words: the same clues said otherwise are the same question."""
    certify = Certifier(task, "contaminated", VERSION)
    shared = held_out.shared(task)
    return certify.reject(shared) if shared else certify.keep()


FILTER = Filter("contaminated", VERSION, lambda task, given: contaminated(task, given.held_out))
