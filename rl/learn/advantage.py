"""How much better than the others an attempt did, and how much failures may weigh.

The n members of a group are attempts at one task. G of member j at turn i is `reward.returns`, on the decayed scale.
"""

import random
from collections.abc import Sequence
from statistics import fmean

from schemas.training import NegativeOptions

NO_DIFFERENCE = 1e-6
"""Mean returns that are nearer than this differ by rounding."""


def advantages(group: Sequence[Sequence[float]]) -> list[tuple[float, ...]]:
    """A_ji = G_ji - b_j with b_j = mean over k != j of (mean over i of G_ki): leave-one-out (RLOO, arXiv 2402.14740).

    One scalar a trajectory, so that taking one more turn adds no baseline term; from the others alone, so that it stays
    unbiased; and on the decayed scale: a mean of undecayed rewards would be 1 in a group that is all right, and push down
    every turn of it. Turns far from the end of a long right attempt can fall below 0 in an easy group: that is the pressure
    towards short ones. Needs at least 2 members.
    """
    means = [fmean(each) for each in group]
    total, others = sum(means), len(means) - 1
    return [tuple(g - (total - mean) / others for g in each) for each, mean in zip(group, means, strict=True)]


def has_signal(group: Sequence[Sequence[float]]) -> bool:
    """Whether a member did better than another: their mean returns differ.

    Asked of returns and not of rewards: members that are all right but after different numbers of turns still tell short
    from long. Nor of advantages: members that are all right after equally many turns, two or more, have advantages other
    than 0 (the first turns below, the last above their own mean), but no choice in them did better than another. Leaving
    such a group out gives up a part of the pressure towards short attempts, and keeps its sign: where one turn is chosen over
    two with probability p, 1 - (1 - p)^(n-1) / 2 of it is left. Where gamma is 1 nothing is given up.
    """
    means = [fmean(each) for each in group]
    return max(means) - min(means) > NO_DIFFERENCE


def excess(
    masses: Sequence[float], answered: Sequence[bool], options: NegativeOptions, rng: random.Random
) -> frozenset[int]:
    """Which trajectories go, by index, so that negative mass is at most `options.cap` times the positive.

    `masses` are sums of advantage over the sampled tokens of a trajectory, sign included. It is negative, and may go, when
    its mass is below 0, as a whole: a right attempt whose first turns are below 0 counts by what is left of it. They go in
    random order, with `unanswered` those without an answer first, until the rest is within the cap.
    """
    if options.cap is None:
        return frozenset()
    order = [i for i, mass in enumerate(masses) if mass < 0]
    rng.shuffle(order)
    if options.drop == "unanswered":
        order.sort(key=lambda i: answered[i])
    most = options.cap * sum(mass for mass in masses if mass > 0) + NO_DIFFERENCE
    gone: set[int] = set()
    left = -sum(masses[i] for i in order)
    for i in order:
        if left <= most:
            break
        gone.add(i)
        left += masses[i]
    return frozenset(gone)
