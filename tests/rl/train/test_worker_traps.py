"""What froze or lost rollouts in other projects, at the worker: tools of a user's server that never return, trickle or block."""

import asyncio
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.crowd import lags
from infra.client import Completion
from rl.learn.records import Graded
from rl.train.parts import Played
from rl.train.worker import RolloutWorker
from schemas.episode import Limits, ToolOptions, ToolServer
from schemas.trajectory import StopReason
from tests.rl.tiny import FORMAT, sampled
from tests.rl.train.engines import ScriptedEngine, completion, order, setup_in

SERVER = """
import asyncio, threading, time
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("odd")
lock, inside, most = threading.Lock(), 0, 0

@server.tool()
async def look(number: int, ctx: Context) -> str:
    if number == 17:
        await asyncio.sleep(3600)
    while number == 18:
        await ctx.report_progress(0)
        await asyncio.sleep(0.2)
    return f"seen {number}"

@server.tool()
def block(number: int) -> str:
    global inside, most
    with lock:
        inside += 1
        most = max(most, inside)
    time.sleep(2)
    with lock:
        inside -= 1
    return f"most {most}"

server.run("stdio")
"""


class CallingEngine(ScriptedEngine):
    """Calls the tool with a number of its own, then answers with what it was told."""

    def __init__(self, tool: str) -> None:
        super().__init__()
        self.tool = tool

    async def sample(self, prompt: Sequence[int], *, ends: Sequence[int], max_tokens: int, seed: int) -> Completion:
        told = re.findall("(?:seen|most) [0-9]+", FORMAT.decode(prompt))
        call = (
            f'<tool_call>{{"name": "{self.tool}", "arguments": {{"number": {len(self.prompts)}}}}}</tool_call><|end|>'
        )
        if not told:
            self.prompts.append(tuple(prompt))
        return completion(sampled(f"<answer>{told[0]}</answer><|end|>" if told else call), prompt, 0)


async def play_all(folder: Path, tool: str, episodes: int, seconds: float) -> list[Graded]:
    (folder / "odd.py").write_text(SERVER)
    server = ToolServer(name="odd", command=(sys.executable, str(folder / "odd.py")))
    setup = setup_in(folder, world=None, tools=ToolOptions(servers=(server,)), limits=Limits(), seconds=seconds)
    worker = RolloutWorker(setup, [CallingEngine(tool)])
    no_tools = order().model_copy(update={"task": order().task.model_copy(update={"tools": ()})})
    played: list[Played] = await asyncio.gather(
        *(worker.play(no_tools.model_copy(update={"uid": f"g/{n}"})) for n in range(episodes))
    )
    again = (await worker.play(no_tools)).graded  # the slot of whoever never came back is free
    assert again is not None and again.trajectory.stop is StopReason.ANSWERED
    await worker.close()
    return [it.graded for it in played if it.graded is not None]


@pytest.mark.slow
async def test_a_call_that_never_returns_and_one_that_trickles_end_their_own_episodes_only(tmp_path: Path) -> None:
    """Budget 15 s and no more than as much again of grace, on a machine that may be busy."""
    started = time.monotonic()
    graded = await play_all(tmp_path, "look", 64, seconds=15.0)
    assert time.monotonic() - started < 60
    ends = [it.trajectory.stop for it in graded]
    assert (ends.count(StopReason.ANSWERED), ends.count(StopReason.TIME_BUDGET)) == (62, 2)
    assert {it.trajectory.answer for it in graded} == {f"seen {n}" for n in range(64) if n not in (17, 18)} | {None}


async def test_tools_that_block_run_side_by_side_and_the_loop_stays_free(tmp_path: Path) -> None:
    async with lags() as felt:
        graded = await play_all(tmp_path, "block", 32, seconds=120.0)
    assert {it.trajectory.stop for it in graded} == {StopReason.ANSWERED}
    assert max(int(str(it.trajectory.answer).split()[1]) for it in graded) == 32
    assert sorted(felt)[int(0.95 * len(felt))] < 0.2
