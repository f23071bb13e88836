"""One filter's verdict on one task, kept for rejected tasks too."""

from enum import StrEnum

from pydantic import JsonValue

from schemas.base import Record


class Outcome(StrEnum):
    KEEP = "keep"
    REJECT = "reject"
    FAILED = "failed"
    """The filter itself broke; never counted as a keep."""
    UNDECIDED = "undecided"


class Certificate(Record):
    """The verdict with what it rests on, so that a threshold can move without running anything again.

    `reason` names a reject, an error or a doubt and is empty for a keep. `score` in `interval`, measured on `n` samples.
    `cost` is model tokens, prompt and completion; `calls` are journal ids of the model calls.
    """

    task_id: str
    filter: str
    version: str
    outcome: Outcome
    reason: str = ""
    score: float | None = None
    interval: tuple[float, float] | None = None
    n: int = 0
    cost: int = 0
    calls: tuple[str, ...] = ()
    detail: dict[str, JsonValue] = {}
