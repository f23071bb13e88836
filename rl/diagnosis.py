"""Why an attempt ended as it did: one typed outcome, read off the attempt, its task and the world, and never guessed."""

import re
from collections import Counter
from functools import lru_cache

from infra.pages.base import shown_name
from pipeline.corpora.world import World
from pipeline.families.hard_search.proof import Names, normal
from pipeline.grading import grade, grader
from pipeline.grading.final import final_answer
from rl.learn.records import Verdict
from schemas.answer import CodeAnswer, DateAnswer, EntityAnswer, TextAnswer
from schemas.measured import AttemptOutcome, Diagnosis
from schemas.query import Problem, Query
from schemas.task import NearMiss, Task
from schemas.trajectory import StopReason, Trajectory

_STOPPED = {
    StopReason.NO_ANSWER: AttemptOutcome.GAVE_UP,
    StopReason.MAX_TURNS: AttemptOutcome.TURN_LIMIT,
    StopReason.MAX_TOKENS: AttemptOutcome.TRUNCATED,
    StopReason.CONTEXT_OVERFLOW: AttemptOutcome.OVERFLOW,
    StopReason.FORMAT: AttemptOutcome.FORMAT,
    StopReason.LOOP: AttemptOutcome.REPEATED,
    StopReason.TIME_BUDGET: AttemptOutcome.INFRA,
    StopReason.TOOL_DOWN: AttemptOutcome.TOOL_ERROR,
    StopReason.INFRA: AttemptOutcome.INFRA,
}
_DECLINES = frozenset(
    normal(said)
    for said in (
        "unknown", "none", "nothing", "nobody", "no answer", "not found", "not known", "n/a", "not sure", "I'm not sure",
        "I am not sure", "no idea", "I have no idea", "I give up",
    )
)  # fmt: skip
_CANNOT = re.compile(
    r"(?:\w+ ){0,3}(?:could not|couldn t|can not|cannot|can t|do not|don t|unable to|not able to) "
    r"(?:be )?(?:know|find|found|determined?|identify|identified|tell|say|answer|answered)\b"
)
"""How a text without case and punctuation begins that says that there is no answer."""
_ERROR = "error: "
"""How a tool's answer begins that carried nothing out."""


class Diagnoser:
    """Knows the names and the facts of the world that tasks are about; `None` for tasks about none, or about other pages."""

    def __init__(self, world: World | None) -> None:
        self._world = world
        self._names = None if world is None else Names(world)
        self._fits = lru_cache(maxsize=256)(self._proved)

    def __call__(self, task: Task, attempt: Trajectory, verdict: Verdict) -> Diagnosis:
        """The diagnosis of an attempt that is over."""
        entity = self._entity(task, attempt.answer)
        query = task.constraints if isinstance(task.constraints, Query) else None
        clues = 0 if query is None else len(query.clues)
        met = None if query is None or entity is None else sum(entity in fitting for fitting in self._fits(query))
        pages = dict.fromkeys(each.document for each in task.evidence)
        unread = tuple(page for page in pages if not _was_shown(self._title(page), attempt))
        named = ""
        if verdict is Verdict.WRONG and attempt.answer is not None:
            if (near := _near_miss(task, attempt.answer)) is not None:
                named = near.answer
            elif entity is not None and self._world is not None and 0 < clues - 1 == met:
                named = self._world.entities[entity].title
        outcome = _outcome(task, attempt, verdict, named=bool(named), read=not unread)
        calls = Counter(call.name for turn in attempt.turns for call in turn.tool_calls)
        return Diagnosis(
            outcome=outcome,
            named=named,
            clues=clues,
            clues_met=met,
            pages=len(pages),
            unread=unread,
            calls=dict(sorted(calls.items())),
            uncalled=tuple(tool for tool in task.tools if tool not in calls),
            failed_at=None if outcome is AttemptOutcome.RIGHT else _failed_at(attempt),
        )

    def _entity(self, task: Task, answer: str | None) -> str | None:
        """The entity of the asked type that an answer names, where it names one."""
        if self._names is None or answer is None or not isinstance(task.constraints, Query):
            return None
        found = self._names.called(final_answer(answer) or "", task.constraints.type)
        return min(found) if len(found) == 1 else None

    def _proved(self, query: Query) -> list[frozenset[str]]:
        """By clue, what provably fits it."""
        assert self._world is not None
        return [self._world.proved(clue) for clue in query.clues]

    def _title(self, document: str) -> str:
        page = self._world.documents.get(document) if self._world is not None else None
        return shown_name(page.title if page else document)


def _outcome(task: Task, attempt: Trajectory, verdict: Verdict, *, named: bool, read: bool) -> AttemptOutcome:
    match verdict:
        case Verdict.RIGHT:
            return AttemptOutcome.RIGHT
        case Verdict.UNDECIDED:
            return AttemptOutcome.UNSURE
        case Verdict.NONE:
            return _STOPPED[attempt.stop]
    said = final_answer(attempt.answer or "")
    if said is None or _declines(normal(said.replace("’", "'"))):
        return AttemptOutcome.GAVE_UP
    if isinstance(task.answer, EntityAnswer):
        return AttemptOutcome.NEAR_MISS if named else AttemptOutcome.WRONG_ENTITY
    computed = isinstance(task.constraints, Problem) and not isinstance(
        task.answer, DateAnswer | CodeAnswer | TextAnswer
    )
    return AttemptOutcome.ARITHMETIC if computed and read else AttemptOutcome.WRONG_VALUE


def _declines(words: tuple[str, ...]) -> bool:
    return words in _DECLINES or _CANNOT.match(" ".join(words)) is not None


def _near_miss(task: Task, answer: str) -> NearMiss | None:
    """The stored runner-up that an answer is."""
    said = " ".join((final_answer(answer) or "").split()).casefold()
    for near in task.near_misses:
        if isinstance(task.answer, EntityAnswer):
            if grade(EntityAnswer(entity=near.answer, name=near.answer), answer) == grader.RIGHT:
                return near
        elif " ".join(near.answer.split()).casefold() == said:
            return near
    return None


def _was_shown(title: str, attempt: Trajectory) -> bool:
    """Whether a tool showed something of a page: search and browser begin a line with its title."""
    heads = (f"{title}: ", f"{title}, section ")
    return any(line.startswith(heads) for turn in attempt.turns for line in (turn.observation or "").splitlines())


def _failed_at(attempt: Trajectory) -> int | None:
    for number, turn in enumerate(attempt.turns, start=1):
        if turn.fault or (turn.observation or "").startswith(_ERROR):
            return number
    return len(attempt.turns) or None
