"""A handful of attempts that fail in each way, and what each is taken for."""

import random

import pytest

from bench.failing import WAYS, Case, Way, begin, rambles, wanders
from bench.planted import Planter, pools
from schemas.measured import AttemptOutcome
from schemas.task import Task
from tests.worlds import atlas


@pytest.fixture(scope="module")
def tasks() -> dict[str, list[Task]]:
    return pools(atlas(), 6)


@pytest.fixture(scope="module")
def planter(tasks: dict[str, list[Task]]) -> Planter:
    return Planter(atlas(), tasks)


def test_every_outcome_is_planted() -> None:
    assert set(WAYS) == set(AttemptOutcome)


@pytest.mark.parametrize("planted", WAYS, ids=str)
async def test_a_failure_is_taken_for_what_it_is(planter: Planter, planted: AttemptOutcome) -> None:
    assert await planter.played(WAYS[planted], 6) == {planted: 6}


async def test_it_is_the_world_and_the_limits_that_make_the_outcome(planter: Planter) -> None:
    assert await planter.play(Way(wanders), 0) is AttemptOutcome.TURN_LIMIT
    assert await planter.play(Way(wanders, falls=True), 0) is AttemptOutcome.TOOL_ERROR
    assert await planter.play(Way(rambles, "math"), 0) is AttemptOutcome.TRUNCATED


def test_before_it_fails_an_attempt_does_other_things(tasks: dict[str, list[Task]]) -> None:
    task = tasks["hard_search"][0]
    begun = [list(begin(Case(task, atlas(), random.Random(seed)))) for seed in range(20)]
    assert {len(acts) for acts in begun} == {0, 1, 2, 3}
