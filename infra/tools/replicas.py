"""One MCP server that is always being connected to, and the equal ones that stand in for each other.

Invariants: a replica's connection lives in one task, which alone opens and closes it, and calls from any task share it. A call
that is cancelled or late never touches the calls beside it. A server that we started dies with us (see `infra.guard`), and by
`kill` at the latest when its connection does not close.
"""

import asyncio
import logging
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TextIO, cast

import httpx2
import mcp_types as types
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from infra import guard
from infra.endpoint import behind_proxy
from infra.tools.base import Effect, ToolDown, ToolResult, ToolSpec
from infra.tools.schema import plain
from infra.tools.server import BEGUN, DOWN, EFFECT, END, LOST, SESSION, SOURCES
from schemas.episode import ToolOptions
from schemas.errors import TouchstoneError
from schemas.trajectory import ToolCall

_START_TRIES = 3
_STEADY_S = 10.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 10.0
_LAST_LINES, _LAST_BYTES = 5, 4096
_MOST_CHARS, _MOST_ERROR_CHARS = 200_000, 1_000
"""Of a result and of an error; more is cut, which is said."""
_REFUSALS = {types.INVALID_PARAMS, types.METHOD_NOT_FOUND}

# They log a traceback for each connection that breaks, of which `Replica.why` tells.
for _name in ("mcp.client", "mcp.shared"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)


class Failed(Exception):
    """A call that gave no answer. `made` is `False` where the server surely did not make it."""

    def __init__(self, why: str, *, made: bool = True) -> None:
        super().__init__(why)
        self.made = made


class AnotherServer(TouchstoneError):
    """What answers is not the server whose place it has."""


def pause(failures: int) -> float:
    """Seconds to wait after so many failures in a row: exponential, with jitter."""
    return min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(failures, 16)) * random.uniform(0.5, 1.5)


class Replica:
    """One server, at an address or of a command that is started here, connected to again whenever that breaks."""

    def __init__(self, where: str | Sequence[str], options: ToolOptions) -> None:
        self.where = where if isinstance(where, str) else " ".join(where)
        self._address = where
        self._options = options
        self._client: Client | None = None
        self._group: int | None = None
        self._doubt = asyncio.Event()
        self.sessions = self.calls = self.failures = 0
        self.why = "no answer yet"
        self.changed: Callable[[], None] = lambda: None
        self.admit: Callable[[str, Sequence[ToolSpec]], None] = lambda version, specs: None

    @property
    def live(self) -> bool:
        return self._client is not None

    async def run(self) -> None:
        """Keep the connection until cancelled."""
        while True:
            began = time.monotonic()
            with cast(TextIO, tempfile.TemporaryFile("w")) as log:
                try:
                    async with self._connection(log) as client:
                        self.admit(_version(client), await _list(client))
                        await self._while_live(client)
                except (Exception, BaseExceptionGroup) as error:
                    if cast(asyncio.Task[None], asyncio.current_task()).cancelling():
                        raise
                    self.why = _reason(error, log)
            self.failures = 0 if time.monotonic() - began > _STEADY_S else self.failures + 1
            self.changed()
            await asyncio.sleep(pause(self.failures))

    async def call(self, call: ToolCall, session: str | None, *, begun: bool = False) -> ToolResult:
        """Make a call once, as a call of `session`. Raises `Failed`."""
        if (client := self._client) is None:
            raise Failed(f"{self.where}: {self.why}", made=False)
        meta = cast(types.RequestParamsMeta, {} if session is None else {SESSION: session, BEGUN: begun})
        self.calls += 1
        try:
            async with asyncio.timeout(self._options.call_seconds):
                result = await client.session.call_tool(call.name, call.arguments, meta=meta)
        except TimeoutError:
            self._doubt.set()
            raise Failed(f"{self.where}: no answer within {self._options.call_seconds:g} s") from None
        except MCPError as error:
            if error.error.code in _REFUSALS:
                return ToolResult(_cut(error.error.message, _MOST_ERROR_CHARS), error=True)
            if error.error.code == types.CONNECTION_CLOSED:
                self._lose(client)
            self._doubt.set()
            raise Failed(f"{self.where}: {_cut(error.error.message, _MOST_ERROR_CHARS)}") from error
        except (ValidationError, RuntimeError) as error:
            raise Failed(f"{self.where}: unusable answer ({_line(error)})") from error
        finally:
            self.calls -= 1
        return _result(self.where, result)

    async def end(self, session: str) -> None:
        """Tell the server that the session is over, if it can be told."""
        if (client := self._client) is not None:
            request = types.Request[types.RequestParams, str](
                method=END,
                params=types.RequestParams(_meta={SESSION: session}),
            )
            with suppress(MCPError, ValidationError, TimeoutError):
                async with asyncio.timeout(self._options.heartbeat_seconds):
                    await client.session.send_request(request, types.EmptyResult)

    def kill(self) -> None:
        """End at once what was started here, if it still runs; its connection then closes by itself."""
        if self._group is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._group, signal.SIGKILL)

    async def check(self) -> None:
        """Raises `Failed` unless the server gives a sign of life now."""
        if (client := self._client) is None:
            raise Failed(f"{self.where}: {self.why}", made=False)
        try:
            await self._beat(client)
        except (MCPError, TimeoutError) as error:
            self._lose(client)
            raise Failed(f"{self.where}: {_line(error)}", made=False) from error

    async def _beat(self, client: Client) -> None:
        try:
            async with asyncio.timeout(self._options.heartbeat_seconds):
                await _ping(client)
        except TimeoutError:
            raise TimeoutError(f"no sign of life within {self._options.heartbeat_seconds:g} s") from None

    def _lose(self, client: Client) -> None:
        """Send no more calls there; the task that owns the connection looks after it at once."""
        if self._client is client:
            self._client, self.why = None, "the connection broke"
        self._doubt.set()

    async def _while_live(self, client: Client) -> None:
        try:
            while True:
                self._client, self.why = client, ""
                self.changed()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._options.heartbeat_seconds):
                        await self._doubt.wait()
                self._doubt.clear()
                await self._beat(client)
        finally:
            self._client = None

    @asynccontextmanager
    async def _connection(self, log: TextIO) -> AsyncIterator[Client]:
        async with AsyncExitStack() as stack:
            if isinstance(self._address, str):
                http = httpx2.AsyncClient(
                    timeout=self._options.total_seconds,  # no call waits so long: it guards what no deadline of ours does
                    limits=httpx2.Limits(max_connections=None),
                    trust_env=behind_proxy(self._address),
                )
                transport = streamable_http_client(self._address, http_client=await stack.enter_async_context(http))
            elif shutil.which(self._address[0]) is None:
                raise FileNotFoundError(f"{self._address[0]}: no such program")
            else:
                guarded = ["-I", guard.__file__, "--of", str(os.getpid()), *self._address]
                server = StdioServerParameters(command=sys.executable, args=guarded, env=dict(os.environ))
                transport = self._started(server, log)
            async with asyncio.timeout(self._options.total_seconds):
                client = await stack.enter_async_context(Client(transport, cache=None))
            yield client

    @asynccontextmanager
    async def _started(self, server: StdioServerParameters, log: TextIO) -> AsyncIterator[Any]:
        async with stdio_client(server, errlog=log) as streams:
            self._group = _child_that_writes_to(log)
            yield streams
        self._group = None


class Pool:
    """The replicas of one server."""

    def __init__(self, name: str, replicas: Sequence[Replica]) -> None:
        self.name, self.replicas = name, tuple(replicas)
        self.specs: dict[str, ToolSpec] = {}
        self._version: str | None = None
        self._news = asyncio.Event()
        for replica in replicas:
            replica.changed, replica.admit = self._news.set, self._admit

    def _admit(self, version: str, specs: Sequence[ToolSpec]) -> None:
        for spec in specs:
            plain(spec.name, spec.schema)
        if self._version is None:
            self._version, self.specs = version, {spec.name: spec for spec in specs}
        elif (version, {spec.name: spec for spec in specs}) != (self._version, self.specs):
            raise AnotherServer(
                f"{self.name}: {version or 'a server'} answers, which is not the {self._version or 'server'} of before"
            )

    @property
    def live(self) -> bool:
        return any(replica.live for replica in self.replicas)

    @property
    def trouble(self) -> str:
        """What is wrong with each replica that is not live."""
        return "; ".join(f"{replica.where}: {replica.why}" for replica in self.replicas if not replica.live)

    async def started(self, seconds: float) -> None:
        """Wait until every replica is live or has failed `_START_TRIES` times. Raises `ToolDown` where none is live."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while any(not replica.live and replica.failures < _START_TRIES for replica in self.replicas):
                    self._news.clear()
                    await self._news.wait()
        if not self.live:
            raise ToolDown(
                f"{self.name}: the tool server cannot be reached ({self.trouble}); start it or correct the config"
            )

    async def pick(self, load: Callable[[Replica], int]) -> Replica:
        """The live replica with the least load, once there is one."""
        while not (live := [replica for replica in self.replicas if replica.live]):
            self._news.clear()
            await self._news.wait()
        return min(live, key=lambda replica: (load(replica), random.random()))


def _child_that_writes_to(log: TextIO) -> int | None:
    """The process, leader of its group, that this thread started with `log` as its standard error: the SDK does not tell."""
    for pid in Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split():
        with suppress(OSError):
            if os.path.samestat(os.stat(f"/proc/{pid}/fd/2"), os.fstat(log.fileno())):
                return int(pid)
    return None


async def _ping(client: Client) -> None:
    """Raises unless the server answers. The newest protocol has no ping."""
    try:
        if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
            await client.session.send_discover(client.protocol_version)
        else:
            await client.session.send_ping()
    except MCPError as error:
        if error.error.code != types.METHOD_NOT_FOUND:
            raise


async def _list(client: Client) -> list[ToolSpec]:
    tools: list[types.Tool] = []
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        if not (cursor := page.next_cursor):
            return [ToolSpec(t.name, t.description or "", t.input_schema, _effect(t)) for t in tools]


def _effect(tool: types.Tool) -> Effect:
    """What our server says; of others only a tool that says it reads is taken to change nothing."""
    if (ours := (tool.meta or {}).get(EFFECT)) in list(Effect):
        return Effect(ours)
    return Effect.READ if tool.annotations and tool.annotations.read_only_hint else Effect.OUTSIDE


def _version(client: Client) -> str:
    return f"{client.server_info.name} {client.server_info.version}".strip() if client.server_info else ""


def _result(where: str, result: types.CallToolResult) -> ToolResult:
    meta: Mapping[str, Any] = result.meta or {}
    text = "\n".join(
        block.text if isinstance(block, types.TextContent) else f"[{block.type}]" for block in result.content
    )
    if result.is_error and (meta.get(DOWN) or meta.get(LOST)):
        raise Failed(f"{where}: {_cut(text, _MOST_ERROR_CHARS)}", made=not meta.get(LOST))
    sources = meta.get(SOURCES)
    return ToolResult(
        _cut(text, _MOST_ERROR_CHARS if result.is_error else _MOST_CHARS),
        bool(result.is_error),
        tuple(one for one in sources if isinstance(one, str)) if isinstance(sources, list) else (),
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} [cut: {most} of {len(text)} characters]"


def _reason(error: BaseException, log: TextIO) -> str:
    """What went wrong, and the last lines the server wrote to its standard error."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    start = max(0, os.fstat(log.fileno()).st_size - _LAST_BYTES)
    said = os.pread(log.fileno(), _LAST_BYTES, start).decode(errors="replace")
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return _line(error) + (f"; it said: {' | '.join(lines[-_LAST_LINES:])}" if lines else "")


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
