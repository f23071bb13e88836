"""Episodes to imitate: oracle scripts played in the real environment, over worlds whose facts are shuffled.

Facts that differ from world to world cannot be learnt by heart, so what is left to learn is to look them up.
"""

import asyncio
import random
from collections.abc import Mapping, Sequence

import numpy as np

from pipeline.corpora.world import World
from pipeline.families.base import Miss
from pipeline.families.hard_search import HardSearch
from pipeline.families.hard_search.grammar import FRAMES, question
from pipeline.families.hard_search.oracle import Flaw, Oracle, Script
from pipeline.grading.grader import RIGHT, grade
from rl.env import Env
from rl.formats import TurnFormat
from rl.scripted import step
from rl.starter.sft import Episode
from rl.tokens import ToolCalls
from rl.tooling import local_tools
from schemas.answer import EntityAnswer
from schemas.config import HardSearchConfig
from schemas.episode import Limits
from schemas.query import Clue, EntityRef, Query
from schemas.task import Lineage, Task
from schemas.trajectory import ToolCall

TOOLS = ("search", "open")


def hard_tasks(world: World, config: HardSearchConfig, seed: int, count: int) -> list[Task]:
    """The first `count` tasks of the family; candidates that miss are passed over."""
    make = HardSearch(world, config)
    tasks: list[Task] = []
    for index in range(4 * count):
        task = make(seed, index)
        if not isinstance(task, Miss):
            tasks.append(task)
        if len(tasks) == count:
            break
    return tasks


def lookups(world: World, types: Sequence[str], seed: int, count: int) -> list[Task]:
    """First lessons: questions about a single fact, asked in the words of the family, that one search answers."""
    rng = random.Random(f"{seed}/lookups")
    facts = [
        f
        for f in world.facts
        if isinstance(f.object, str) and {world.entities[f.subject].type, world.entities[f.object].type} <= set(types)
    ]
    tasks: list[Task] = []
    for fact in rng.choices(facts, k=8 * count):
        assert isinstance(fact.object, str)
        inverse = world.relations[fact.relation].inverse_clue is not None and rng.random() < 0.5
        named, asked = (fact.subject, fact.object) if inverse else (fact.object, fact.subject)
        clue = Clue(relation=fact.relation, inverse=inverse, target=EntityRef(entity=named))
        query = Query(type=world.entities[asked].type, clues=(clue,))
        if world.certain(query) == {asked}:
            tasks.append(_lookup(world, query, asked, question(world, query, rng.choice(FRAMES), None), seed))
        if len(tasks) == count:
            break
    return tasks


def drills(names: Sequence[str], format: TurnFormat, seed: int, count: int) -> list[Episode]:
    """The very first lessons: a question that is nothing but names, and the search that repeats them."""
    rng = random.Random(f"{seed}/drills")
    made = []
    for _ in range(count):
        chosen = rng.sample(list(names), rng.randint(2, 10))
        prompt = format.opening(rng.choice([", ", " and ", " has ", " is in "]).join(chosen) + "?", ())
        turn = format.turn(ToolCalls((ToolCall(name="search", arguments={"queries": [" ".join(chosen)]}),)))
        mask = [False] * len(prompt) + [True] * len(turn)
        made.append(Episode(np.array([*prompt, *turn], dtype=np.int32), np.array(mask)))
    return made


def first_turn(episode: Episode) -> Episode:
    """The episode up to the end of the first turn that the policy writes."""
    written = np.flatnonzero(episode.mask)
    breaks = np.flatnonzero(np.diff(written) > 1)
    end = int(written[breaks[0]] if len(breaks) else written[-1]) + 1
    return Episode(episode.ids[:end], episode.mask[:end])


def _lookup(world: World, query: Query, answer: str, text: str, seed: int) -> Task:
    entity = world.entities[answer]
    lineage = Lineage(generator="lookup", version="1", seed=seed, index=0, knobs={}, world=world.hash)
    return Task.create(
        family="hard_search",
        stratum="lookup",
        question=text,
        answer=EntityAnswer(entity=answer, name=entity.name, aliases=entity.aliases),
        tools=TOOLS,
        constraints=query,
        lineage=lineage,
    )


def episodes(
    world: World,
    tasks: Sequence[Task],
    format: TurnFormat,
    limits: Limits,
    flaws: Mapping[Flaw, float],
    seed: int,
) -> list[Episode]:
    """Episodes of the tasks, flawed ones by the shares of `flaws`; of the others only those that end in the right answer.

    Equal (world, tasks, seed) give equal episodes.
    """
    oracle = Oracle(world)

    async def play_all() -> list[Episode]:
        played = []
        tools = local_tools(world)
        env = Env(tools, format, limits)
        for task in tasks:
            assert isinstance(task.constraints, Query)
            rng = random.Random(f"{seed}/{task.task_id}")
            flaw = draw_flaw(rng, flaws)
            episode, answer = await play(env, format, task, oracle.script(task.constraints, rng, flaw))
            if flaw is not None or (answer is not None and grade(task.answer, answer) == RIGHT):
                played.append(episode)
        await tools.close()
        return played

    return asyncio.run(play_all())


def draw_flaw(rng: random.Random, flaws: Mapping[Flaw, float]) -> Flaw | None:
    """A flaw with its share as probability; `None` for the rest."""
    kinds = [*flaws, None]
    return rng.choices(kinds, [*flaws.values(), 1 - sum(flaws.values())])[0]


async def play(env: Env, format: TurnFormat, task: Task, script: Script) -> tuple[Episode, str | None]:
    """The script's moves as tokens, with what the environment answered between them; and the final answer."""
    ids = list(env.reset(task))
    mask = [False] * len(ids)
    move = next(script)
    while True:
        turn = format.turn(step(move))
        seen = await env.step(turn)
        shown = () if seen.done else env.shown
        ids += [*turn, *shown]
        mask += [True] * len(turn) + [False] * len(shown)
        if seen.done:
            await env.close()
            return Episode(np.array(ids, dtype=np.int32), np.array(mask)), seen.answer
        move = script.send(seen.text or "")
