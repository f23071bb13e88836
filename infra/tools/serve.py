"""Running the server of tools: over streamable HTTP on loopback, or on standard streams."""

import json
import logging
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from mcp.server.stdio import stdio_server

from infra.tools.base import Toolset
from infra.tools.server import mcp_server

_GRACE_S = 2


@dataclass(frozen=True)
class ServeOptions:
    """Which tools are served, over what."""

    pages: Path | None
    """Folder of pages, as a world or a folder of HTML; `None` where no tool reads any."""
    tools: tuple[str, ...]
    """Names of toolsets."""


def toolsets(options: ServeOptions) -> list[Toolset]:
    """The toolsets that `options` name."""
    return []


def own_server(options: ServeOptions) -> list[str]:
    """The command that serves them on standard streams, for `McpTools`."""
    command = [sys.executable, "-m", "infra.tools", "--stdio", "--tools", ",".join(options.tools)]
    return command if options.pages is None else [*command, "--pages", str(options.pages)]


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
