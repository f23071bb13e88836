"""The fault drill: episodes over servers of tools that are killed again and again, held against what undisturbed tools say."""

import asyncio
import contextlib
import itertools
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import psutil  # type: ignore[import-untyped]

from bench.crowd import task
from bench.figures import Figure, Row
from infra.settings import ASSETS, Settings
from infra.tools.base import Tools
from pipeline.corpora import World, load_world
from pipeline.families.hard_search.oracle import Move, Script
from pipeline.sampling import NOBODYS_FAILURE
from rl.env import Env
from rl.formats import TurnFormat, load_format
from rl.rollout import rollout
from rl.scripted import ScriptedSampler
from rl.tooling import local_tools, open_tools
from schemas.episode import Limits, ToolOptions
from schemas.trajectory import ToolCall, Trajectory

EPISODES, TURNS = 200, 24
EVERY_S = 10.0
"""In this time each server is killed once."""
THINK_S = 1.5
"""Median of the lognormal time that a turn is thought about."""
CODE_SHARE = 4
"""One episode in so many runs code."""
OPTIONS = ToolOptions(replicas=2, call_seconds=20, total_seconds=120, heartbeat_seconds=3)
TITLE = ("episodes", "turns", "seconds", "servers killed", "stops", "wrong results", "failed by infra")


@dataclass(frozen=True)
class Plan:
    """What an episode will call, and what it must be told."""

    calls: Sequence[ToolCall]
    told: Sequence[str]


class Thinking(ScriptedSampler):
    """Takes its time before every turn."""

    async def sample(self, prompt, *, ends, max_tokens, seed):  # type: ignore[no-untyped-def]
        await asyncio.sleep(THINK_S * random.lognormvariate(0, 0.5))
        return await super().sample(prompt, ends=ends, max_tokens=max_tokens, seed=seed)


async def measure() -> tuple[list[Row], list[Figure]]:
    """One row for `TITLE`, and the figures."""
    world = await asyncio.to_thread(load_world, "atlas", Settings.from_env().cache)
    format = load_format(ASSETS / "starter")
    plans = [await plan(world, number) for number in range(EPISODES)]
    async with open_tools(world, OPTIONS, ("search", "open", "python")) as opened:
        killed: list[int] = []
        started = time.perf_counter()
        killing = asyncio.create_task(kill_in_turn(killed))
        wrong: list[str] = []
        ended = await asyncio.gather(*(episode(opened.tools, format, plans, n, wrong) for n in range(EPISODES)))
        killing.cancel()
        seconds = time.perf_counter() - started
    failed = sum(it.stop in NOBODYS_FAILURE for it in ended)
    stops = Counter(it.stop.value for it in ended)
    figures = [
        Figure("fault_servers_killed", len(killed), ">= 4"),
        Figure("fault_episodes_without_stop", EPISODES - len(ended), "== 0"),
        Figure("fault_wrong_results", len(wrong), "== 0"),
        Figure("fault_episodes_failed_share", failed / EPISODES, "< 0.01"),
    ]
    return [(EPISODES, TURNS, round(seconds, 1), len(killed), dict(stops), len(wrong), failed)], figures


async def plan(world: World, number: int) -> Plan:
    """Looks and, in some episodes, a running sum whose every value is known."""
    rng = random.Random(number)
    tools = local_tools(world)
    session = tools.session()
    titles = [document.title for document in rng.sample(list(world.documents.values()), TURNS)]
    calls, told, total = [], [], 0
    for turn, title in enumerate(titles):
        kind = turn % 4
        if kind == 3 and number % CODE_SHARE == 0:
            by = rng.randrange(1000)
            total += by
            calls.append(
                ToolCall(name="python", arguments={"code": f"total = globals().get('total', 0) + {by}; total"})
            )
            told.append(str(total))
            continue
        call = (
            ToolCall(name="search", arguments={"queries": [title]}),
            ToolCall(name="open", arguments={"id": title}),
            ToolCall(name="find", arguments={"text": "is"}),
            ToolCall(name="back", arguments={}),
        )[kind]
        calls.append(call)
        told.append((await session.call(call)).text)
    await tools.close()
    return Plan(calls, told)


async def episode(tools: Tools, format: TurnFormat, plans: Sequence[Plan], number: int, wrong: list[str]) -> Trajectory:
    env = Env(tools, format, Limits(max_turns=TURNS + 1, context=32_768, max_tokens=512))
    sampler = Thinking(env, script(plans[number], number, wrong))
    asked = task("search", "open", "find", "back", "python")
    return await rollout(asked, number, env=env, sampler=sampler, solver="script", watch=sampler.see)


def script(plan: Plan, number: int, wrong: list[str]) -> Script:
    """Makes the planned calls, one a turn, and takes down every answer that is not the planned one."""
    for turn, (call, told) in enumerate(zip(plan.calls, plan.told, strict=True)):
        seen = yield Move(calls=(call,))
        if seen.strip() != told.strip():
            wrong.append(f"{number}/{turn} {call.name}: {seen!r} for {told!r}")
    yield Move(answer="done")


async def kill_in_turn(killed: list[int]) -> None:
    """SIGKILL to every server of pages and to one that runs code, evenly spread over `EVERY_S`, for as long as this runs."""
    for coders in itertools.cycle((0, 1)):
        for server in range(OPTIONS.replicas + 1):
            await asyncio.sleep(EVERY_S / (OPTIONS.replicas + 1))
            pages, code = await asyncio.to_thread(our_servers)
            victims = pages[server : server + 1] if server < OPTIONS.replicas else code[coders : coders + 1]
            for victim in victims:
                with contextlib.suppress(psutil.NoSuchProcess):
                    victim.kill()
                    killed.append(victim.pid)


def our_servers() -> tuple[list[psutil.Process], list[psutil.Process]]:
    """The servers of pages and those of code that this process started, by age."""
    pages: list[psutil.Process] = []
    code: list[psutil.Process] = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            command = child.cmdline()
            if command[1:3] == ["-m", "infra.tools"]:
                (code if '"python"' in command[3] else pages).append(child)
    for servers in (pages, code):
        servers.sort(key=psutil.Process.create_time)
    return pages, code
