"""Several processes that train one model together.

Invariants: every rank is given every call, in the same order and with the same batch, and takes part in the same number of
forward passes; so no rank waits for one that will never come. Where a rank fails, the others wait for it in vain: the caller
hears of the first failure soon, and the ranks themselves end at the time limit of their group.
"""

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from infra.place import PartDied
from rl.learn.records import Batch, Row, Weights
from rl.train.parts import Trainer
from schemas.errors import TouchstoneError

_T = TypeVar("_T")
NEWS_S = 10.0
"""Time for the news of a rank's death, which may come after the others have failed for want of it."""


def spread(rows: Sequence[Row], world: int) -> list[list[Row]]:
    """The rows of each rank: longest first, each to the rank with the fewest tokens. The same on every rank.

    The fullest rank has at most 4/3 of the least possible (Graham 1969).
    """
    parts: list[list[Row]] = [[] for _ in range(world)]
    heap = [(0, rank) for rank in range(world)]
    for row in sorted(rows, key=len, reverse=True):
        tokens, rank = heap[0]
        parts[rank].append(row)
        heapq.heapreplace(heap, (tokens + len(row), rank))
    return parts


class Team:
    """Ranks as one trainer. `parts` are in order of rank; their methods run elsewhere."""

    def __init__(self, parts: Sequence[Trainer]) -> None:
        self._parts = tuple(parts)

    async def step(self, batch: Batch) -> Mapping[str, float]:
        return await self._all(lambda part: part.step(batch))

    async def publish(self, version: int) -> Weights:
        return await self._all(lambda part: part.publish(version))

    async def save(self, folder: str) -> None:
        await self._all(lambda part: part.save(folder))

    async def load(self, folder: str) -> None:
        await self._all(lambda part: part.load(folder))

    async def close(self) -> None:
        await self._all(lambda part: part.close())

    async def _all(self, call: Callable[[Trainer], Awaitable[_T]]) -> _T:
        """Rank 0's answer, or the first failure of any; a death goes before what others say of it."""
        calls = [asyncio.ensure_future(call(part)) for part in self._parts]
        try:
            return (await asyncio.gather(*calls))[0]
        except TouchstoneError:
            raise
        except Exception:  # of torch, which lost touch with a rank
            done, _ = await asyncio.wait(calls, timeout=NEWS_S)
            for each in done:
                if isinstance(death := each.exception(), PartDied):
                    raise death from None
            raise
        finally:
            for each in calls:
                each.cancel()
