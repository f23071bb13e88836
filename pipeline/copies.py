"""Samples that are not samples: one attempt repeated under many seeds says nothing about a rate."""

import math
from collections.abc import Sequence

from schemas.trajectory import Trajectory

CHANCE = 1e-6
"""Copies that honest sampling makes less often than this are a broken sampler."""
WITNESSES = 8
"""Tasks that must all show nothing but copies before a sampler without log-probabilities is called broken."""


def copies(trajectories: Sequence[Trajectory]) -> bool:
    """Whether two or more attempts were made and all of them say the same in every turn."""
    said = [tuple(turn.text for turn in trajectory.turns) for trajectory in trajectories if trajectory.turns]
    return len(said) > 1 and len(set(said)) == 1


def chance_of_copies(trajectories: Sequence[Trajectory]) -> float:
    """How likely honest sampling repeats the first attempt in all others, by the sampler's own log-probabilities.

    A confident model may repeat itself: its copies are likely ones. 1 where attempts differ or no log-probabilities came.
    """
    if not copies(trajectories):
        return 1.0
    with_turns = [trajectory for trajectory in trajectories if trajectory.turns]
    return math.exp(sum(sum(turn.logprobs) for trajectory in with_turns[1:] for turn in trajectory.turns))


def only_copies(attempts: Sequence[Sequence[Trajectory]]) -> bool:
    """Whether a server without log-probabilities gave nothing but copies on every one of enough tasks."""
    blind = [a for a in attempts if len(a) > 1 and not any(turn.logprobs for t in a for turn in t.turns)]
    return len(blind) >= WITNESSES and all(map(copies, blind))
