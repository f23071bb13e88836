"""Held-out tasks, and what must stay apart from them."""

from collections.abc import Iterable

from schemas.answer import EntityAnswer
from schemas.base import Record
from schemas.task import Task


class HeldOut(Record):
    """What gives a task away as one that is held out, or as good as one."""

    signatures: frozenset[str] = frozenset()
    """Of their formal questions."""
    entities: frozenset[str] = frozenset()
    """That they ask for. Computed answers are no names: that two sums come to 12 gives nothing away."""

    @classmethod
    def of(cls, tasks: Iterable[Task]) -> "HeldOut":
        known = list(tasks)
        return cls(
            signatures=frozenset(task.constraints.signature for task in known),
            entities=frozenset(task.answer.entity for task in known if isinstance(task.answer, EntityAnswer)),
        )

    def shared(self, task: Task) -> str:
        """What the task has in common with one of them; empty where there is nothing."""
        if task.constraints.signature in self.signatures:
            return "same_question"
        if isinstance(task.answer, EntityAnswer) and task.answer.entity in self.entities:
            return "same_answer"
        return ""
