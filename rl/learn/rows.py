"""From the turns of a trajectory to rows of tokens: nothing is re-encoded, and every token stands where it was sampled."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from rl.learn.records import Row
from schemas.errors import TouchstoneError
from schemas.trajectory import Turn


class RowError(TouchstoneError):
    """A turn that cannot be trained on."""


def version_of(turn: Turn) -> int:
    """The weights that sampled the turn."""
    if not turn.version.isdecimal():
        raise RowError(f"version={turn.version!r}: is no version of a training run; sample with the run's engines")
    return int(turn.version)


def rows_of(
    uid: str, turns: Sequence[Turn], advantages: Sequence[float], trained: Sequence[bool], share: float
) -> list[Row]:
    """A row for every segment that has a trained turn; targets are the sampled tokens of these turns and nothing else.

    What was shown and sampled in a segment follows in order, so before every target stands what the engine had before it:
    the prompt's length is checked at every turn. `advantages` and `trained` have one entry a turn. Raises `RowError`.
    """
    marked = zip(turns, advantages, trained, strict=True)
    rows: list[Row] = []
    for _, segment in groupby(marked, key=lambda each: each[0].segment):
        part = list(segment)
        if any(on for _, _, on in part):
            rows.append(_row(uid, part, share))
    return rows


def _row(uid: str, part: Sequence[tuple[Turn, float, bool]], share: float) -> Row:
    length = sum(len(turn.shown_ids) + len(turn.output_ids) for turn, _, _ in part)
    row = Row(
        uid=uid,
        ids=np.zeros(length, np.int64),
        targets=np.zeros(length, np.bool_),
        advantages=np.zeros(length, np.float32),
        logprobs=np.zeros(length, np.float32),
        versions=np.zeros(length, np.int64),
        share=share,
    )
    end = 0
    for turn, advantage, on in part:
        start = end + len(turn.shown_ids)
        _check(uid, turn, start)
        row.ids[end:start] = turn.shown_ids
        end = start + len(turn.output_ids)
        row.ids[start:end] = turn.output_ids
        if on:
            row.targets[start:end] = True
            row.advantages[start:end] = advantage
            row.logprobs[start:end] = turn.logprobs
            row.versions[start:end] = version_of(turn)
    return row


def _check(uid: str, turn: Turn, start: int) -> None:
    at = f"{uid}, call {turn.call_id}"
    if not turn.output_ids or not turn.logprobs:
        raise RowError(f"{at}: has no sampled ids with log-probabilities; sample from a server that returns both")
    if not start == turn.prompt_tokens > 0:
        raise RowError(
            f"{at}: was sampled after {turn.prompt_tokens} tokens, but {start} are known; "
            "a turn's shown_ids are all that is new in its prompt, and a rewritten context starts a segment"
        )
