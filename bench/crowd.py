"""Many episodes at once over slow tools: what the event loop feels of it, and whether any episode is lost."""

import asyncio
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import quantiles

from bench.figures import Figure, Row
from bench.slow import text_of
from infra.settings import ASSETS
from infra.tools.base import Tools
from pipeline.families.hard_search.oracle import Move, Script
from rl.env import Env
from rl.formats import TurnFormat, load_format
from rl.rollout import rollout
from rl.scripted import ScriptedSampler
from rl.tooling import open_tools
from schemas.answer import EntityAnswer
from schemas.episode import Limits, ToolOptions, ToolServer
from schemas.query import Query
from schemas.task import Lineage, Task
from schemas.trajectory import StopReason, ToolCall, Trajectory

EPISODES, TURNS = 256, 20
TICK_S = 0.01
TITLE = ("episodes", "turns", "seconds", "calls/s", "loop lag p50 ms", "p99 ms", "max ms", "stops")


async def measure() -> tuple[list[Row], list[Figure]]:
    """One row for `TITLE`, and the figures."""
    options = ToolOptions(servers=(ToolServer(name="slow", command=(sys.executable, "-m", "bench.slow"), replicas=2),))
    format = load_format(ASSETS / "starter")
    async with open_tools(None, options, ()) as opened, lags() as felt:
        started = time.perf_counter()
        ended = await asyncio.gather(*(episode(opened.tools, format, number) for number in range(EPISODES)))
        seconds = time.perf_counter() - started
    stops = Counter(it.stop.value for it in ended)
    lost = EPISODES - sum(it.stop is StopReason.ANSWERED and it.answer == "done" for it in ended)
    cuts = quantiles([lag * 1000 for lag in felt], n=100)
    row = (
        EPISODES,
        TURNS,
        round(seconds, 1),
        round(EPISODES * TURNS / seconds),
        round(cuts[49], 1),
        round(cuts[98], 1),
    )
    figures = [
        Figure("crowd_loop_lag_p99_ms", cuts[98], "< 100 ms"),
        Figure("crowd_episodes_lost", lost, "== 0"),
    ]
    return [(*row, round(max(felt) * 1000, 1), str(dict(stops)))], figures


async def episode(tools: Tools, format: TurnFormat, number: int) -> Trajectory:
    env = Env(tools, format, Limits(max_turns=TURNS + 1, context=8192, max_tokens=256))
    sampler = ScriptedSampler(env, script(number))
    return await rollout(task("look"), number, env=env, sampler=sampler, solver="script", watch=sampler.see)


def script(number: int) -> Script:
    """Looks at `TURNS` things, each once; answers `done` if every look showed the right thing."""
    right = True
    for turn in range(TURNS):
        id = f"{number}/{turn}"
        seen = yield Move(calls=(ToolCall(name="look", arguments={"id": id}),))
        right &= seen == text_of(id)
    yield Move(answer="done" if right else "wrong")


def task(*tools: str) -> Task:
    """A task that offers these tools; which question it asks does not matter to a script."""
    return Task.create(
        family="hard_search",
        stratum="bench",
        question="What is there?",
        answer=EntityAnswer(entity="done", name="done"),
        tools=tools,
        constraints=Query(type="thing", clues=()),
        lineage=Lineage(generator="bench", version="1", seed=0, index=0, knobs={}),
    )


@asynccontextmanager
async def lags() -> AsyncIterator[list[float]]:
    """Seconds by which the event loop woke a sleeper too late, every hundredth of a second while the block runs."""
    felt: list[float] = []

    async def feel() -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + TICK_S
            await asyncio.sleep(TICK_S)
            felt.append(loop.time() - due)

    feeling = asyncio.create_task(feel())
    try:
        yield felt
    finally:
        feeling.cancel()
