"""Rates over tasks that were attempted several times: pure functions of counts.

Attempts at one task are not independent: the task is the unit, and its attempts a cluster (arXiv 2411.00640).
"""

import math
from collections.abc import Mapping, Sequence

from pipeline.sequential import Z95, pass_at_k, wilson
from schemas.evaluation import Counts, Estimate


def mean(values: Sequence[float], attempts: int) -> Estimate | None:
    """The mean of the tasks' values, each in 0..1; `attempts` are those that they were computed from.

    The interval is Wilson's at the effective number of independent attempts, m (1 - m) / SE^2 with SE^2 = var / tasks: the
    cluster-robust standard error over tasks. With one attempt a task that is Wilson's interval of the rate itself. It stays
    inside 0..1 and has a width where all tasks are alike, which a bootstrap over tasks has not.
    """
    tasks = len(values)
    if not tasks:
        return None
    value = sum(values) / tasks
    variance = sum((one - value) ** 2 for one in values) / tasks
    effective = float(tasks)
    if 0 < value < 1 and tasks > 1:
        independent = value * (1 - value) * tasks / variance if variance > 0 else math.inf
        effective = min(max(independent, tasks), attempts)
    low, high = wilson(effective, value * effective)
    return Estimate(value=value, low=min(low, value), high=max(high, value), tasks=tasks)


def rate(counts: Sequence[Counts]) -> Estimate | None:
    """Avg@k, which is pass@1: the mean over tasks of right / decided; `None` where nothing was decided."""
    decided = [one for one in counts if one.decided]
    return mean([one.right / one.decided for one in decided], sum(one.decided for one in decided))


def pass_at(counts: Sequence[Counts], each: int) -> dict[int, Estimate]:
    """Unbiased pass@k (arXiv 2107.03374) for k = 2, 4, 8, ... and `each`."""
    found = {}
    for k in sorted({2**i for i in range(1, each.bit_length()) if 2**i < each} | ({each} if each > 1 else set())):
        enough = [one for one in counts if one.decided >= k]
        values = [pass_at_k(one.decided, one.right, k) for one in enough]
        if estimate := mean(values, sum(one.decided for one in enough)):
            found[k] = estimate
    return found


def difference(before: Mapping[str, Counts], after: Mapping[str, Counts]) -> Estimate | None:
    """Mean over the tasks that both decided of how far `after` is above `before`; the interval is the normal one of paired
    differences. `None` where fewer than two tasks are common."""
    both = [id for id in before if id in after and before[id].decided and after[id].decided]
    if len(both) < 2:
        return None
    gains = [after[id].right / after[id].decided - before[id].right / before[id].decided for id in both]
    value = sum(gains) / len(gains)
    half = Z95 * math.sqrt(sum((gain - value) ** 2 for gain in gains) / (len(gains) - 1) / len(gains))
    return Estimate(value=value, low=value - half, high=value + half, tasks=len(both))
