"""A model server whose weights are exchanged while it runs.

Invariants: a turn is whole by one version of the weights, and says which; no turn runs while weights are exchanged; one thing
at a time changes the server; a turn that was with a server that died is sampled again by the next, with the weights that are
current then. All of it on one event loop; what blocks does so in a thread.
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

from infra.broadcast import is_offered
from infra.client import Completion, ModelClient
from infra.endpoint import Endpoint, EngineDied, ModelError, ServerDown, ServerSlow
from infra.engine import Command, EngineOptions, serve, vllm_command
from infra.exchange import WrongWeights, exchange, prove
from infra.models import LocalModel
from pipeline.solver import SolverDown
from rl.learn.records import Weights
from rl.rollout import ServedSampler

DEATHS = 3
"""Of servers in a row, without a turn in between, after which there will be no other; and of servers that a turn is tried on."""


class VllmEngine:
    """An `Engine` with a vLLM server of its own, which starts when first used and ends with `close` or with this process."""

    def __init__(
        self,
        model: LocalModel,
        *,
        cache: Path,
        temperature: float,
        options: EngineOptions,
        timeout_s: float = 600.0,
        command: Command = vllm_command,
    ) -> None:
        """`model` are the weights of version 0. `temperature` holds for turns that begin once it is set. A server that leaves
        a call unanswered for `timeout_s` counts as dead."""
        self._model = model
        self._cache = cache
        self.temperature = temperature
        self._options = replace(options, exchange=True)
        self._timeout_s = timeout_s
        self._command = command
        self._weights: Weights | None = None
        self.client: ModelClient | None = None
        """While a server is up and proved to have the current weights. Each server has its own, with `stats` of its own."""
        self._server = contextlib.AsyncExitStack()
        self._over = threading.Event()
        self._closed = False
        self._deaths = 0
        self._turns = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._open = asyncio.Event()
        self._open.set()
        self._changing = asyncio.Lock()
        self._revival: asyncio.Task[None] | None = None

    async def sample(self, prompt: Sequence[int], *, ends: Sequence[int], max_tokens: int, seed: int) -> Completion:
        for _ in range(DEATHS):
            client = await self._up()
            version = str(self._weights.version if self._weights else 0)
            sampler = ServedSampler(client, version, self.temperature)
            try:
                with self._turn():
                    said = await sampler.sample(prompt, ends=ends, max_tokens=max_tokens, seed=seed)
            except (EngineDied, ServerDown, ServerSlow) as error:
                died = error
                await self._after(client, error)
            else:
                self._deaths = 0
                return said
        # A plain ModelError: what is true of this turn need not be true of the server.
        raise ModelError(f"a prompt of {len(prompt)} tokens: {DEATHS} servers died with it ({died}); leave it out")

    async def swap(self, weights: Weights) -> None:
        """As `Engine.swap`. Raises `SolverDown` too. After an error in what was loaded the server is another, or none."""
        async with self._changing:
            self._open.clear()
            try:
                await self._idle.wait()
                client, self.client, self._weights = self.client, None, weights
                if client is None:
                    await self._start(None)
                    return
                try:
                    await self._exchange(client, weights)
                except ModelError as error:
                    await self._start(error)
                    if isinstance(error, WrongWeights):
                        raise
                else:
                    self.client = client
            finally:
                self._open.set()

    async def close(self) -> None:
        self._closed = True
        self._over.set()  # so that what runs or starts fails now
        async with self._changing:
            self.client = None
            await self._server.aclose()

    async def _up(self) -> ModelClient:
        """The server, with no change under way. Nothing may be awaited between this and the turn."""
        while True:
            await self._open.wait()
            if self.client is not None:
                return self.client
            await self._after(None, None)

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        self._turns += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._turns -= 1
            if not self._turns:
                self._idle.set()

    async def _after(self, client: ModelClient | None, why: ModelError | None) -> None:
        """Return once there is another server than this one. The start goes on where the turn that waits is given up."""
        if self._revival is None or self._revival.done():
            self._revival = asyncio.create_task(self._revive(client, why))
        await asyncio.shield(self._revival)

    async def _revive(self, client: ModelClient | None, why: ModelError | None) -> None:
        async with self._changing:
            if self.client is not client:
                return
            try:
                await self._start(why)
            except WrongWeights as error:
                raise SolverDown(str(error)) from error

    async def _start(self, why: ModelError | None) -> None:
        """Another server, with the current weights. `why` there has to be another. Raises `SolverDown` or `WrongWeights`."""
        self.client = None
        while True:
            await self._server.aclose()
            if self._closed:
                raise SolverDown(f"{self._model.name}: its engine was closed")
            if why is not None:
                self._deaths += 1
            if self._deaths >= DEATHS:
                raise SolverDown(
                    f"{self._model.name}: {DEATHS} servers in a row died, the last with: {why}; see its log"
                ) from why
            try:
                self.client = await self._begin()
                return
            except WrongWeights:
                raise
            except ModelError as error:
                why = error

    async def _begin(self) -> ModelClient:
        weights, model = self._weights, self._model
        if weights is not None and not is_offered(weights.folder):
            model = replace(model, path=Path(weights.folder))
        async with contextlib.AsyncExitStack() as server:
            client = await server.enter_async_context(self._serving(model))
            if weights is not None and model is self._model:
                await self._exchange(client, weights)
            elif weights is not None:
                await prove(client.endpoint, weights.folder, weights.sha256, self._timeout_s)
            self._server = server.pop_all()
        return client

    async def _exchange(self, client: ModelClient, weights: Weights) -> None:
        version = str(weights.version)
        await exchange(client.endpoint, weights.folder, weights.sha256, version, self._timeout_s)

    @contextlib.asynccontextmanager
    async def _serving(self, model: LocalModel) -> AsyncIterator[ModelClient]:
        """A server, kept by a thread of its own until the block ends or `_over` is set, while it starts too."""
        over = self._over = threading.Event()
        up: Future[Endpoint] = Future()

        def keep() -> None:
            try:
                with serve(
                    model, cache=self._cache, options=self._options, command=self._command, unwanted=over
                ) as endpoint:
                    up.set_result(endpoint)
                    over.wait()
            except BaseException as error:
                if not up.done():
                    up.set_exception(error)

        keeper = threading.Thread(target=keep, daemon=True)
        keeper.start()
        async with contextlib.AsyncExitStack() as after:
            try:
                endpoint = await asyncio.wrap_future(up)
                client = ModelClient(endpoint, None, self._options.max_num_seqs, timeout_s=self._timeout_s)
                yield await after.enter_async_context(client)
            finally:  # the server first: calls that are still with it then fail as those of a dead one do
                over.set()
                await asyncio.to_thread(keeper.join)
