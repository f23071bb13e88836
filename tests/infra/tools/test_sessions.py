"""`McpTools` against real servers that die, hang, break and trickle."""

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from infra.tools.base import ToolResult
from infra.tools.sessions import McpTools
from schemas.config import ToolOptions
from schemas.trajectory import ToolCall

COMMAND = (sys.executable, "-m", "tests.infra.tools.toolsets", "--stdio")


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(name=name, arguments=arguments)


@asynccontextmanager
async def tools(folder: Path, *, replicas: int = 1, **options: float) -> AsyncIterator[McpTools]:
    async with McpTools(
        ToolOptions(replicas=replicas, **options),  # type: ignore[arg-type]
        own={"own": (*COMMAND, str(folder))},
    ) as started:
        yield started


async def pid(session: Any) -> int:
    return int((await session.call(call("pid"))).text)


async def test_a_session_counts_and_is_alone(tmp_path: Path) -> None:
    async with tools(tmp_path) as mcp:
        first, second = mcp.session(), mcp.session()
        for expected in ("1", "2", "3"):
            assert (await first.call(call("add", by=1))).text == expected
        assert (await second.call(call("add", by=5))).text == "5"
        assert first.journal == (call("add", by=1),) * 3
        assert await first.call(call("echo", text="hi")) == ToolResult("hi", sources=("doc:hi",))


async def test_killed_between_calls_a_server_loses_nothing(tmp_path: Path) -> None:
    async with tools(tmp_path) as mcp:
        session = mcp.session()
        for _ in range(3):
            await session.call(call("add", by=1))
        os.kill(await pid(session), signal.SIGKILL)
        assert (await session.call(call("add", by=1))).text == "4"
