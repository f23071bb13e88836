"""Runs one filter over a batch. Neither judges nor logs rows; what goes in comes out as one certificate each, in order."""

import asyncio
import inspect
from collections import Counter
from collections.abc import Callable, Sequence

from pipeline.filters.base import Certifier, Filter, FilterError, Resources
from pipeline.sampling import together
from pipeline.solver import SolverDown
from schemas.certificate import Certificate, Outcome
from schemas.manifest import FunnelStep
from schemas.task import Task

THREADS = 8
"""Filters that compute run in this many threads, off the event loop."""


async def run(
    filter: Filter, tasks: Sequence[Task], given: Resources, advance: Callable[[], object] = lambda: None
) -> list[Certificate]:
    """One certificate a task, in order; `advance` is called after each.

    A filter that breaks on a task yields `failed` for it and never `keep`. One that cannot run at all ends the batch:
    `FilterError` when a resource is missing, `SolverDown` when no attempt comes back.
    """
    threads = asyncio.Semaphore(THREADS)

    async def one(task: Task) -> Certificate:
        try:
            certificate = await _judge(filter, task, given, threads)
            if (certificate.task_id, certificate.filter) != (task.task_id, filter.name):
                raise ValueError(f"certificate of {certificate.filter} on {certificate.task_id} came back")
        except (FilterError, SolverDown):
            raise
        except Exception as error:
            certificate = Certifier(task, filter.name, filter.version).failed(error)
        advance()
        return certificate

    return await together(one(task) for task in tasks)


async def _judge(filter: Filter, task: Task, given: Resources, threads: asyncio.Semaphore) -> Certificate:
    if inspect.iscoroutinefunction(filter.judge):
        certificate: Certificate = await filter.judge(task, given)
        return certificate
    async with threads:
        judged = await asyncio.to_thread(filter.judge, task, given)
    assert isinstance(judged, Certificate)
    return judged


def funnel_step(certificates: Sequence[Certificate]) -> FunnelStep:
    """The counts of one filter's certificates, over as many batches as there were. They close or it raises."""
    filters = sorted({c.filter for c in certificates})
    if len(filters) != 1:
        raise ValueError(f"certificates of {filters or 'no filter'}: a funnel step counts exactly one filter")
    outcomes = Counter(c.outcome for c in certificates)
    return FunnelStep(
        filter=filters[0],
        seen=len(certificates),
        kept=outcomes[Outcome.KEEP],
        rejected=outcomes[Outcome.REJECT],
        failed=outcomes[Outcome.FAILED],
        undecided=outcomes[Outcome.UNDECIDED],
        cost=sum(c.cost for c in certificates),
        reasons=dict(Counter(_cause(c) for c in certificates if c.outcome is not Outcome.KEEP).most_common()),
    )


def _cause(certificate: Certificate) -> str:
    """The reason up to a colon: its kind only, or every error message would be a row of its own."""
    cause = certificate.reason.partition(":")[0]
    return f"failed: {cause}" if certificate.outcome is Outcome.FAILED else cause
