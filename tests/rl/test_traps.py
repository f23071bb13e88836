"""What froze or lost rollouts in other projects: tools that never return, trickle, or block."""

import asyncio
import sys
import time
from pathlib import Path

from bench.crowd import lags
from infra.tools.local import LocalTools
from pipeline.families.hard_search.oracle import Move, Script
from rl.env import Env
from rl.rollout import rollout
from rl.scripted import ScriptedSampler
from rl.tooling import Opened, open_tools
from schemas.episode import ToolOptions, ToolServer
from schemas.trajectory import StopReason, ToolCall, Trajectory
from tests.rl.test_env import RecordingTool, task
from tests.rl.tiny import FORMAT

SYNC_SERVER = """
import time
from mcp.server.mcpserver import MCPServer
server = MCPServer("blocking")

@server.tool()
def block(seconds: float) -> str:
    time.sleep(seconds)
    return "slept"

server.run("stdio")
"""


def one_call(name: str, **arguments: str | float) -> Script:
    seen = yield Move(calls=(ToolCall(name=name, arguments=dict(arguments)),))
    yield Move(answer=seen)


async def attempt(opened: Opened, script: Script, *tools: str, seconds: float) -> Trajectory:
    env = Env(opened.tools, FORMAT, extra=opened.extra)
    sampler = ScriptedSampler(env, script)
    return await rollout(task(*tools), 0, env=env, sampler=sampler, solver="s", seconds=seconds, watch=sampler.see)


class HangsOnOne(RecordingTool):
    """Never answers `17`."""

    async def call(self, session, name, arguments):  # type: ignore[no-untyped-def]
        if arguments["query"] == "17":
            await asyncio.sleep(3600)
        return await super().call(session, name, arguments)


async def test_one_tool_call_that_never_returns_ends_its_own_rollout_and_no_other() -> None:
    opened = Opened(LocalTools([HangsOnOne()]))
    started = time.monotonic()
    ended = await asyncio.gather(
        *(attempt(opened, one_call("search", query=str(n)), "search", seconds=2.0) for n in range(64))
    )
    assert time.monotonic() - started < 12
    assert [n for n, it in enumerate(ended) if it.stop is StopReason.TIME_BUDGET] == [17]
    assert all(it.answer == f"result for {n}" for n, it in enumerate(ended) if n != 17)


async def test_tools_that_block_their_server_freeze_neither_the_loop_nor_each_other(tmp_path: Path) -> None:
    (tmp_path / "blocking.py").write_text(SYNC_SERVER)
    server = ToolServer(name="blocking", command=(sys.executable, str(tmp_path / "blocking.py")))
    async with open_tools(None, ToolOptions(servers=(server,)), ()) as opened:
        assert opened.extra == ("block",)
        started = time.monotonic()
        async with lags() as felt:
            ended = await asyncio.gather(
                *(attempt(opened, one_call("block", seconds=2.0), seconds=60.0) for _ in range(32))
            )
        wall = time.monotonic() - started
    assert {(it.stop, it.answer) for it in ended} == {(StopReason.ANSWERED, "slept")}
    assert wall < 32  # one after another they would take 64 s
    assert sorted(felt)[int(0.95 * len(felt))] < 0.2
