"""Policies that fail in one way on purpose, and tools that go down.

Nothing but what a policy writes, what its model and its tools do and what it may spend makes an outcome; and before it fails,
a policy does other things, some of them wrong.
"""

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count

from pydantic import JsonValue

from infra.client import Completion
from infra.endpoint import ModelError, ServerDown
from infra.tools.base import ToolResult, Toolset
from pipeline.corpora.world import World
from pipeline.families.hard_search.oracle import Move
from rl.formats.ours import Ours
from rl.scripted import certain, step
from rl.tokens import Markup
from schemas.answer import DateAnswer, EntityAnswer, NumberAnswer, canonical_answer
from schemas.episode import Limits
from schemas.measured import AttemptOutcome
from schemas.query import Query
from schemas.task import Task
from schemas.trajectory import ToolCall

WIDE = Limits(max_turns=12, max_tokens=512, context=16_384)
DECLINES = (
    "unknown", "I don't know.", "I do not know", "Not found.", "none", "No answer", "I give up.", "I'm not sure.",
    "The answer is unknown.", "Cannot be determined.", "Unable to determine", "I could not find it.", "The pages do not say.",
    "This cannot be answered.", "I couldn’t identify it", "N/A",
)  # fmt: skip
BROKEN = (
    "Let me look that up.<|end|>",
    '<tool_call>{"name": "browse", "arguments": {"page": "Niger"}}</tool_call><|end|>',
    '<tool_call>{"name": "search", "arguments": {"queries": ["Niger"]}</tool_call><|end|>',
    '<tool_call>{"name": "search", "arguments": {"q": "Niger"}}</tool_call><|end|>',
    "<answer>Niger</answer><answer>Mali</answer><|end|>",
    "<answer>Niger<|end|>",
    "<tool_response>Niger: a country</tool_response><|end|>",
)
"""Turns that are no step, each for another reason."""
SUM = "The answer is " + " + ".join(["1"] * 1200)
"""Written out, so that the grader will not add it up."""

Act = Move | str | ModelError | None
"""What a policy does in one turn: a step; a text whose control tokens are meant; its model breaks; it never answers."""


@dataclass(frozen=True, slots=True)
class Case:
    """A task to fail at. `world` is that of the tools, whatever the task is about."""

    task: Task
    world: World
    rng: random.Random

    @property
    def query(self) -> Query:
        assert isinstance(self.task.constraints, Query)
        return self.task.constraints

    def page(self) -> str:
        return self.rng.choice(list(self.world.documents.values())).title

    def named(self, entity: str) -> Move:
        """An answer that names it."""
        it = self.world.entities[entity]
        return Move(answer=self.rng.choice((it.title, it.name, f"The answer is {it.name}.", f"{it.name}.")))


Acts = Callable[[Case], Iterator[Act]]


def search(words: str) -> Move:
    return Move(calls=(ToolCall(name="search", arguments={"queries": [words], "k": 3}),))


def opened(page: str) -> Move:
    return Move(calls=(ToolCall(name="open", arguments={"id": page}),))


def begin(case: Case) -> Iterator[Act]:
    """A few turns that are nobody's failure yet: looking, reading the evidence, a page that is not there, a turn that is no step."""
    acts: list[Act] = [BROKEN[0]]
    if case.task.tools:
        acts += [search(case.page()), opened(case.page()), opened("no such page"), search(case.task.question[:60])]
        acts += [opened(each.document) for each in case.task.evidence[:2]]
    yield from case.rng.sample(acts, case.rng.randint(0, min(3, len(acts))))


def right(case: Case) -> Iterator[Act]:
    gold = case.task.answer
    names = (gold.name, *gold.aliases) if isinstance(gold, EntityAnswer) else (canonical_answer(gold),)
    yield Move(answer=case.rng.choice(names))


def runner_up(case: Case) -> Iterator[Act]:
    yield case.named(case.rng.choice(sorted(case.world.runners_up(case.query))))


def other_entity(case: Case) -> Iterator[Act]:
    """One that at least two clues rule out."""
    assert isinstance(case.task.answer, EntityAnswer)
    near = {case.task.answer.entity, *case.world.runners_up(case.query)}
    yield case.named(case.rng.choice(sorted({*case.world.of_type(case.query.type)} - near)))


def of_another_type(case: Case) -> Iterator[Act]:
    others = (each.id for each in case.world.entities.values() if each.type != case.query.type)
    yield case.named(case.rng.choice(sorted(others)))


def no_entity(case: Case) -> Iterator[Act]:
    yield Move(answer=case.rng.choice(("Atlantis", "Kingdom of Ruritania", "Freedonia", "El Dorado")))


def slip(case: Case) -> Iterator[Act]:
    """What a mistake on the way makes of the answer."""
    yield Move(answer=case.rng.choice(case.task.near_misses).answer)


def miscounts(case: Case) -> Iterator[Act]:
    assert isinstance(case.task.answer, NumberAnswer)
    yield Move(answer=str(Fraction(case.task.answer.value) + case.rng.choice((-10, -1, 1, 2, 100))))


def declines(case: Case) -> Iterator[Act]:
    yield Move(answer=case.rng.choice(DECLINES))


def says_nothing(case: Case) -> Iterator[Act]:
    while True:
        yield Move(answer="")


def repeats(case: Case) -> Iterator[Act]:
    again = case.rng.choice((search(case.page()), opened(case.page()), opened("no such page")))
    while True:
        yield again


def wanders(case: Case) -> Iterator[Act]:
    for n in count():
        yield search(f"{case.page()} {n}") if n % 2 else opened(case.page())


def breaks_format(case: Case) -> Iterator[Act]:
    while True:
        if case.task.tools and case.rng.random() < 0.3:
            yield search(case.page())
        yield case.rng.choice(BROKEN)


def rambles(case: Case) -> Iterator[Act]:
    yield Move(thought="let me think again " * 400, answer="Niger")


def breaks_down(case: Case) -> Iterator[Act]:
    yield ServerDown("connection refused")


def hangs(case: Case) -> Iterator[Act]:
    yield None


def day_or_month_first(case: Case) -> Iterator[Act]:
    assert isinstance(case.task.answer, DateAnswer)
    year, month, day = case.task.answer.value.split("-")
    yield Move(answer=f"{case.rng.choice((f'{day}/{month}', f'{month}/{day}'))}/{year}")


def adds_nothing_up(case: Case) -> Iterator[Act]:
    yield Move(answer=SUM)


@dataclass(frozen=True, slots=True)
class Way:
    """A way to fail at a task of one of the `POOLS`."""

    acts: Acts
    pool: str = "hard_search"
    limits: Limits = WIDE
    seconds: float = 120.0
    falls: bool = False
    """Whether the tools go down on the way."""


NARROW = Limits(max_turns=100, max_tokens=256, context=1500)
TIGHT = Limits(max_tokens=256, context=256)
SHORT = Limits(max_tokens=256, context=16_384)
LONG = Limits(max_tokens=8_192, context=16_384)
WAYS: Mapping[AttemptOutcome, Sequence[Way]] = {
    AttemptOutcome.RIGHT: (Way(right), Way(right, "math")),
    AttemptOutcome.NEAR_MISS: (Way(runner_up),),
    AttemptOutcome.WRONG_ENTITY: (Way(other_entity), Way(of_another_type), Way(no_entity)),
    AttemptOutcome.WRONG_VALUE: (Way(slip, "dates"),),
    AttemptOutcome.ARITHMETIC: (Way(slip, "math"), Way(miscounts, "numbers")),
    AttemptOutcome.GAVE_UP: (Way(declines), Way(declines, "math"), Way(says_nothing), Way(says_nothing, "math")),
    AttemptOutcome.REPEATED: (Way(repeats),),
    AttemptOutcome.TURN_LIMIT: (Way(wanders),),
    AttemptOutcome.FORMAT: (Way(breaks_format), Way(breaks_format, "math")),
    AttemptOutcome.TRUNCATED: (Way(rambles, limits=SHORT), Way(rambles, "math", SHORT)),
    AttemptOutcome.OVERFLOW: (Way(wanders, limits=NARROW), Way(rambles, "math", TIGHT)),
    AttemptOutcome.TOOL_ERROR: (Way(wanders, falls=True),),
    AttemptOutcome.INFRA: (Way(breaks_down), Way(breaks_down, "math"), Way(hangs, seconds=0.5)),
    AttemptOutcome.UNSURE: (Way(day_or_month_first, "early dates"), Way(adds_nothing_up, "numbers", LONG)),
}


class Actor:
    """A policy that acts as it is told; what is longer than a turn may be is cut, as a model's is."""

    def __init__(self, format: Ours, acts: Iterator[Act]) -> None:
        self._format = format
        self._acts = acts

    async def sample(self, prompt: Sequence[int], *, ends: Sequence[int], max_tokens: int, seed: int) -> Completion:
        act = next(self._acts)
        if isinstance(act, ModelError):
            raise act
        if act is None:
            await asyncio.Event().wait()
            raise AssertionError
        return certain(self._written(act)[:max_tokens], self._format.decode, prompt, ends)

    def _written(self, act: Move | str) -> Sequence[int]:
        return self._format.codec.join(Markup(act)) if isinstance(act, str) else self._format.turn(step(act))


class Falling:
    """A toolset that answers each session once, and then no more."""

    def __init__(self, inner: Toolset) -> None:
        self.specs = inner.specs
        self._inner = inner
        self._served: set[str] = set()

    async def call(self, session: str, name: str, arguments: Mapping[str, JsonValue]) -> ToolResult:
        if session in self._served:
            raise ConnectionError("connection reset by peer")
        self._served.add(session)
        return await self._inner.call(session, name, arguments)

    async def end(self, session: str) -> None:
        await self._inner.end(session)

    async def close(self) -> None:
        await self._inner.close()
