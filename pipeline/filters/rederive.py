"""Rejects a task whose gold a second, independent way of computing it does not give."""

from pipeline.filters.base import Certifier, Filter, Resources, listed
from pipeline.grading import Verdict, grade
from pipeline.tables import Tables
from schemas.answer import EntityAnswer, canonical_answer
from schemas.certificate import Certificate
from schemas.query import Problem, Query
from schemas.task import Task

VERSION = "1"


def rederive_by_joins(task: Task, tables: Tables) -> Certificate:
    """Search tasks: the clues as joins over the fact table, in both readings of the world."""
    certify = Certifier(task, "rederive", VERSION)
    if not isinstance(task.constraints, Query) or not isinstance(task.answer, EntityAnswer):
        raise TypeError(f"a {task.constraints.kind} with an {task.answer.kind} answer is not rederived by joins")
    answer = frozenset({task.answer.entity})
    certain, possible = tables.certain(task.constraints), tables.possible(task.constraints)
    if certain != answer or possible != answer:
        return certify.reject("other_answer", by="joins", certain=listed(certain)[:5], possible=listed(possible)[:5])
    return certify.keep(by="joins")


def rederive_by_solver(task: Task) -> Certificate:
    """Math tasks: the family's second solver, which shares no formula with the first; the grader compares."""
    from pipeline.families.math.generator import resolve  # here: sympy takes a second, and search tasks need none of it

    certify = Certifier(task, "rederive", VERSION)
    if not isinstance(task.constraints, Problem):
        raise TypeError(f"a {task.constraints.kind} is not rederived by a solver")
    found = canonical_answer(resolve(task.constraints))
    judged = grade(task.answer, found)
    match judged.verdict:
        case Verdict.RIGHT:
            return certify.keep(by="second_solver")
        case Verdict.WRONG:
            return certify.reject("other_answer", by="second_solver", found=found)
        case Verdict.UNDECIDED:
            return certify.undecided("ungradable", by="second_solver", found=found, why=judged.reason)


def _judge(task: Task, given: Resources) -> Certificate:
    return rederive_by_solver(task) if isinstance(task.constraints, Problem) else rederive_by_joins(task, given.tables)


FILTER = Filter("rederive", VERSION, _judge)
