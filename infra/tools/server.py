"""Toolsets as a server of the Model Context Protocol, for our own client and for any other.

Invariants: one connection carries many sessions, each named by the calls that belong to it, and for a client that names none
the connection is the session. Every call that is running is counted, and a session is ended only while none of it runs.
The event loop never blocks, as no toolset does.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

import mcp_types as types
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from jsonschema.exceptions import best_match  # type: ignore[import-untyped]
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from referencing import Registry

from infra.tools.base import Effect, Toolset
from infra.tools.local import by_name

EFFECT = "touchstone/effect"
"""Of a listed tool: its `Effect`."""
SESSION = "touchstone/session"
"""Of a call: the session that it belongs to."""
SOURCES = "touchstone/sources"
"""Of a result: `ToolResult.sources`."""
DOWN = "touchstone/down"
"""Of a result with `isError`: the tool is broken, the caller did nothing wrong."""
END = "touchstone/end"
"""A request that ends the session it names."""
BEGUN = "touchstone/begun"
"""Of a call: its session had calls before, so a server that does not know the session must not open it anew."""
LOST = "touchstone/lost"
"""Of a result with `isError`: the session is not here, and the call was not made."""

_SWEEP_S = 30.0
_log = logging.getLogger(__name__)
_Context = ServerRequestContext[Any, Any]


def mcp_server(toolsets: Sequence[Toolset], *, serves: str = "", idle_seconds: float = 3600.0) -> Server[Any]:
    """A server of `toolsets`, closed with it. A session that is not called for `idle_seconds` is ended.

    `serves` tells servers apart that have the same tools over other data; it is the server's version. Raises `ToolClash`.
    """
    return _Hosting(toolsets, serves, idle_seconds).server


class _Session:
    def __init__(self) -> None:
        self.running, self.last = 0, time.monotonic()
        self.free = asyncio.Event()

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        self.running += 1
        self.free.clear()
        try:
            yield
        finally:
            self.running, self.last = self.running - 1, time.monotonic()
            if not self.running:
                self.free.set()


class _Hosting:
    def __init__(self, toolsets: Sequence[Toolset], serves: str, idle_seconds: float) -> None:
        self._toolsets, self._idle_seconds = tuple(toolsets), idle_seconds
        self._tools = by_name(toolsets)
        self._checks = {
            name: Draft202012Validator(dict(spec.schema), registry=Registry())
            for name, (_, spec) in self._tools.items()
        }
        self._sessions: dict[str, _Session] = {}
        self.server: Server[Any] = Server(
            "touchstone", version=serves, lifespan=self._lifespan, on_list_tools=self._list, on_call_tool=self._call
        )
        self.server.middleware.clear()  # spans that nobody collects, for a quarter of a call's time
        self.server.add_request_handler(END, types.RequestParams, self._end_named)
        self.server.add_request_handler("server/discover", types.RequestParams, self._discover)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Server[Any]) -> AsyncIterator[None]:
        sweep = asyncio.create_task(self._sweep())
        try:
            yield
        finally:
            sweep.cancel()
            for toolset in self._toolsets:
                await toolset.close()

    async def _discover(self, context: _Context, _: types.RequestParams) -> types.DiscoverResult:
        """Over HTTP the newest protocol knows no connections, so a client that names no session would have no state."""
        versions = MODERN_PROTOCOL_VERSIONS if context.request is None else HANDSHAKE_PROTOCOL_VERSIONS
        return types.DiscoverResult(
            supported_versions=list(versions),
            capabilities=self.server.get_capabilities(protocol_version=context.protocol_version),
        )

    async def _list(self, _: _Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=spec.name,
                    description=spec.description,
                    input_schema=dict(spec.schema),
                    annotations=types.ToolAnnotations(
                        read_only_hint=spec.effect is Effect.READ,
                        idempotent_hint=spec.effect is Effect.READ,
                        destructive_hint=spec.effect is Effect.OUTSIDE,
                    ),
                    _meta={EFFECT: spec.effect.value},
                )
                for _, spec in self._tools.values()
            ]
        )

    async def _call(self, context: _Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in self._tools:
            return _refusal(f"{params.name}: is no tool here; the tools are {', '.join(self._tools)}")
        toolset, spec = self._tools[params.name]
        arguments = params.arguments or {}
        if wrong := best_match(self._checks[params.name].iter_errors(arguments)):
            where = ".".join(map(str, wrong.absolute_path)) or "arguments"
            return _refusal(f"{where}: {wrong.message}; call {params.name} as its schema says")
        if (session := self._session(context)) is None:
            if spec.effect is not Effect.READ:
                return _refusal(
                    f"{params.name}: has a state, and this call no session; name one in _meta, as {SESSION}"
                )
            session = ""
        if (context.meta or {}).get(BEGUN) and session not in self._sessions:
            return _refusal("the session is not here", {LOST: True})
        try:
            with self._sessions.setdefault(session, _Session()).in_use():
                result = await toolset.call(session, params.name, arguments)
        except Exception as error:
            _log.exception("%s is broken", params.name)
            text = f"{params.name}: the tool is broken ({type(error).__name__}: {error}); try another"
            return _refusal(text, {DOWN: True})
        return types.CallToolResult(
            content=[types.TextContent(text=_clean(result.text))],
            is_error=result.error,
            _meta={SOURCES: list(map(_clean, result.sources))} if result.sources else None,
        )

    def _session(self, context: _Context) -> str | None:
        """The state's key: what the call names, else its connection; `None` where there is neither."""
        if given := (context.meta or {}).get(SESSION):
            return f"named {given}"
        if context.request is None:  # standard streams: the process has one connection
            return "connection"
        if not (connection := context.request.headers.get("mcp-session-id")):
            return None
        key = f"connection {connection}"
        if key not in self._sessions:
            # The context does not expose the connection yet; the SDK names its exit stack as the place for this.
            context.session._connection.exit_stack.push_async_callback(self._end, key)
        return key

    async def _end_named(self, context: _Context, _: types.RequestParams) -> types.EmptyResult:
        if session := self._session(context):
            await self._end(session)
        return types.EmptyResult()

    async def _end(self, session: str) -> None:
        if (use := self._sessions.get(session)) is None:
            return
        await use.free.wait()
        self._sessions.pop(session, None)
        for toolset in self._toolsets:
            try:
                await toolset.end(session)
            except Exception:
                _log.exception("a session could not be ended")

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(min(_SWEEP_S, self._idle_seconds / 2))
            oldest = time.monotonic() - self._idle_seconds
            for session in [key for key, use in self._sessions.items() if use.free.is_set() and use.last < oldest]:
                await self._end(session)


def _refusal(text: str, meta: Mapping[str, Any] | None = None) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=_clean(text))], is_error=True, _meta=dict(meta) if meta else None
    )


def _clean(text: str) -> str:
    """Half a surrogate pair cannot be sent; one in a result would end the connection."""
    return text.encode(errors="replace").decode()
