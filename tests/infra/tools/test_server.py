"""The server as somebody else's client sees it: the SDK's plain `Client`, over both transports."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import CallToolResult, TextContent

from infra.tools.serve import mcp_server
from tests.infra.tools.starting import COMMAND, http_server
from tests.infra.tools.toolsets import Counter, Echo, Slow


@asynccontextmanager
async def client(transport: str, folder: Path) -> AsyncIterator[Client]:
    if transport == "stdio":
        server = StdioServerParameters(command=sys.executable, args=[*COMMAND[1:], "--stdio", str(folder)])
        async with Client(server) as connected:
            yield connected
    else:
        with http_server(folder) as (url, _):
            async with Client(url) as connected:
                yield connected


def text(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_plain_client_lists_and_calls_with_state(transport: str, tmp_path: Path) -> None:
    async with client(transport, tmp_path) as other:
        tools = {tool.name: tool for tool in (await other.list_tools()).tools}
        assert tools["add"].input_schema == Counter.specs[0].schema
        hints = {name: tool.annotations for name, tool in tools.items()}
        assert [hints[n].read_only_hint for n in ("echo", "add", "send")] == [True, False, False]  # type: ignore[union-attr]
        assert [hints[n].destructive_hint for n in ("echo", "add", "send")] == [False, False, True]  # type: ignore[union-attr]
        assert {n: (tools[n].meta or {})["touchstone/effect"] for n in ("echo", "add", "send")} == {
            "echo": "read",
            "add": "session",
            "send": "outside",
        }
        assert [text(await other.call_tool("add", {"by": 2})) for _ in range(3)] == ["2", "4", "6"]
        named = [text(await other.call_tool("add", {"by": 1}, meta={"touchstone/session": s})) for s in "aab"]
        assert named == ["1", "2", "1"]
        echoed = await other.call_tool("echo", {"text": "ü \u2028 x"})
        assert text(echoed) == "ü \u2028 x" and (echoed.meta or {})["touchstone/sources"] == ["doc:ü \u2028 x"]

        unknown = await other.call_tool("divide", {})
        assert unknown.is_error and "divide: is no tool here; the tools are add, " in text(unknown)
        for arguments in ({"by": "two"}, {}, {"by": 1, "more": 1}):
            wrong = await other.call_tool("add", arguments)
            assert (
                wrong.is_error
                and "call add as its schema says" in text(wrong)
                and "touchstone/down" not in (wrong.meta or {})
            )
        broken = await other.call_tool("boom", {})
        assert broken.is_error and (broken.meta or {})["touchstone/down"] is True
        assert text(await other.call_tool("add", {"by": 0})) == "6"


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_cancelled_call_is_cancelled_in_the_server(transport: str, tmp_path: Path) -> None:
    async with client(transport, tmp_path) as other:
        slow = [asyncio.create_task(other.call_tool("wait", {"seconds": 60})) for _ in range(50)]
        while text(await other.call_tool("running", {})) != "50":
            await asyncio.sleep(0.05)
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
        async with asyncio.timeout(10):
            while text(await other.call_tool("running", {})) != "0":
                await asyncio.sleep(0.05)
        assert text(await other.call_tool("echo", {"text": "fast"})) == "fast"


async def test_two_connections_over_http_are_two_sessions_and_a_stateless_client_is_told(tmp_path: Path) -> None:
    with http_server(tmp_path) as (url, _):
        async with Client(url) as one, Client(url) as two, Client(url, mode="2026-07-28") as stateless:
            assert text(await one.call_tool("add", {"by": 1})) == "1"
            assert text(await two.call_tool("add", {"by": 1})) == "1"
            assert text(await one.call_tool("add", {"by": 1})) == "2"
            refused = await stateless.call_tool("add", {"by": 1})
            assert refused.is_error and "has a state, and this call no session" in text(refused)
            assert text(await stateless.call_tool("echo", {"text": "x"})) == "x"
            named = {"touchstone/session": "s"}
            assert [text(await stateless.call_tool("add", {"by": 1}, meta=named)) for _ in range(2)] == ["1", "2"]


@pytest.mark.parametrize("header", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}])
async def test_a_page_that_rebinds_its_name_to_loopback_is_refused(tmp_path: Path, header: dict[str, str]) -> None:
    with http_server(tmp_path) as (url, _):
        ping = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        accept = {"Accept": "application/json, text/event-stream"}
        assert httpx.post(url, json=ping, headers=accept | header, trust_env=False).status_code in {403, 421}


async def test_nothing_but_messages_is_written_to_standard_output(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *COMMAND, "--stdio", str(tmp_path), stdin=-1, stdout=-1, stderr=-3, env=os.environ | {"PYTHONUNBUFFERED": "1"}
    )
    initialize = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "boom", "arguments": {}}},
    ]
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("".join(json.dumps(m) + "\n" for m in messages).encode())
    answers = [json.loads(await process.stdout.readline()) for _ in range(2)]
    assert [a["id"] for a in answers] == [1, 2] and answers[1]["result"]["isError"]
    process.stdin.close()
    assert await process.stdout.read() == b"" and await process.wait() == 0


async def test_a_session_that_is_idle_or_ended_is_forgotten() -> None:
    counter = Counter()
    server = mcp_server([counter, Echo(), Slow()], idle_seconds=0.2)
    async with Client(server) as other:
        waiting = asyncio.create_task(other.call_tool("wait", {"seconds": 0.6}, meta={"touchstone/session": "busy"}))
        for name in "ab":
            await other.call_tool("add", {"by": 1}, meta={"touchstone/session": name})
        assert len(counter.counts) == 2
        await asyncio.sleep(0.5)
        assert counter.counts == {} and not waiting.done()
        await waiting
        meta = {"touchstone/session": "a", "touchstone/begun": True}
        lost = await other.call_tool("add", {"by": 1}, meta=meta)
        assert lost.is_error and (lost.meta or {})["touchstone/lost"] is True
