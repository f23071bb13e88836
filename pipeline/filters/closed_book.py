"""Rejects a task that a model answers from memory (search) or without reasoning (math)."""

from pipeline.filters.base import Certifier, Filter, Resources, need
from pipeline.sampling import Sampler
from pipeline.sequential import Sprt
from schemas.certificate import Certificate
from schemas.config import SequentialTest
from schemas.task import Task

VERSION = "1"


async def closed_book(task: Task, sampler: Sampler, test: SequentialTest) -> Certificate:
    """Wald's test on the solver without its tools: kept once p <= p0 is accepted, rejected once p >= p1 is.

    As drawn here, in waves and cut off at 32 samples, tasks with p = 0, .05, .1, .2, .3, .5 are kept with probability 1, .95,
    .71, .22, .04, .001 after 10, 14, 18, 18, 13, 6 samples on average. Zero right of eight would say less: it drops a third
    of the tasks with p = .05 and keeps one in six with p = .2.
    """
    certify = Certifier(task, "closed_book", VERSION)
    rule = Sprt(test)
    samples = await sampler.sample(task, rule)
    found = samples.measured(sampler.solver)
    found["log_ratio"] = rule.log_ratio(samples.n, samples.correct)
    if fault := samples.fault(rule):
        return certify.write(*fault, **found)
    match rule.verdict(samples.n, samples.correct):
        case "below":
            return certify.keep(**found)
        case "above":
            return certify.reject(f"solved_{sampler.solver.arm}", **found)
        case _:
            return certify.undecided(f"no_verdict_in_{test.limit}", **found)


async def _judge(task: Task, given: Resources) -> Certificate:
    return await closed_book(task, need(given.closed_book, "closed_book"), given.triviality)


FILTER = Filter("closed_book", VERSION, _judge)
