"""Attempts made by hand: ids count upwards, so that every token names its place."""

from collections.abc import Sequence
from itertools import count

from rl.learn.records import Graded, Verdict
from schemas.training import TrainConfig
from schemas.trajectory import StopReason, Trajectory, Turn

REWARDED = {1: (StopReason.ANSWERED, Verdict.RIGHT), 0: (StopReason.ANSWERED, Verdict.WRONG)}


def turns_of(
    lengths: Sequence[tuple[int, int]], versions: Sequence[int] = (), segments: Sequence[int] = ()
) -> tuple[Turn, ...]:
    """One turn for each (shown, sampled) number of tokens; a token's log-probability is -id / 100."""
    ids, prompt, turns = count(1), 0, []
    versions, segments = versions or [0] * len(lengths), segments or [0] * len(lengths)
    for i, (shown, sampled) in enumerate(lengths):
        if i and segments[i] != segments[i - 1]:
            prompt = 0
        seen = tuple(next(ids) for _ in range(shown))
        wrote = tuple(next(ids) for _ in range(sampled))
        turns.append(
            Turn(
                prompt_tokens=prompt + shown,
                segment=segments[i],
                shown_ids=seen,
                output_ids=wrote,
                logprobs=tuple(-each / 100 for each in wrote),
                text="",
                version=str(versions[i]),
                call_id=str(i),
            )
        )
        prompt += shown + sampled
    return tuple(turns)


def ended(uid: str, turns: Sequence[Turn], stop: StopReason, verdict: Verdict = Verdict.NONE) -> Graded:
    trajectory = Trajectory(task_id=uid.split("/")[0], solver="p", arm="tools", seed=0, turns=tuple(turns), stop=stop)
    return Graded(uid=uid, trajectory=trajectory, verdict=verdict)


def attempt(uid: str, worth: int, turns: int = 1, tokens: int = 2, version: int = 0) -> Graded:
    """Right (1) or wrong (0) after so many turns of so many tokens each; -1 is one whose last turn was no step."""
    stop, verdict = REWARDED.get(worth, (StopReason.FORMAT, Verdict.NONE))
    return ended(uid, turns_of([(3, tokens)] * turns, [version] * turns), stop, verdict)


def group(name: str, worths: Sequence[int | None], turns: int = 1, version: int = 0) -> list[Graded]:
    """A member for each; `None` is one whose tools broke down."""
    return [
        ended(f"{name}/{i}", turns_of([(3, 2)]), StopReason.TOOL_DOWN)
        if worth is None
        else attempt(f"{name}/{i}", worth, turns, version=version)
        for i, worth in enumerate(worths)
    ]


def config(**given: object) -> TrainConfig:
    return TrainConfig.model_validate({"negatives": {"cap": None}, **given})
