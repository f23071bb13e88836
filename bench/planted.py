"""Failures that are planted, and what they are taken for.

Each is played through the environment, with real tasks and tools.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import count, islice

from bench.failing import WAYS, Actor, Case, Falling, Way, begin
from bench.figures import Figure, Row
from infra.pages.corpus import Corpus
from infra.settings import ASSETS, Settings
from infra.tools.base import Tools
from infra.tools.local import LocalTools
from infra.tools.pages import toolsets_for
from pipeline.corpora.world import World
from pipeline.curate import corpus
from pipeline.families import Generator, Miss, generator
from pipeline.grading import agrade
from rl.diagnosis import Diagnoser
from rl.env import Env
from rl.formats import load_format
from rl.formats.ours import Ours
from rl.learn.records import Verdict
from rl.rollout import rollout
from rl.tooling import local_tools
from schemas.answer import DateAnswer, NumberAnswer
from schemas.config import CurateConfig
from schemas.measured import AttemptOutcome
from schemas.task import Task

EPISODES = 100
TITLE = ("planted", "ways", "episodes", "recognised", "others are taken for")


class Planter:
    """Plays attempts that fail in a known way. All share a world and its tools."""

    def __init__(self, world: World, pools: dict[str, list[Task]]) -> None:
        self._world, self._pools = world, pools
        self._diagnose = Diagnoser(world)
        self._whole: Tools = local_tools(world)
        self._falling = LocalTools(
            [Falling(each) for each in toolsets_for(Corpus(world.documents.values(), index=world.index))]
        )
        format = load_format(ASSETS / "starter")
        assert isinstance(format, Ours)
        self._format = format

    async def play(self, way: Way, number: int) -> AttemptOutcome:
        """What the attempt is taken for."""
        pool = self._pools[way.pool]
        task = pool[number % len(pool)]
        case = Case(task, self._world, random.Random(number))
        env = Env(self._falling if way.falls else self._whole, self._format, way.limits)
        actor = Actor(self._format, (act for acts in (begin, way.acts) for act in acts(case)))
        attempt = await rollout(task, number, env=env, sampler=actor, solver="script", seconds=way.seconds)
        verdict = Verdict.NONE
        if attempt.answer is not None:
            verdict = Verdict((await agrade(task.answer, attempt.answer)).verdict)
        return self._diagnose(task, attempt, verdict).outcome

    async def played(self, ways: Sequence[Way], episodes: int) -> Counter[AttemptOutcome]:
        """So many attempts, each way as often as the others."""
        return Counter(await asyncio.gather(*(self.play(ways[n % len(ways)], n) for n in range(episodes))))


async def measure() -> tuple[list[Row], list[Figure]]:
    """A row for each outcome, and the figures."""
    config = CurateConfig(family="hard_search")
    world = await asyncio.to_thread(corpus, config, Settings.from_env().cache)
    assert world is not None
    planter = Planter(world, await asyncio.to_thread(pools, world, EPISODES))
    rows, figures = list[Row](), list[Figure]()
    for planted, ways in WAYS.items():
        found = await planter.played(ways, EPISODES)
        others = {outcome.value: n for outcome, n in found.most_common() if outcome is not planted}
        rows.append((planted.value, len(ways), EPISODES, found[planted], others or ""))
        figures.append(Figure(f"planted_{planted.value}", found[planted] / EPISODES, ">= 0.95"))
    return rows, figures


def pools(world: World, size: int) -> dict[str, list[Task]]:
    """Tasks to fail at, by the name that a `Way` calls them."""
    search = generator(CurateConfig(family="hard_search"), world)
    math = generator(CurateConfig(family="math"), None)
    dates = [stratum for stratum in math.strata if "/date/" in stratum]
    return {
        "hard_search": _first(size, _drawn(search)),
        "math": _first(size, _drawn(math), lambda task: not isinstance(task.answer, DateAnswer)),
        "numbers": _first(size, _drawn(math), lambda task: isinstance(task.answer, NumberAnswer)),
        "dates": _first(size, _of(math, dates)),
        "early dates": _first(size, _of(math, dates), _may_be_another_day),
    }


def _drawn(make: Generator) -> Iterable[Task | Miss]:
    return (make(0, index) for index in count())


def _of(make: Generator, strata: Sequence[str]) -> Iterable[Task | Miss]:
    return (make.at(0, index, strata[index % len(strata)]) for index in count())


def _first(size: int, made: Iterable[Task | Miss], fits: Callable[[Task], bool] = lambda task: True) -> list[Task]:
    return list(islice((each for each in made if isinstance(each, Task) and fits(each)), size))


def _may_be_another_day(task: Task) -> bool:
    """Whether the gold, written in numbers, has two readings."""
    assert isinstance(task.answer, DateAnswer)
    _, month, day = task.answer.value.split("-")
    return int(day) <= 12 and day != month
