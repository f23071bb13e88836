"""Rates over tasks: each value with its arithmetic, each interval against the one it must agree with."""

import random

import pytest
from pydantic import ValidationError

from pipeline.estimates import difference, mean, pass_at, rate
from pipeline.sequential import wilson
from schemas.evaluation import Counts


def of(right: int, n: int, undecided: int = 0, lost: int = 0) -> Counts:
    return Counts(right=right, wrong=n - right, undecided=undecided, lost=lost, attempts=n + undecided + lost)


def test_the_rate_is_the_mean_over_tasks_and_not_over_attempts() -> None:
    found = rate([of(4, 4), of(0, 2)])
    assert found is not None and (found.value, found.tasks) == (0.5, 2)  # (4/4 + 0/2) / 2, and not 4/6


def test_pass_at_k_is_unbiased() -> None:
    found = pass_at([of(1, 4), of(2, 4)], 4)
    assert list(found) == [2, 4]
    assert found[2].value == pytest.approx(((1 - 3 / 6) + (1 - 1 / 6)) / 2)  # 1 - C(n-c, 2) / C(4, 2)
    assert found[4].value == 1.0


def test_pass_at_k_needs_k_decided_attempts_of_a_task() -> None:
    found = pass_at([of(1, 4), of(0, 3, lost=1)], 4)
    assert (found[2].tasks, found[4].tasks) == (2, 1)
    assert pass_at([of(0, 1, undecided=1)], 2) == {}


def test_of_one_attempt_nothing_but_pass_at_1_is_known() -> None:
    assert pass_at([of(1, 1)], 1) == {}


def test_undecided_and_lost_attempts_are_no_zeros() -> None:
    assert rate([of(1, 1, undecided=2, lost=1), of(0, 0, lost=4)]) == rate([of(1, 1)])
    assert rate([of(0, 0, lost=4)]) is None


def test_with_one_attempt_a_task_the_interval_is_wilson_s() -> None:
    found = rate([of(int(i < 13), 1) for i in range(40)])
    assert found is not None and (found.low, found.high) == pytest.approx(wilson(40, 13))


def test_attempts_that_agree_within_a_task_count_as_one() -> None:
    """Eight copies of each attempt say no more than one."""
    once, eight = rate([of(int(i < 13), 1) for i in range(40)]), rate([of(8 * int(i < 13), 8) for i in range(40)])
    assert once is not None and eight is not None
    assert (once.low, once.high) == pytest.approx((eight.low, eight.high))


def test_attempts_of_tasks_that_are_all_alike_count_each() -> None:
    found = rate([of(2, 4)] * 10)
    assert found is not None and (found.low, found.high) == pytest.approx(wilson(40, 20))


@pytest.mark.parametrize("right", [0, 4])
def test_an_interval_has_a_width_where_every_attempt_ended_alike(right: int) -> None:
    found = rate([of(right, 4)] * 10)
    assert found is not None
    assert found.high - found.low == pytest.approx(1 - wilson(10, 10)[0])
    assert found.low <= found.value <= found.high


def test_one_task_is_one_whatever_its_attempts() -> None:
    found = rate([of(32, 64)])
    assert found is not None and (found.low, found.high) == pytest.approx(wilson(1, 0.5))


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    """300 sets of 40 tasks whose own rates are 0.1 or 0.7, 4 attempts each: 95 % intervals, true mean 0.4."""
    draw = random.Random(1)
    holds = 0
    for _ in range(300):
        rates = [draw.choice((0.1, 0.7)) for _ in range(40)]
        found = rate([of(sum(draw.random() < p for _ in range(4)), 4) for p in rates])
        assert found is not None
        holds += found.low <= 0.4 <= found.high
    assert 0.92 <= holds / 300 <= 0.98


def test_no_task_has_no_mean() -> None:
    assert mean([], 0) is None


def test_a_difference_is_paired_by_task() -> None:
    """Tasks differ far more than the policies do: 0 and 1 against 0.25 and 1; unpaired, nothing could be told."""
    before = {f"t{i}": of(4 * (i % 2), 4) for i in range(40)}
    after = {f"t{i}": of(max(1, 4 * (i % 2)), 4) for i in range(40)} | {"other": of(0, 4)}
    gain = difference(before, after)
    assert gain is not None and (gain.value, gain.tasks) == (0.125, 40)
    assert gain.low > 0.08
    assert difference(before, {"t0": of(1, 4)}) is None


def test_counts_that_do_not_close_are_refused() -> None:
    with pytest.raises(ValidationError, match="the parts add up to 3"):
        Counts(right=1, wrong=2, attempts=4)
