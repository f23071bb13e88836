"""Sharing out a budget: pure functions of numbers."""

from collections.abc import Sequence

import numpy as np


def filled(utilities: np.ndarray, budget: float, cap: float) -> np.ndarray:
    """The best use of a budget if utilities (draws x strata) were true: the highest get `cap` each until it is spent.

    Gives the mean over draws. Where `cap` for all is less than the budget, all get the same.
    """
    draws, strata = utilities.shape
    cap = max(cap, budget / strata)
    order = np.argsort(-utilities, axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.broadcast_to(np.arange(strata), (draws, strata)), axis=1)
    return np.asarray(np.clip(budget - ranks * cap, 0.0, cap).mean(axis=0))


def largest_remainder(shares: Sequence[float], units: int) -> list[int]:
    """Whole units in the proportion of `shares`, which add up to `units`; what rounding leaves goes to the largest remainders,
    the first of equal ones."""
    total = sum(shares)
    if total <= 0:
        raise ValueError(f"shares={list(shares)}: nothing to share in proportion to")
    exact = [share / total * units for share in shares]
    whole = [int(part) for part in exact]
    order = sorted(range(len(exact)), key=lambda i: (whole[i] - exact[i], i))
    for i in order[: units - sum(whole)]:
        whole[i] += 1
    return whole
