"""The model servers of a run: each started when first asked for, and kept until the block ends."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterable, Mapping
from types import TracebackType

from infra.endpoint import Endpoint
from infra.journal import Journal
from infra.settings import Settings
from pipeline.corpora.world import World
from pipeline.solver import Solver
from rl.solvers import Arm, open_endpoint, solver_for
from schemas.config import Served


class Engines:
    """Endpoints by served model, so that two stages on one model start one server. Safe from several threads."""

    def __init__(self, settings: Settings, concurrency: int = 64, up: Mapping[Served, Endpoint] | None = None) -> None:
        """`up`: endpoints that somebody else keeps."""
        self._settings = settings
        self._concurrency = concurrency
        self._stack = contextlib.ExitStack()
        self._up = {_unsampled(served): endpoint for served, endpoint in (up or {}).items()}
        self._guard = threading.Lock()

    def __enter__(self) -> "Engines":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def attach(self, models: Iterable[Served]) -> None:
        """Find out about servers that somebody else runs before anything is asked of them. Raises `ModelError`."""
        for served in models:
            if served.url is not None:
                self.endpoint(served)

    def endpoint(self, served: Served) -> Endpoint:
        """The model's endpoint. Blocks while a server starts; raises `UnavailableModel` or `ModelError`."""
        with self._guard:
            if (key := _unsampled(served)) not in self._up:
                self._up[key] = self._stack.enter_context(
                    open_endpoint(served, settings=self._settings, concurrency=self._concurrency)
                )
            return self._up[key]

    @contextlib.asynccontextmanager
    async def solver(
        self,
        served: Served,
        arm: Arm,
        *,
        journal: Journal,
        world: World | None,
        concurrency: int,
    ) -> AsyncIterator[Solver]:
        """A `pipeline.curate.OpenSolver`."""
        endpoint = await asyncio.to_thread(self.endpoint, served)
        async with solver_for(
            served,
            arm,
            endpoint=endpoint,
            settings=self._settings,
            journal=journal,
            world=world,
            concurrency=concurrency,
        ) as solver:
            yield solver


def _unsampled(served: Served) -> Served:
    """How a model is sampled is no reason for another server."""
    return served.model_copy(update={"temperature": 1.0})
