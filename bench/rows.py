"""Token rows as the starter's episodes are: a question, then turns that alternate with what tools showed."""

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rl.learn.records import Batch, Row

QUESTION, TURN, SHOWN = (60, 120), (20, 45), (60, 190)
"""Fewest and most tokens of a question, of a sampled turn and of what tools show."""
LEAST, MOST = 400, 900


def row(uid: str, vocabulary: int, rng: random.Random) -> Row:
    """One row of `LEAST` to `MOST` tokens that ends with a sampled turn. Which tokens they are does not matter to speed."""
    wanted = rng.randint(LEAST, MOST)
    targets = [False] * rng.randint(*QUESTION)
    while len(targets) < wanted:
        targets += [True] * rng.randint(*TURN) + [False] * rng.randint(*SHOWN)
    targets = targets[:wanted]
    tail = rng.randint(*TURN)
    targets[-tail:] = [True] * tail
    sampled = np.array(targets)
    return Row(
        uid=uid,
        ids=np.array([rng.randrange(vocabulary) for _ in targets], dtype=np.int64),
        targets=sampled,
        advantages=np.where(sampled, np.float32(rng.choice((-1.0, 1.0))), np.float32(0)),
        logprobs=np.where(sampled, np.float32(-math.log(vocabulary)), np.float32(0)),
        versions=np.zeros(wanted, dtype=np.int64),
        share=0.0,
    )


def batch(count: int, vocabulary: int, group: int, seed: int = 0) -> Batch:
    """Rows of `count` attempts, every sampled token with an equal share."""
    rng = random.Random(seed)
    uids = [f"{index // group}/{index % group}" for index in range(count)]
    rows = [row(uid, vocabulary, rng) for uid in uids]
    share = 1 / sum(int(it.targets.sum()) for it in rows)
    shared = tuple(Row(it.uid, it.ids, it.targets, it.advantages, it.logprobs, it.versions, share=share) for it in rows)
    return Batch(rows=shared, trained=tuple(uids), dropped={})


def write(rows: Sequence[Row], path: Path, *, group: int, rate: float, betas: tuple[float, float]) -> None:
    """The rows as a library reads them that knows a prompt, a completion and one advantage for all of it."""
    told = [
        {
            "ids": it.ids.tolist(),
            "targets": it.targets.astype(int).tolist(),
            "logprobs": it.logprobs.tolist(),
            "prompt": int(it.targets.argmax()),
            "advantage": float(it.advantages[it.targets][0]),
        }
        for it in rows
    ]
    path.write_text(json.dumps({"rows": told, "group": group, "rate": rate, "betas": betas}), "utf-8")
