"""The model servers of a run: each started once, when first asked for or ahead of that, and kept until the block ends."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterable, Mapping
from concurrent.futures import Future
from types import TracebackType

from infra.endpoint import Endpoint
from infra.journal import Journal
from infra.models import refuse_missing
from infra.settings import Settings
from pipeline.corpora.world import World
from pipeline.solver import Solver
from rl.solvers import Arm, open_endpoint, solver_for
from rl.tooling import try_servers
from schemas.config import Served
from schemas.episode import Limits, ToolOptions


class Engines:
    """Endpoints by served model, so that two stages on one model start one server. Safe from several threads."""

    def __init__(self, settings: Settings, concurrency: int = 128, up: Mapping[Served, Endpoint] | None = None) -> None:
        """`up`: endpoints that somebody else keeps."""
        self._settings = settings
        self._concurrency = concurrency
        self._stack = contextlib.ExitStack()
        self._up: dict[Served, Future[Endpoint]] = {}
        for served, endpoint in (up or {}).items():
            self._up[_unsampled(served)] = Future()
            self._up[_unsampled(served)].set_result(endpoint)
        self._starting: list[threading.Thread] = []
        self._closed = threading.Event()
        self._guard = threading.Lock()

    def __enter__(self) -> "Engines":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed.set()
        for thread in self._starting:
            thread.join()
        self._stack.close()

    def attach(self, models: Iterable[Served], tools: ToolOptions) -> None:
        """Find out about what a user configured before any work is done. Raises `UnavailableModel`, `ModelError`, `ToolDown` or
        `ToolClash`.

        Not for use on an event loop.
        """
        for served in models:
            if served.url is None:
                refuse_missing(served.model)
            else:
                self.endpoint(served)
        asyncio.run(try_servers(tools))

    def start(self, models: Iterable[Served]) -> None:
        """Start their servers in the background. What goes wrong is told to who asks for the endpoint."""
        for served in models:
            self._future(served)

    def endpoint(self, served: Served) -> Endpoint:
        """The model's endpoint. Blocks while a server starts; raises `UnavailableModel` or `ModelError`."""
        return self._future(served).result()

    @contextlib.asynccontextmanager
    async def solver(
        self,
        served: Served,
        arm: Arm,
        *,
        journal: Journal,
        world: World | None,
        limits: Limits | None,
        tools: ToolOptions,
        concurrency: int,
    ) -> AsyncIterator[Solver]:
        """A `pipeline.curate.OpenSolver`."""
        endpoint = await asyncio.wrap_future(self._future(served))
        async with solver_for(
            served,
            arm,
            endpoint=endpoint,
            settings=self._settings,
            journal=journal,
            world=world,
            limits=limits,
            tools=tools,
            concurrency=concurrency,
        ) as solver:
            yield solver

    def _future(self, served: Served) -> "Future[Endpoint]":
        key = _unsampled(served)
        with self._guard:
            if key not in self._up:
                self._up[key] = up = Future[Endpoint]()
                up.set_running_or_notify_cancel()  # so that nobody who gives up waiting cancels it for the others
                self._starting.append(threading.Thread(target=self._open, args=(key, up), daemon=True))
                self._starting[-1].start()
            return self._up[key]

    def _open(self, served: Served, up: "Future[Endpoint]") -> None:
        opened = open_endpoint(served, settings=self._settings, concurrency=self._concurrency, unwanted=self._closed)
        try:
            endpoint = opened.__enter__()
        except BaseException as error:
            up.set_exception(error)
            return
        with self._guard:
            self._stack.push(opened.__exit__)
        up.set_result(endpoint)


def _unsampled(served: Served) -> Served:
    """How a model is sampled is no reason for another server."""
    return served.model_copy(update={"temperature": 1.0})
