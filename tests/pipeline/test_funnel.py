import asyncio

import pytest

from pipeline.census import Census
from pipeline.filters import FILTERS, FUNNEL
from pipeline.filters.base import Certifier, Filter, FilterError, Resources
from pipeline.funnel import funnel_step, run
from schemas.certificate import Certificate, Outcome
from schemas.task import Task
from tests.pipeline.tasks import math_task

TASKS = [math_task(f"What is {i} plus 5?", index=i) for i in range(50)]


def by_index(task: Task, given: Resources) -> Certificate:
    """Keeps, rejects, doubts and breaks in turn."""
    certify = Certifier(task, "by_index", "1")
    match task.lineage.index % 5:
        case 0:
            raise ZeroDivisionError(f"division of {task.lineage.index}")
        case 1:
            return certify.reject("odd_one", cost=3)
        case 2:
            return certify.undecided("unclear")
    return certify.keep()


async def by_index_slowly(task: Task, given: Resources) -> Certificate:
    await asyncio.sleep(0.001 * (50 - task.lineage.index))
    return by_index(task, given)


@pytest.mark.parametrize("judge", [by_index, by_index_slowly])
async def test_every_task_comes_back_once_in_order_whatever_the_filter_does(judge) -> None:  # type: ignore[no-untyped-def]
    advanced: list[None] = []
    certificates = await run(Filter("by_index", "1", judge), TASKS, Resources(), lambda: advanced.append(None))
    assert [c.task_id for c in certificates] == [t.task_id for t in TASKS]
    assert len(advanced) == 50
    step = funnel_step(certificates)
    assert (step.seen, step.kept, step.rejected, step.failed, step.undecided, step.cost) == (50, 20, 10, 10, 10, 30)
    assert step.reasons == {"odd_one": 10, "unclear": 10, "failed: ZeroDivisionError": 10}


async def test_a_filter_that_breaks_never_keeps_and_says_why() -> None:
    certificate = (await run(Filter("by_index", "1", by_index), TASKS[:1], Resources()))[0]
    assert certificate.outcome is Outcome.FAILED
    assert certificate.reason == "ZeroDivisionError: division of 0"


async def test_a_certificate_of_another_task_is_a_failure() -> None:
    def mixed_up(task: Task, given: Resources) -> Certificate:
        return Certifier(TASKS[3], "mixed_up", "1").keep()

    certificates = await run(Filter("mixed_up", "1", mixed_up), TASKS[:5], Resources())
    assert [c.outcome for c in certificates] == [Outcome.FAILED] * 3 + [Outcome.KEEP] + [Outcome.FAILED]
    assert [c.task_id for c in certificates] == [t.task_id for t in TASKS[:5]]


async def test_a_filter_without_its_resource_ends_the_batch() -> None:
    with pytest.raises(FilterError, match=r"candidates: a filter of this funnel needs it"):
        await run(FILTERS["duplicates"], TASKS, Resources())


async def test_batches_add_up_to_the_whole() -> None:
    given = Resources(candidates=Census.of([*TASKS, TASKS[3]]))
    whole = await run(FILTERS["duplicates"], TASKS, given)
    parts = [c for i in range(0, 50, 7) for c in await run(FILTERS["duplicates"], TASKS[i : i + 7], given)]
    assert whole == parts


async def test_the_event_loop_stays_free_while_a_filter_computes() -> None:
    import time

    def heavy(task: Task, given: Resources) -> Certificate:
        time.sleep(0.05)
        return Certifier(task, "heavy", "1").keep()

    lags: list[float] = []

    async def heartbeat() -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.005)
            lags.append(time.monotonic() - before)

    beat = asyncio.create_task(heartbeat())
    await run(Filter("heavy", "1", heavy), TASKS[:16], Resources())
    beat.cancel()
    assert len(lags) > 5
    assert sorted(lags)[len(lags) // 2] < 0.05


def test_a_step_counts_one_filter() -> None:
    mixed = [Certifier(TASKS[0], name, "1").keep() for name in ("a", "b")]
    with pytest.raises(ValueError, match=r"exactly one filter"):
        funnel_step(mixed)
    with pytest.raises(ValueError, match=r"exactly one filter"):
        funnel_step([])


def test_funnels_are_made_of_registered_filters_and_end_with_the_dear_one() -> None:
    for funnel in FUNNEL.values():
        assert [FILTERS[f.name] for f in funnel] == list(funnel)
        assert funnel[0].name == "duplicates"
        assert funnel[-1].name == "closed_book"
