"""Running the server of tools: over streamable HTTP on loopback, or on standard streams."""

import asyncio
import json
import logging
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import metadata

import uvicorn
from mcp.server.stdio import stdio_server

from infra.pages.place import open_pages
from infra.sandbox import Isolation, Limits, Sandbox
from infra.sandbox.limits import MIB
from infra.tools.base import Toolset
from infra.tools.browser import BrowserTools
from infra.tools.pages import toolsets_for
from infra.tools.python import PythonTools
from infra.tools.search import SearchTools
from infra.tools.server import mcp_server
from schemas.base import Options, content_hash
from schemas.errors import TouchstoneError

_GRACE_S = 2
VERSION = metadata.version("touchstone-rl")
_READERS: dict[str, type[Toolset]] = {"search": SearchTools, "browser": BrowserTools}


class ServeError(TouchstoneError):
    """A server of tools that cannot be started as asked."""


class ServeOptions(Options):
    """Which tools are served, over what."""

    tools: tuple[str, ...] = ("search", "browser", "python")
    """Names of toolsets."""
    pages: str | None = None
    """Where search and browser find pages, as `open_pages` takes it; `None` where neither is served."""
    hosts: tuple[str, ...] = ()
    """Hosts that `http` pages may come from though their addresses are private."""
    deny: tuple[str, ...] = ()
    """Pages that do not exist for a policy, as `Deny` takes them."""
    isolation: Isolation = Isolation.BUBBLEWRAP
    """What keeps a policy's code apart from this machine."""
    code_seconds: float = Limits().seconds
    """Time of one call of `python`."""
    code_memory: int = Limits().memory // MIB
    """Memory of one session of `python`, in MiB."""


@asynccontextmanager
async def open_toolsets(options: ServeOptions) -> AsyncIterator[list[Toolset]]:
    """The toolsets that `options` name, closed with the block. Raises `PageError`, `NoIsolation` or `ServeError`."""
    if unknown := sorted(set(options.tools) - {*_READERS, "python"}):
        raise ServeError(f"tools={','.join(unknown)}: no such toolset; there are {', '.join(_READERS)} and python")
    served: list[Toolset] = []
    async with AsyncExitStack() as stack:
        if wanted := [name for name in options.tools if name in _READERS]:
            if options.pages is None:
                raise ServeError(f"tools={','.join(wanted)}: read pages; say where they are with --pages")
            served += await asyncio.to_thread(_readers, wanted, options.pages, options)
            for reader in served:
                stack.push_async_callback(reader.close)
        if "python" in options.tools:
            limits = Limits(seconds=options.code_seconds, memory=options.code_memory * MIB)
            sandbox = await stack.enter_async_context(Sandbox(options.isolation, limits))
            served.append(PythonTools(sandbox))
        yield served


def _readers(wanted: Sequence[str], place: str, options: ServeOptions) -> list[Toolset]:
    found = toolsets_for(open_pages(place, options.hosts), options.deny)
    readers = [toolset for toolset in found if any(isinstance(toolset, _READERS[name]) for name in wanted)]
    if len(readers) < len(wanted):
        raise ServeError(f"tools={','.join(wanted)}: pages at {place} cannot be searched; leave search out")
    return readers


def own_server(options: ServeOptions) -> list[str]:
    """The command that serves them on standard streams, for `McpTools`."""
    return [sys.executable, "-m", "infra.tools", options.model_dump_json(exclude_defaults=True)]


async def serve(options: ServeOptions, *, http: bool) -> None:
    """Open the toolsets that `options` name and serve them. Raises what `open_toolsets` does."""
    async with open_toolsets(options) as sets:
        # Of the place only a hash: it says that a server of other pages is another one, and nothing of this machine.
        await (serve_http if http else serve_stdio)(sets, serves=f"{VERSION}+{content_hash(options.pages, 8)}")


async def serve_http(sets: Sequence[Toolset], serves: str = "", port: int = 0) -> None:
    """Serve on `port`, 0 for any that is free, until SIGTERM or SIGINT.

    `{"url": ...}` is the one line on standard output, written once the port is ours. `serves` is as `mcp_server` takes it.
    """
    with socket.create_server(("127.0.0.1", port)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        # On loopback the SDK answers only requests that name loopback as their host and origin.
        app = mcp_server(sets, serves=serves).streamable_http_app(host="127.0.0.1")
        config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=_GRACE_S)
        print(json.dumps({"url": url}), flush=True)
        await uvicorn.Server(config).serve(sockets=[listener])


async def serve_stdio(sets: Sequence[Toolset], serves: str = "") -> None:
    """Serve one client until standard input closes. Nothing else may write to standard output; logs go to standard error."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    server = mcp_server(sets, serves=serves)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
