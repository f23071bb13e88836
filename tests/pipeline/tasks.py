"""Tasks of the hand-written world, and solvers named after how they behave."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterable

from pipeline.corpora.world import World
from schemas.answer import AnswerSpec, EntityAnswer, NumberAnswer
from schemas.query import Band, Clue, EntityRef, Problem, Query
from schemas.task import Evidence, Lineage, Task
from schemas.trajectory import StopReason, Trajectory, Turn
from tests.worlds import toy_world

MALI = Query(
    type="country",
    clues=(
        Clue(relation="borders", target=EntityRef(entity="country/niger")),
        Clue(relation="borders", target=EntityRef(entity="country/senegal")),
    ),
)
"""Only Mali borders both Niger and Senegal, and borders are complete."""

ASKED = "Which country borders Niger and borders Senegal?"


def lineage(index: int = 0) -> Lineage:
    return Lineage(generator="test", version="1", seed=0, index=index, knobs={})


def search_task(
    query: Query = MALI,
    answer: str = "country/mali",
    question: str = ASKED,
    *,
    index: int = 0,
    evidence: Iterable[Evidence] | None = None,
    world: World | None = None,
) -> Task:
    """A task about the world; evidence is what `quotes` finds unless given."""
    world = world or toy_world()
    entity = world.entities[answer]
    return Task.create(
        family="hard_search",
        stratum="hard_search/2/search+open/entity/none",
        question=question,
        answer=EntityAnswer(entity=answer, name=entity.name, aliases=entity.aliases),
        tools=("search", "open"),
        evidence=tuple(quotes(query, answer, world) if evidence is None else evidence),
        constraints=query,
        lineage=lineage(index),
    )


def quotes(query: Query, answer: str, world: World) -> list[Evidence]:
    """The sentences that state the flat clues of a query."""
    found = []
    for clue in query.clues:
        end = clue.target.entity if isinstance(clue.target, EntityRef) else None
        subject = end if clue.inverse and end else answer
        for fact in world.facts_of(subject, clue.relation):
            if fact.object in (end, answer) or (isinstance(clue.target, Band) and not isinstance(fact.object, str)):
                page = world.documents[subject]
                quote = page.text[fact.start : fact.end]
                found.append(
                    Evidence(document=subject, document_hash=page.hash, start=fact.start, end=fact.end, quote=quote)
                )
    return found


def math_task(
    question: str = "What is the remainder of 29 divided by 6?", answer: AnswerSpec | None = None, *, index: int = 0
) -> Task:
    return Task.create(
        family="math",
        stratum="math/1/none/number/none",
        question=question,
        answer=answer or NumberAnswer(value="5"),
        tools=(),
        constraints=Problem(template="test", parameters={"index": index, "question": question}),
        lineage=lineage(index),
    )


def attempt(
    task: Task,
    seed: int,
    text: str | None,
    *,
    stop: StopReason = StopReason.ANSWERED,
    logprob: float | None = -0.5,
    said: str = "",
    error: str = "",
) -> Trajectory:
    """One turn of two tokens that says `said` or, by default, the answer and the seed."""
    turn = Turn(
        prompt_tokens=10,
        output_ids=(1, 2),
        logprobs=() if logprob is None else (logprob, logprob),
        text=said or f"{text} {seed}",
        version="0",
        call_id=f"{task.task_id}/{seed}",
    )
    answer = text if stop is StopReason.ANSWERED else None
    turns = () if error else (turn,)
    return Trajectory(
        task_id=task.task_id,
        solver="test@1",
        arm="tools",
        seed=seed,
        turns=turns,
        stop=stop,
        answer=answer,
        tokens=12 * len(turns),
        error=error,
    )


class CountingSolver:
    """Answers nothing right; counts what is asked of it, per (task, seed), and what runs at once."""

    name = "test@1"
    arm = "tools"

    def __init__(self) -> None:
        self.asked: Counter[tuple[str, int]] = Counter()
        self.running = self.most_running = 0

    async def __call__(self, task: Task, seed: int) -> Trajectory:
        self.asked[task.task_id, seed] += 1
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await asyncio.sleep(0)
            return await self.answer(task, seed)
        finally:
            self.running -= 1

    async def answer(self, task: Task, seed: int) -> Trajectory:
        return attempt(task, seed, "nothing")


class BernoulliSolver(CountingSolver):
    """Right with probability `p`, decided by (task, seed) alone; replies come back in a shuffled order."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    async def answer(self, task: Task, seed: int) -> Trajectory:
        draw = random.Random(f"{task.task_id}/{seed}")
        await asyncio.sleep(draw.random() * 0.002)
        right = draw.random() < self.p
        assert isinstance(task.answer, NumberAnswer)
        return attempt(task, seed, task.answer.value if right else "-1")


class EchoSolver(CountingSolver):
    """Gives the question back."""

    async def answer(self, task: Task, seed: int) -> Trajectory:
        return attempt(task, seed, task.question)


class TruncatedSolver(CountingSolver):
    """Always runs into the token limit."""

    async def answer(self, task: Task, seed: int) -> Trajectory:
        return attempt(task, seed, None, stop=StopReason.MAX_TOKENS, said=f"and so on {seed}")


class HangingSolver(CountingSolver):
    """Never comes back."""

    async def answer(self, task: Task, seed: int) -> Trajectory:
        await asyncio.Event().wait()
        raise AssertionError


class CrashingSolver(BernoulliSolver):
    """Raises on the tasks named, on every try or on the first only."""

    def __init__(self, p: float, crashes: Iterable[str], *, once: bool = False) -> None:
        super().__init__(p)
        self.crashes, self.once = frozenset(crashes), once

    async def answer(self, task: Task, seed: int) -> Trajectory:
        if task.task_id in self.crashes and (not self.once or self.asked[task.task_id, seed] == 1):
            raise ConnectionResetError("peer went away")
        return await super().answer(task, seed)


class CopySolver(CountingSolver):
    """Says the same words whatever the seed; each token at `logprob` (`None`: the server gives none)."""

    def __init__(self, logprob: float | None) -> None:
        super().__init__()
        self.logprob = logprob

    async def answer(self, task: Task, seed: int) -> Trajectory:
        return attempt(task, seed, "42", said="I am sure it is 42", logprob=self.logprob)


class AmbiguousDateSolver(CountingSolver):
    """Answers with a date that means two days, which no grader can settle."""

    async def answer(self, task: Task, seed: int) -> Trajectory:
        return attempt(task, seed, "03/04/1987")
