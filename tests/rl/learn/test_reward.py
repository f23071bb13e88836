"""What an attempt is worth."""

from itertools import pairwise

import pytest

from rl.learn.records import Verdict
from rl.learn.reward import returns, reward
from schemas.training import RewardOptions
from schemas.trajectory import StopReason
from tests.rl.learn.made import ended, turns_of

OPTIONS = RewardOptions(format=-0.2)
NOBODYS = {StopReason.INFRA, StopReason.TOOL_DOWN, StopReason.TIME_BUDGET}


@pytest.mark.parametrize("stop", StopReason)
def test_every_end_but_an_answer_is_a_penalty_or_no_reward_whatever_the_verdict(stop: StopReason) -> None:
    if stop is not StopReason.ANSWERED:
        worths = {reward(ended("t/0", turns_of([(3, 2)]), stop, verdict), OPTIONS) for verdict in Verdict}
        assert worths == {None if stop in NOBODYS else -0.2}


@pytest.mark.parametrize(
    ("verdict", "worth"), [(Verdict.RIGHT, 1.0), (Verdict.WRONG, 0.0), (Verdict.UNDECIDED, None), (Verdict.NONE, None)]
)
def test_an_answer_is_worth_its_verdict(verdict: Verdict, worth: float | None) -> None:
    assert reward(ended("t/0", turns_of([(3, 2)]), StopReason.ANSWERED, verdict), OPTIONS) == worth


def test_an_attempt_without_a_turn_has_no_reward() -> None:
    assert reward(ended("t/0", (), StopReason.CONTEXT_OVERFLOW), OPTIONS) is None


def test_the_last_turn_is_worth_the_reward_and_earlier_ones_less() -> None:
    assert returns(1.0, 3, 0.9) == pytest.approx((0.81, 0.9, 1.0))
    assert returns(1.0, 1, 0.9) == (1.0,)


def test_the_first_turn_of_a_shorter_right_attempt_is_worth_more() -> None:
    firsts = [returns(1.0, turns, 0.98)[0] for turns in range(1, 51)]
    assert all(short > long for short, long in pairwise(firsts))
    assert firsts[49] == pytest.approx(0.3716, abs=1e-4)  # 0.98^49


def test_failures_are_not_decayed() -> None:
    assert returns(-0.2, 3, 0.9) == (-0.2, -0.2, -0.2)
    assert returns(0.0, 2, 0.9) == (0.0, 0.0)
