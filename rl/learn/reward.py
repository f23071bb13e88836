"""What an attempt is worth: format first, then correctness, then how many turns it took."""

from rl.learn.records import Graded, Verdict
from schemas.training import RewardOptions
from schemas.trajectory import StopReason

MALFORMED = frozenset(
    {
        StopReason.FORMAT,
        StopReason.MAX_TOKENS,
        StopReason.CONTEXT_OVERFLOW,
        StopReason.MAX_TURNS,
        StopReason.LOOP,
        StopReason.NO_ANSWER,
    }
)
"""Ends that the policy itself brought about without an answer."""


def reward(graded: Graded, options: RewardOptions) -> float | None:
    """`options.format` for an end without an answer, 1 for a right answer, 0 for a wrong one; `None` is no reward at all.

    `None` where what broke was not the policy's (`infra`, `tool_down`, `time_budget`), where the grader could not tell, and
    where the policy never came to speak (no turns: the question alone fills the window). Such an attempt leaves its group.
    """
    stop = graded.trajectory.stop
    if not graded.trajectory.turns:
        return None
    if stop in MALFORMED:
        return options.format
    if stop is StopReason.ANSWERED:
        return {Verdict.RIGHT: 1.0, Verdict.WRONG: 0.0}.get(graded.verdict)
    return None


def returns(reward: float, turns: int, gamma: float) -> tuple[float, ...]:
    """Of turns i = 1..T: G_i = gamma^(T-i) * R where R > 0, else R at every turn.

    The Kimi-Researcher report gives step s of a correct trajectory gamma^(s-1) * R, so that short ones "earn a higher reward
    for their initial actions"; that holds if s counts from the end, which is the discounted return of a reward that comes
    last. A decayed failure would make long failures better, so R <= 0 stays as it is.
    """
    if reward <= 0:
        return (reward,) * turns
    return tuple(gamma ** (turns - i) * reward for i in range(1, turns + 1))
