"""The parts of a run, started at a place, and started again when they die.

Invariants: a worker knows exactly the engines that live, so workers begin anew when an engine does; an engine that begins anew
has the weights of the last swap before it samples; news of a death that was mended changes nothing.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from infra.place import PartDied, Place
from rl.learn.ranks import Team
from rl.learn.records import Weights
from rl.train.parts import Engine, Order, Played, Trainer, Worker
from rl.train.stepper import TrainingError

DEATHS = 3
"""Of parts, one after the other, before any was of use."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a part is made, and what is set aside for it. A worker is made with its engines besides."""

    make: Callable[..., Any]
    args: tuple[Any, ...] = ()
    cpus: float = 0
    gpus: float = 0


class Fleet:
    """`Parts`, inside `async with`."""

    def __init__(
        self,
        place: Place,
        *,
        engines: Sequence[Recipe],
        workers: Sequence[Recipe],
        trainers: Callable[[], Sequence[Recipe]],
    ) -> None:
        """`trainers` gives the ranks that share one model, anew for each life of it."""
        self._place = place
        self._recipes: dict[str, Callable[[], Sequence[Recipe]]] = {
            "engine": lambda: engines,
            "worker": lambda: workers,
            "trainer": trainers,
        }
        self._parts: dict[str, list[Any]] = {"engine": [], "worker": [], "trainer": []}
        self._busy = Counter[int]()
        """Plays by worker."""
        self._dead: set[str] = set()
        self._weights: Weights | None = None
        self._mending = asyncio.Lock()

    async def __aenter__(self) -> "Fleet":
        for kind in self._parts:
            self._parts[kind] = [await self._start(kind, recipe) for recipe in self._recipes[kind]()]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        parts = [part for kind in ("worker", "engine", "trainer") for part in self._parts[kind]]
        await asyncio.gather(*(part.close() for part in parts), return_exceptions=True)

    @property
    def engines(self) -> Sequence[Engine]:
        return self._parts["engine"]

    @property
    def trainer(self) -> Trainer:
        ranks: list[Trainer] = self._parts["trainer"]
        trainer: Trainer = _Noticed(ranks[0] if len(ranks) == 1 else Team(ranks), self._dead)
        return trainer

    async def play(self, order: Order) -> Played:
        workers: list[Worker] = self._parts["worker"]
        at = min(range(len(workers)), key=lambda i: self._busy[i])
        self._busy[at] += 1
        try:
            return await workers[at].play(order)
        except PartDied as death:
            self._dead.add(death.part)
            raise
        finally:
            self._busy[at] -= 1

    async def cut(self) -> None:
        await self._all(worker.cut() for worker in self._parts["worker"])

    async def swap(self, weights: Weights) -> None:
        """Engines that die on it have the weights once they are mended."""
        self._weights = weights
        await self._all(engine.swap(weights) for engine in self.engines)

    async def mend(self) -> None:
        async with self._mending:
            engines = self._parts["engine"]
            for i, engine in enumerate(engines):
                if self._place.name(engine) in self._dead:
                    self._place.stop(engine)  # what cannot be reached may live on
                    engines[i] = await self._start("engine", self._recipes["engine"]()[i])
                    self._dead.update(self._place.name(worker) for worker in self._parts["worker"])
            for kind in ("worker", "trainer"):
                # Workers hold the engines that were there and ranks share a model: none of them can stay without the others.
                if self._dead & {self._place.name(part) for part in self._parts[kind]}:
                    for part in self._parts[kind]:
                        self._place.stop(part)
                    self._parts[kind] = [await self._start(kind, recipe) for recipe in self._recipes[kind]()]

    async def _start(self, kind: str, it: Recipe) -> Any:
        """Another part; an engine that dies while it takes its weights is followed by yet another."""
        last = (tuple(self._parts["engine"]),) if kind == "worker" else ()
        for _ in range(DEATHS):
            part = await asyncio.to_thread(self._place.start, it.make, *it.args, *last, cpus=it.cpus, gpus=it.gpus)
            try:
                given = None
                while kind == "engine" and given is not self._weights:  # newer ones may come meanwhile
                    given = self._weights
                    await part.swap(given)
                return part
            except PartDied as death:
                died = death
        raise TrainingError(f"{died.part}: {DEATHS} in a row died at once; see their logs, then resume the run")

    async def _all(self, calls: Iterable[Any]) -> None:
        """All of them; a part that dies on it is mended."""
        for ended in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(ended, PartDied):
                self._dead.add(ended.part)
                await self.mend()
            elif isinstance(ended, BaseException):
                raise ended


class _Noticed:
    """A trainer whose death is noted down before it is raised."""

    def __init__(self, trainer: Trainer, dead: set[str]) -> None:
        self._trainer, self._dead = trainer, dead

    def __getattr__(self, method: str) -> Callable[..., Any]:
        async def call(*args: Any) -> Any:
            try:
                return await getattr(self._trainer, method)(*args)
            except PartDied as death:
                self._dead.add(death.part)
                raise

        return call
