"""Rejects a question that an earlier candidate asks already, and every question that was given two answers."""

from pipeline.census import Census, keys
from pipeline.filters.base import Certifier, Filter, listed, need
from schemas.certificate import Certificate
from schemas.task import Task

VERSION = "1"


def duplicates(task: Task, candidates: Census) -> Certificate:
    """The first by candidate index wins. A question with two answers has no winner: nothing tells which one is right."""
    certify = Certifier(task, "duplicates", VERSION)
    for key in keys(task):
        kind = key.partition(":")[0]
        if len(answers := candidates.answers[key]) > 1:
            return certify.reject("conflicting_answers", same=kind, answers=listed(answers)[:5])
        index, first = candidates.first[key]
        if index < candidates.place(task):
            return certify.reject("duplicate", same=kind, of=first, index=index)
    return certify.keep()


FILTER = Filter("duplicates", VERSION, lambda task, given: duplicates(task, need(given.candidates, "candidates")))
