"""The rules by which a run admits tasks, plays and trains: pure functions of counts, the same for every mode.

`sync` begins one batch, plays it to its end and trains on it. `partial` begins up to `ahead` batches more, so that every slot is
busy; as soon as one batch is complete it is trained, and what is played stops at its next turn: tools that run may end
meanwhile, but nothing is sampled. `async` does the same and goes on sampling while it trains.
"""

import random
from functools import lru_cache

from schemas.training import Mode, TrainConfig


def is_over(config: TrainConfig, *, version: int, seconds: float) -> bool:
    """Whether a run of so many steps and seconds has come to a limit of its config."""
    if config.steps is not None and version >= config.steps:
        return True
    return config.minutes is not None and seconds >= 60 * config.minutes


def may_begin(config: TrainConfig, *, version: int, begun: int, tasks: int) -> int:
    """Groups that may be begun now: `begun <= (version + 1 + ahead) * groups`, with `version` the steps that were taken.

    The capacity law of AReaL (arXiv 2505.24298, section 5.1): what is begun at most `ahead` batches early is at most about
    `ahead` versions old when its turn comes. Never more than `epochs` of all `tasks`.
    """
    ahead = 0 if config.rollout.mode == "sync" else config.rollout.ahead
    limit = (version + 1 + ahead) * config.groups
    if config.epochs is not None:
        limit = min(limit, config.epochs * tasks)
    return max(0, limit - begun)


def may_play(mode: Mode, *, training: bool, batch_ready: bool) -> bool:
    """Whether a free slot takes the next attempt."""
    return mode == "async" or not (training or batch_ready)


def may_train(mode: Mode, *, ready: int, groups: int, in_flight: int, queued: int) -> bool:
    """Whether the next step begins, with `ready` groups complete: on a whole batch, or on what is left at the end.

    Only `sync` waits for what is played; it plays nothing beyond the batch.
    """
    if not in_flight and not queued:
        return ready > 0
    return ready >= groups and (mode != "sync" or not in_flight)


def must_cut(mode: Mode) -> bool:
    """Whether what is played is put aside when a step begins."""
    return mode == "partial"


def place_of(number: int, tasks: int, seed: int) -> tuple[int, int]:
    """Epoch and task of the group with this number: every epoch goes through all tasks once, in an order of its own."""
    epoch, at = divmod(number, tasks)
    return epoch, _order(epoch, tasks, seed)[at]


@lru_cache(maxsize=4)
def _order(epoch: int, tasks: int, seed: int) -> tuple[int, ...]:
    order = list(range(tasks))
    random.Random(f"{seed}/epoch/{epoch}").shuffle(order)
    return tuple(order)


def attempt_seed(seed: int, group: int, member: int) -> int:
    """The seed of a member of the group with this number."""
    return random.Random(f"{seed}/{group}/{member}").getrandbits(31)
