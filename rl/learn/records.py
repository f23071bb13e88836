"""What passes between rollouts, the batch and the trainer."""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from schemas.base import Record
from schemas.trajectory import Trajectory


class Verdict(StrEnum):
    """How the grader saw the end of an attempt. `none` where nothing was answered, or what broke was not the policy's."""

    RIGHT = "right"
    WRONG = "wrong"
    UNDECIDED = "undecided"
    NONE = "none"


class Graded(Record):
    """An attempt that is over."""

    uid: str
    """`<group>/<member>`."""
    trajectory: Trajectory
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Row:
    """One stretch of context that only grew, as the engine saw it: all arrays have one entry a token.

    `targets` marks what the policy sampled and is trained on. `advantages`, `logprobs` (behaviour, after temperature) and
    `versions` are 0 elsewhere. `share` is the weight of one target token of this row in the batch: the batch's loss is
    the sum over all rows of share * token loss, however rows are cut into micro-batches or spread over ranks.
    """

    uid: str
    ids: np.ndarray
    """int64."""
    targets: np.ndarray
    """bool; never true at the first token, which nothing predicts."""
    advantages: np.ndarray
    """float32."""
    logprobs: np.ndarray
    """float32."""
    versions: np.ndarray
    """int64: the weights that sampled the token."""
    share: float

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Batch:
    """What one step trains on, and what became of every attempt that it was made from.

    `trained` and the keys of `dropped` are the uids of all of them, each in exactly one. `metrics` are named
    `<what>/<population>`.
    """

    rows: tuple[Row, ...]
    trained: tuple[str, ...]
    dropped: dict[str, str]
    """Reason by uid."""
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Weights:
    """Published weights, under the version that engines stamp on what they sample: a folder with `model.safetensors`, or the
    address of an offer (`infra.broadcast`).

    `sha256` is of the tensors in the order of their names, not of the file.
    """

    folder: str
    version: int
    sha256: str
