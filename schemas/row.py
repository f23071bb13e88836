"""What files hold about a task: a candidate before curation, a kept one, a rejected one."""

from pydantic import Field, model_validator

from schemas.base import Record
from schemas.certificate import Outcome
from schemas.difficulty import Difficulty
from schemas.task import Task


class Candidate(Record):
    """What a generator made of one candidate index: a task, or the reason (`miss`) why there is none."""

    index: int = Field(ge=0)
    task: Task | None = None
    miss: str = ""

    @model_validator(mode="after")
    def _task_or_miss(self) -> "Candidate":
        if (self.task is None) == (self.miss == ""):
            raise ValueError(f"candidate {self.index}: needs either a task or the reason for a miss")
        return self


class Kept(Record):
    """A row of a release: the task, and how hard it proved to be for whom."""

    task: Task
    difficulty: tuple[Difficulty, ...] = ()


class Rejected(Record):
    """A task that did not pass: the filter that stopped it, with the outcome and reason of its certificate."""

    task: Task
    difficulty: tuple[Difficulty, ...] = ()
    filter: str
    outcome: Outcome
    reason: str
