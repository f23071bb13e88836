"""`McpTools` against real servers that die, hang, break and trickle."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from infra.tools.base import Effect, ToolDown, ToolResult, ToolSession
from infra.tools.local import ToolClash
from infra.tools.sessions import McpTools
from schemas.episode import ToolOptions, ToolServer
from schemas.trajectory import ToolCall
from tests.infra.servers import DribblingServer, down, running
from tests.infra.tools.starting import COMMAND, http_server, port_of

ADD = ToolCall(name="add", arguments={"by": 1})


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(name=name, arguments=arguments)


@asynccontextmanager
async def own(folder: Path, replicas: int = 1, **options: Any) -> AsyncIterator[McpTools]:
    command = (*COMMAND, "--stdio", str(folder))
    async with McpTools(
        ToolOptions(**{"replicas": replicas, "code_seconds": 0.1, **options}), own={"own": command}
    ) as tools:
        yield tools


@asynccontextmanager
async def at(*urls: str, **options: Any) -> AsyncIterator[McpTools]:
    async with McpTools(
        ToolOptions(servers=(ToolServer(name="ours", urls=urls),), **{"code_seconds": 0.1, **options})
    ) as tools:
        yield tools


async def texts(session: ToolSession, *calls: ToolCall) -> list[str]:
    return [(await session.call(c)).text for c in calls]


async def unless_down(session: ToolSession, call: ToolCall) -> str:
    try:
        return (await session.call(call)).text
    except ToolDown:
        return ""


async def pids(session: ToolSession) -> set[int]:
    return {int(t) for t in await texts(session, *[call("pid")] * 24)}


async def test_sessions_have_their_own_state_and_can_be_made_again(tmp_path: Path) -> None:
    async with own(tmp_path) as tools:
        assert tools.specs["add"].effect is Effect.SESSION and tools.specs["send"].effect is Effect.OUTSIDE
        first, second = tools.session(), tools.session()
        assert await texts(first, ADD, ADD, ADD) == ["1", "2", "3"] and await texts(second, ADD) == ["1"]
        assert first.journal == (ADD,) * 3
        assert await first.call(call("echo", text="hi")) == ToolResult("hi", sources=("doc:hi",))
        assert (await first.call(call("refuse"))).error and first.journal == (ADD,) * 3
        await first.close()
        assert await texts(tools.session(first.journal), ADD) == ["4"]


async def test_a_call_that_fails_when_it_is_made_again_is_told_and_ends_no_episode(tmp_path: Path) -> None:
    async with own(tmp_path, call_seconds=15, total_seconds=20) as tools:
        session = tools.session((ADD, call("refuse"), ADD))
        first, second = await texts(session, ADD, ADD)
        assert first.startswith("note: the session was made again, and a call of refuse failed (") and first.endswith(
            ")\n3"
        )
        assert second == "4"


async def test_killed_in_mid_call_and_between_calls_a_server_loses_nothing(tmp_path: Path) -> None:
    async with own(tmp_path, replicas=2) as tools:
        session = tools.session()
        assert await texts(session, ADD, ADD) == ["1", "2"]
        reads = [asyncio.create_task(session.call(call("wait", seconds=1))) for _ in range(16)]
        await asyncio.sleep(0.3)
        victims = await pids(session)
        assert len(victims) == 2
        os.kill(victims.pop(), signal.SIGKILL)
        assert {(await read).text for read in reads} == {"waited 1"}
        assert await texts(session, ADD) == ["3"]
        for pid in await pids(session):
            os.kill(pid, signal.SIGKILL)
        assert await texts(session, ADD, call("echo", text="x")) == ["4", "x"]


async def test_64_sessions_go_on_while_their_servers_are_killed(tmp_path: Path) -> None:
    async with own(tmp_path, replicas=2) as tools:

        async def episode(n: int) -> list[str]:
            session = tools.session()
            said = []
            for turn in range(10):
                await asyncio.sleep(0.25)
                said += await texts(session, ADD, call("echo", text=f"{n} {turn}"))
            await session.close()
            return said

        episodes = [asyncio.create_task(episode(n)) for n in range(64)]
        for _ in range(2):
            await asyncio.sleep(0.8)
            os.kill(next(iter(await pids(tools.session()))), signal.SIGKILL)
        for n, said in enumerate(await asyncio.gather(*episodes)):
            assert said == [text for turn in range(10) for text in (str(turn + 1), f"{n} {turn}")]


async def test_a_hung_server_is_killed_and_started_again(tmp_path: Path) -> None:
    async with own(tmp_path, heartbeat_seconds=0.5, call_seconds=3) as tools:
        session = tools.session()
        assert await texts(session, ADD) == ["1"]
        (pid,) = await pids(session)
        os.kill(pid, signal.SIGSTOP)
        assert await texts(session, ADD) == ["2"]
        await ended(pid)  # the call does not wait for it


async def ended(pid: int) -> None:
    """Once the kernel has come to it, which takes its time on a busy machine."""
    async with asyncio.timeout(30):
        while not dead(pid):
            await asyncio.sleep(0.1)


def dead(pid: int) -> bool:
    """Whether the process ended; whose child it is by now may not have asked how."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def test_tools_close_in_their_time_though_a_server_is_stopped_and_being_given_up(tmp_path: Path) -> None:
    async with own(tmp_path, heartbeat_seconds=1, call_seconds=2, total_seconds=5) as tools:
        session = tools.session()
        (pid,) = await pids(session)
        with pytest.raises(ToolDown):
            await session.call(call("hang"))
        began = time.monotonic()
    assert time.monotonic() - began < 20
    await ended(pid)


async def test_a_server_that_is_stopped_before_it_answers_fails_within_the_deadline(tmp_path: Path) -> None:
    stopped = tmp_path / "pid"
    code = (
        f"import os, signal; open({str(stopped)!r}, 'w').write(str(os.getpid())); os.kill(os.getpid(), signal.SIGSTOP)"
    )
    server = ToolServer(name="mute", command=(sys.executable, "-c", code))
    began = time.monotonic()
    with pytest.raises(ToolDown, match=r"^mute: the tool server cannot be reached"):
        async with McpTools(ToolOptions(servers=(server,), code_seconds=0.1, call_seconds=1, total_seconds=1.5)):
            pass
    assert time.monotonic() - began < 11 and dead(int(stopped.read_text()))


async def test_a_tool_that_is_broken_or_kills_its_server_is_down_and_its_neighbours_go_on(tmp_path: Path) -> None:
    async with own(tmp_path) as tools:
        session, neighbour = tools.session(), tools.session()
        assert await texts(neighbour, ADD) == ["1"]
        with pytest.raises(
            ToolDown, match=r"^boom: failed 5 times \(.*ZeroDivisionError: by design.*\); check the server"
        ):
            await session.call(call("boom"))
        with pytest.raises(ToolDown, match=r"^die: failed 5 times \(.*Connection closed"):
            await session.call(call("die"))
        assert await texts(neighbour, ADD) == ["2"] and session.journal == ()


async def test_a_call_outside_that_is_cut_is_told_once_and_never_made_twice(tmp_path: Path) -> None:
    async with own(tmp_path, call_seconds=4) as tools:
        session = tools.session()
        assert (await session.call(call("send", line="a", seconds=0))).text == "sent"
        cut = asyncio.create_task(session.call(call("send", line="b", seconds=30)))
        await asyncio.sleep(0.5)
        os.kill((await pids(session)).pop(), signal.SIGKILL)
        result = await cut
        assert not result.error and result.text.startswith("send: it is not known whether the call was made (")
        late = await session.call(call("send", line="c", seconds=30))
        assert "it is not known whether the call was made" in late.text and "no answer within 4 s" in late.text
        assert (await session.call(call("send", line="d", seconds=0))).text == "sent"
    assert (tmp_path / "sent").read_text().split() == ["a", "b", "c", "d"]


async def test_a_cancelled_call_leaves_the_connection_and_the_state(tmp_path: Path) -> None:
    async with own(tmp_path) as tools:
        session = tools.session()
        assert await texts(session, ADD) == ["1"]
        beside = asyncio.create_task(session.call(call("wait", seconds=1)))
        slow = [asyncio.create_task(tools.session().call(call("wait", seconds=60))) for _ in range(50)]
        changes = [asyncio.create_task(tools.session().call(ADD)) for _ in range(20)]
        await asyncio.sleep(0.1)
        (pid,) = await pids(session)
        adding = asyncio.create_task(session.call(ADD))
        await asyncio.sleep(0)
        for task in (*slow, *changes, adding):
            task.cancel()
        await asyncio.gather(*slow, *changes, adding, return_exceptions=True)
        assert await texts(session, ADD, call("running")) == ["2", "1"]
        assert (await beside).text == "waited 1" and await pids(session) == {pid}


async def test_what_no_message_can_carry_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    async with own(tmp_path) as tools:
        session = tools.session()
        for text in ("half a pair \ud83d", float("nan")):
            assert (await session.call(call("echo", text=text))).error
        assert await texts(session, call("echo", text="x")) == ["x"]


async def test_sessions_over_http_survive_the_death_of_one_address(tmp_path: Path) -> None:
    with http_server(tmp_path) as (one, first), http_server(tmp_path) as (two, _):
        async with at(one, two) as tools:
            sessions = [tools.session() for _ in range(8)]
            for session in sessions:
                assert await texts(session, ADD, ADD) == ["1", "2"]
            reads = [asyncio.create_task(s.call(call("wait", seconds=1))) for s in sessions]
            await asyncio.sleep(0.3)
            first.kill()
            assert {(await read).text for read in reads} == {"waited 1"}
            assert [await texts(s, ADD) for s in sessions] == [["3"]] * 8
            for session in sessions:
                await session.close()


async def test_a_server_that_took_the_port_is_not_talked_to(tmp_path: Path) -> None:
    options = {"total_seconds": 2, "call_seconds": 2}
    with http_server(tmp_path) as (url, first):
        async with at(url, **options) as tools:
            session = tools.session()
            assert await texts(session, ADD) == ["1"]
            first.kill()
            first.wait()
            refusal = "touchstone other pages answers, which is not the touchstone tests"
            with http_server(tmp_path, port=port_of(url), serves="other pages"), pytest.raises(ToolDown, match=refusal):
                await session.call(ADD)
            with http_server(tmp_path, port=port_of(url)):
                async with asyncio.timeout(60):
                    while not (said := await unless_down(session, ADD)):
                        pass
                assert said == "2"


async def test_a_server_that_trickles_ends_by_the_total_deadline(tmp_path: Path) -> None:
    with http_server(tmp_path) as (url, first):
        async with at(url, call_seconds=1, total_seconds=1.5) as tools:
            session = tools.session()
            assert await texts(session, ADD) == ["1"]
            first.send_signal(signal.SIGSTOP)
            started = time.monotonic()
            with pytest.raises(ToolDown, match=r"^add: not made within 1\.5 s \(.*no answer within 1 s"):
                await session.call(ADD)
            assert time.monotonic() - started < 3
    # The handshake itself may trickle too.
    with running(DribblingServer(b" ", pause_s=0.05)) as url:
        started = time.monotonic()
        with pytest.raises(ToolDown, match="ours: the tool server cannot be reached"):
            async with asyncio.timeout(60), at(url, call_seconds=1, total_seconds=1):
                pass
        assert time.monotonic() - started < 30


THEIRS = """
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations
server = MCPServer("theirs")
@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def look(at: str) -> str:
    return f"seen {at}"
@server.tool()
def act() -> int:
    raise ValueError("not today")
server.run()
"""


async def test_a_server_of_somebody_else_gives_its_tools_and_only_those_that_say_they_read_are_repeated() -> None:
    theirs = ToolServer(name="theirs", command=(sys.executable, "-c", THEIRS))
    async with McpTools(ToolOptions(servers=(theirs,))) as tools:
        assert {name: spec.effect for name, spec in tools.specs.items()} == {"look": Effect.READ, "act": Effect.OUTSIDE}
        session = tools.session()
        assert await session.call(call("look", at="x")) == ToolResult("seen x")
        assert (await session.call(call("act"))).error
        await session.close()


LOUD_SERVER = """
import json, sys
def answer(asked):
    match asked.get("method"):
        case "initialize":
            server = {"name": "loud", "version": "1"}
            version = asked["params"]["protocolVersion"]
            return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}}
        case "tools/list":
            return {"result": {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in ("text", "error", "refuse")]}}
        case "tools/call" if asked["params"]["name"] == "refuse":
            return {"error": {"code": -32602, "message": "x" * 10**6}}
        case "tools/call":
            error = asked["params"]["name"] == "error"
            content = [{"type": "text", "text": "x" * 10**6}]
            return {"result": {"content": content, "isError": error, "_meta": {"touchstone/sources": 5}}}
        case _:
            return {"result": {}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer(asked)}), flush=True)
"""


async def test_long_texts_of_a_server_are_cut_and_what_it_says_of_sources_in_a_wrong_form_is_ignored() -> None:
    server = ToolServer(name="loud", command=(sys.executable, "-c", LOUD_SERVER))
    async with McpTools(ToolOptions(servers=(server,))) as tools:
        session = tools.session()
        text, error, refused = [await session.call(call(name)) for name in ("text", "error", "refuse")]
        assert text == ToolResult("x" * 200_000 + " [cut: 200000 of 1000000 characters]")
        assert error == refused == ToolResult("x" * 1000 + " [cut: 1000 of 1000000 characters]", error=True)


async def test_two_servers_with_one_tool_name_are_named(tmp_path: Path) -> None:
    command = (*COMMAND, "--stdio", str(tmp_path))
    options = ToolOptions(servers=(ToolServer(name="theirs", command=command),))
    with pytest.raises(ToolClash, match=r"^add: a tool of theirs and own; leave one of the servers out"):
        async with McpTools(options, own={"own": command}):
            pass


async def test_a_server_that_cannot_be_reached_is_named_with_what_was_tried_and_its_last_lines() -> None:
    dying = ToolServer(name="mine", command=(sys.executable, "-c", "import sys; sys.exit('no pages in /nowhere')"))
    with pytest.raises(
        ToolDown, match=r"^mine: the tool server cannot be reached \(.*-c import sys.*it said: no pages in"
    ):
        async with McpTools(ToolOptions(servers=(dying,))):
            pass
    with down() as url, pytest.raises(ToolDown, match=rf"^ours: .*\({url}: ConnectError: .*\); start it or correct"):
        async with at(url):
            pass


async def test_no_server_outlives_its_starter(tmp_path: Path) -> None:
    code = f"""
import asyncio, os
from tests.infra.tools.test_sessions import own, pids
from pathlib import Path
async def main():
    async with own(Path({str(tmp_path)!r})) as tools:
        print((await pids(tools.session())).pop(), flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""
    starter = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=-1)
    assert starter.stdout is not None
    server = int(await starter.stdout.readline())
    assert psutil.pid_exists(server)
    starter.kill()
    await starter.wait()
    async with asyncio.timeout(10):
        while psutil.pid_exists(server):
            await asyncio.sleep(0.05)
