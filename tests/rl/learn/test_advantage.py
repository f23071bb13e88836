"""Baselines, signal, and how much failures may weigh."""

import math
import random
from collections.abc import Sequence
from itertools import product

import pytest

from rl.learn.advantage import advantages, excess, has_signal
from rl.learn.reward import returns
from schemas.training import NegativeOptions


def of(rewards: Sequence[float], turns: Sequence[int], gamma: float = 0.9) -> list[tuple[float, ...]]:
    return [returns(r, t, gamma) for r, t in zip(rewards, turns, strict=True)]


def test_the_baseline_is_the_mean_of_the_others_on_the_decayed_scale() -> None:
    """G: (0.9, 1), (1), (0). Means: 0.95, 1, 0. b: (1 + 0) / 2 = 0.5, 0.95 / 2 = 0.475, 1.95 / 2 = 0.975."""
    found = advantages(of([1, 1, 0], [2, 1, 1]))
    assert found == [pytest.approx((0.4, 0.5)), pytest.approx((0.525,)), pytest.approx((-0.975,))]


def test_leaving_one_out_is_n_over_n_less_one_of_the_group_mean() -> None:
    rewards = [1.0, 0.0, 0.0, -0.2]
    mean = sum(rewards) / 4
    found = advantages(of(rewards, [1] * 4))
    assert [a for (a,) in found] == pytest.approx([4 / 3 * (r - mean) for r in rewards])


def test_a_group_that_is_all_right_does_not_push_all_of_it_down() -> None:
    """With the mean of undecayed rewards, 1, as the baseline no turn of any right attempt would be above 0."""
    group = of([1, 1, 1], [1, 2, 3])
    assert all(g - 1 <= 0 for each in group for g in each)
    found = advantages(group)
    assert found[0][0] > 0  # 1 - (0.95 + 0.9033) / 2
    assert [each[-1] > 0 for each in found] == [True, True, True]
    assert found[2][0] < 0  # 0.81 - (1 + 0.95) / 2


@pytest.mark.parametrize(
    ("rewards", "turns", "gamma", "signal"),
    [
        ([1, 1, 1, 1], [1, 1, 1, 1], 0.9, False),
        ([1, 1, 1, 1], [2, 2, 2, 2], 0.9, False),
        ([1, 1, 1, 1], [1, 2, 3, 4], 1.0, False),
        ([1, 1, 1, 1], [1, 2, 3, 4], 0.9, True),
        ([0, 0, 0, 0], [1, 2, 3, 4], 0.9, False),
        ([-0.2, -0.2, -0.2], [3, 7, 11], 0.9, False),
        ([-0.2, 0, 0, 0], [1, 1, 1, 1], 0.9, True),
        ([1, 0], [1, 1], 0.9, True),
    ],
)
def test_there_is_signal_where_a_member_did_better_than_another(
    rewards: list[float], turns: list[int], gamma: float, signal: bool
) -> None:
    assert has_signal(of(rewards, turns, gamma)) is signal


P, Q, GAMMA = 0.7, 0.4, 0.9
"""Of a bandit with two parameters: the first turn stops with probability P (right with 0.5), else a second is right with Q."""
ENDS = [(P * 0.5, 1, 1.0), (P * 0.5, 1, 0.0), ((1 - P) * Q, 2, 1.0), ((1 - P) * (1 - Q), 2, 0.0)]


def scores(turns: int, reward: float) -> list[tuple[float, float]]:
    """Gradient of each turn's log-probability by the logits of P and Q."""
    if turns == 1:
        return [(1 - P, 0.0)]
    return [(-P, 0.0), (0.0, 1 - Q if reward else -Q)]


def test_the_gradient_is_unbiased_over_all_groups_of_a_bandit_of_two_turns() -> None:
    """Sum over all groups of 2 of their probability times sum A * score, against sum G * score without any baseline."""
    plain, ours = [0.0, 0.0], [0.0, 0.0]
    for p, turns, r in ENDS:
        for g, score in zip(returns(r, turns, GAMMA), scores(turns, r), strict=True):
            plain = [a + p * g * s for a, s in zip(plain, score, strict=True)]
    for ends in product(ENDS, repeat=2):
        p = math.prod(end[0] for end in ends)
        for a, (_, turns, r) in zip(advantages([returns(r, t, GAMMA) for _, t, r in ends]), ends, strict=True):
            for each, score in zip(a, scores(turns, r), strict=True):
                ours = [x + p * each * s / 2 for x, s in zip(ours, score, strict=True)]
    assert ours == pytest.approx(plain)


def test_what_skipping_groups_without_signal_takes_from_the_pressure_is_as_documented() -> None:
    """Always right, after one turn (p) or two: the pressure is p (1 - p) (1 - gamma), of which 1 - (1 - p)^(n-1) / 2 is left."""
    p, gamma, n = 0.3, 0.9, 3
    for skip, left in ((False, 1.0), (True, 1 - (1 - p) ** (n - 1) / 2)):
        found = 0.0
        for turns in product((1, 2), repeat=n):
            group = of([1] * n, turns, gamma)
            if skip and not has_signal(group):
                continue
            weight = math.prod(p if t == 1 else 1 - p for t in turns)
            found += weight / n * sum(a[0] * (1 - p if len(a) == 1 else -p) for a in advantages(group))
        assert found == pytest.approx(left * p * (1 - p) * (1 - gamma))


def gone(masses: list[float], answered: list[bool] | None = None, seed: int = 0, **options: object) -> set[int]:
    chosen = NegativeOptions.model_validate(options)
    return set(excess(masses, answered or [True] * len(masses), chosen, random.Random(seed)))


def test_failures_go_until_what_is_left_is_within_the_cap() -> None:
    """Positive 4, negative 6: one of 2 must go at cap 1, none at 1.5, two at 0.5, all at 0."""
    masses = [4.0, -2.0, -2.0, -2.0]
    assert [len(gone(masses, cap=cap)) for cap in (1.0, 1.5, 0.5, 0.0, None)] == [1, 0, 2, 3, 0]


def test_those_without_an_answer_go_first() -> None:
    answered = [True, True, False, True, False]
    for seed in range(20):
        assert gone([3.0, -1.0, -1.0, -1.0, -1.0], answered, seed, cap=2 / 3, drop="unanswered") == {2, 4}


def test_which_go_is_random_and_by_the_seed() -> None:
    found = [frozenset(gone([1.0] + [-1.0] * 8, seed=seed, cap=1.0, drop="random")) for seed in range(40)]
    assert found == [frozenset(gone([1.0] + [-1.0] * 8, seed=seed, cap=1.0, drop="random")) for seed in range(40)]
    assert set().union(*found) == set(range(1, 9)) and {len(each) for each in found} == {7}


def test_without_positive_mass_every_failure_goes() -> None:
    assert gone([-1.0, -2.0], cap=1.0) == {0, 1}
    assert gone([], cap=1.0) == set()
    assert gone([0.0, 0.0], cap=0.0) == set()
