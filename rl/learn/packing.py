"""Rows laid side by side, so that no step pays for padding, and no row sees another.

A packed sequence is one sequence to the model: positions begin again at every row, and it is given without an attention
mask and without a cache. That is how transformers knows packed rows and confines attention to each (`masking_utils`); with
a cache, which `forward` makes by default, it would not, so `inputs` says both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from rl.learn.records import Row


@dataclass(frozen=True, slots=True)
class Packed:
    """N tokens of one or more rows, of which M are targets, in the order of the rows."""

    ids: np.ndarray
    """int64, N."""
    positions: np.ndarray
    """int64, N: from 0 in every row."""
    targets: np.ndarray
    """int64, M: where they stand in `ids`; what predicts each stands one before it, in the same row."""
    advantages: np.ndarray
    """float32, M."""
    logprobs: np.ndarray
    """float32, M: of the sampler, after temperature."""
    versions: np.ndarray
    """int64, M."""
    shares: np.ndarray
    """float32, M."""

    def __len__(self) -> int:
        return len(self.ids)


def pack(rows: Sequence[Row], size: int) -> list[Packed]:
    """Every row in exactly one packed sequence of at most `size` tokens; a row that is longer stands alone.

    First-fit decreasing: at most 11/9 of the fewest sequences, and one more (Johnson 1973). Equal rows in equal order
    give equal sequences.
    """
    bins: list[list[Row]] = []
    room: list[int] = []
    for row in sorted(rows, key=len, reverse=True):
        at = next((i for i, free in enumerate(room) if len(row) <= free), len(bins))
        if at == len(bins):
            bins.append([])
            room.append(size)
        bins[at].append(row)
        room[at] -= len(row)
    return [lay(each) for each in bins]


def lay(rows: Sequence[Row]) -> Packed:
    """Rows one after the other. Of no rows: a packed sequence without tokens."""
    masks = [row.targets for row in rows]
    shares = [np.full(int(row.targets.sum()), row.share) for row in rows]
    return Packed(
        ids=_joined([row.ids for row in rows], np.int64),
        positions=_joined([np.arange(len(row)) for row in rows], np.int64),
        targets=np.flatnonzero(_joined(masks, np.bool_)).astype(np.int64),
        advantages=_joined([row.advantages[row.targets] for row in rows], np.float32),
        logprobs=_joined([row.logprobs[row.targets] for row in rows], np.float32),
        versions=_joined([row.versions[row.targets] for row in rows], np.int64),
        shares=_joined(shares, np.float32),
    )


def inputs(packed: Packed, device: torch.device | str = "cpu") -> dict[str, Any]:
    """What a causal model of transformers is called with, as `model(**inputs(packed))`: a batch of one, (1, N)."""
    return {
        "input_ids": torch.from_numpy(packed.ids)[None].to(device),
        "position_ids": torch.from_numpy(packed.positions)[None].to(device),
        "attention_mask": None,
        "use_cache": False,
    }


def _joined(arrays: Sequence[np.ndarray], dtype: type[np.generic]) -> np.ndarray:
    return np.concatenate([np.zeros(0, dtype), *(array.astype(dtype, copy=False) for array in arrays)])
