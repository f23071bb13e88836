"""How deep an episode gets: a scripted oracle that looks at every candidate, with and without context management."""

import asyncio
import random
from dataclasses import dataclass
from statistics import mean

from bench.figures import Figure, Row
from infra.settings import ASSETS, Settings
from infra.tools.base import Tools
from pipeline.corpora import World, load_world
from pipeline.families.base import Miss
from pipeline.families.hard_search import HardSearch
from pipeline.families.hard_search.explore import Explorer
from pipeline.grading import Verdict, grade
from rl.env import Env
from rl.formats import TurnFormat, load_format
from rl.rollout import rollout
from rl.scripted import ScriptedSampler
from rl.tooling import open_tools
from schemas.config import HardSearchConfig
from schemas.episode import ContextOptions, Limits, ToolOptions
from schemas.query import Query, named
from schemas.task import Task
from schemas.trajectory import StopReason, Trajectory

TASKS = 8
WINDOW, TURN = 8192, 192
NAMED = 5
"""Entities that a task has to name and that are no candidates: each is one more page and one more search."""
TITLE = ("mode", "task", "turns", "pages", "searches", "segments", "largest prompt", "stop", "answer")


@dataclass(frozen=True)
class Played:
    """One episode, and what it did."""

    mode: str
    task: Task
    trajectory: Trajectory
    remembers: bool
    """Whether what it found stood in the window it answered from."""

    @property
    def turns(self) -> int:
        return len(self.trajectory.turns)

    @property
    def pages(self) -> int:
        calls = [call for turn in self.trajectory.turns for call in turn.tool_calls if call.name == "open"]
        return len({str(call.arguments["id"]) for call in calls})

    @property
    def searches(self) -> int:
        return sum(call.name == "search" for turn in self.trajectory.turns for call in turn.tool_calls)

    @property
    def right(self) -> bool:
        answer = self.trajectory.answer
        return answer is not None and grade(self.task.answer, answer).verdict is Verdict.RIGHT

    @property
    def row(self) -> Row:
        it = self.trajectory
        largest = max(turn.prompt_tokens for turn in it.turns)
        segments = it.turns[-1].segment + 1
        verdict = "right" if self.right else "wrong" if it.answer else "none"
        return self.mode, it.task_id, self.turns, self.pages, self.searches, segments, largest, it.stop.value, verdict


async def measure() -> tuple[list[Row], list[Figure]]:
    """Rows for `TITLE`, and the figures."""
    world = await asyncio.to_thread(load_world, "atlas", Settings.from_env().cache)
    format = load_format(ASSETS / "starter")
    tasks, explorer = deep_tasks(world), Explorer(world)
    played: dict[str, list[Played]] = {}
    async with open_tools(world, ToolOptions(), ("search", "open")) as opened:
        for mode in ("drop", "summarise", "off"):
            played[mode] = [await play(mode, task, explorer, opened.tools, format) for task in tasks]
    managed, unmanaged = [*played["drop"], *played["summarise"]], played["off"]
    overflowed = [it for it in unmanaged if it.trajectory.stop is StopReason.CONTEXT_OVERFLOW]
    figures = [
        Figure("deep_turns_min", min(it.turns for it in managed), ">= 100"),
        Figure("deep_pages_min", min(it.pages for it in managed), ">= 200"),
        Figure("deep_searches_min", min(it.searches for it in managed), ">= 70"),
        Figure("deep_right_share", mean(it.right for it in managed), "== 1"),
        Figure("deep_answer_in_last_window_share", mean(it.remembers for it in managed), "== 1"),
        Figure(
            "deep_largest_prompt", max(t.prompt_tokens for it in managed for t in it.trajectory.turns), f"<= {WINDOW}"
        ),
        Figure("unmanaged_overflow_share", len(overflowed) / len(unmanaged), "== 1"),
        Figure("unmanaged_overflow_turn_mean", mean(it.turns for it in unmanaged), ">= 1"),
        Figure("management_turns_ratio", mean(it.turns for it in managed) / mean(it.turns for it in unmanaged), ">= 3"),
    ]
    return [it.row for mode in played for it in played[mode]], figures


def deep_tasks(world: World, count: int = TASKS, seed: int = 0) -> list[Task]:
    """Questions about a country that name many things: every country has to be looked at to be sure."""
    make = HardSearch(world, HardSearchConfig(types=("country",), min_clues=NAMED, max_clues=8, max_depth=3))
    tasks: list[Task] = []
    index = 0
    while len(tasks) < count:
        task = make(seed, index)
        index += 1
        if not isinstance(task, Miss) and len(_named_beside(task, world)) >= NAMED:
            tasks.append(task)
    return tasks


def _named_beside(task: Task, world: World) -> set[str]:
    """What the task names that is no candidate."""
    assert isinstance(task.constraints, Query)
    return {*named(task.constraints)} - {*world.of_type(task.constraints.type)}


async def play(mode: str, task: Task, explorer: Explorer, tools: Tools, format: TurnFormat) -> Played:
    """One episode of the exhaustive script."""
    assert isinstance(task.constraints, Query)
    management = ContextOptions.model_validate({"mode": mode})
    limits = Limits(max_turns=1000, max_tokens=TURN, context=WINDOW, management=management)
    env = Env(tools, format, limits)
    script = explorer.script(task.constraints, random.Random(task.task_id), notes=mode != "off", exhaustive=True)
    sampler = ScriptedSampler(env, script)
    trajectory = await rollout(task, 0, env=env, sampler=sampler, solver="oracle", watch=sampler.see)
    segment = [turn for turn in trajectory.turns if turn.segment == trajectory.turns[-1].segment]
    window = format.decode([id for turn in segment for id in (*turn.shown_ids, *turn.output_ids)])
    return Played(mode, task, trajectory, f"{trajectory.answer} fits all clues" in window)
