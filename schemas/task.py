"""A task: a question with a typed gold, the evidence for it, and everything needed to make it again."""

from typing import Annotated, Any, Literal, get_args

from pydantic import Field, JsonValue, model_validator

from schemas.answer import AnswerSpec
from schemas.base import Record, content_hash
from schemas.query import Problem, Query

Family = Literal["hard_search", "math"]
FAMILIES: tuple[Family, ...] = get_args(Family)


class Stratum(Record):
    """The cell that yields, pass rates and budgets are counted in; written `family/hops/tools/answer/obfuscation`."""

    family: Family
    hops: int
    tools: tuple[str, ...]
    answer: str
    obfuscation: str

    def __str__(self) -> str:
        return f"{self.family}/{self.hops}/{'+'.join(self.tools) or 'none'}/{self.answer}/{self.obfuscation}"


class Evidence(Record):
    """Characters `start:end` of a document, word for word in `quote`; `document_hash` pins the text they were read from."""

    document: str
    document_hash: str
    start: int
    end: int
    quote: str


class NearMiss(Record):
    """A wrong answer that almost fits, and why it does not: what graders and filters are tested on."""

    answer: str
    why: str


class Lineage(Record):
    """What makes a task again, byte for byte: the generator's `version`, the run `seed`, the candidate's `index`, its knobs.

    `world` is the corpus hash, empty for a family that uses none; `calls` are the ids of model calls that wrote any of it.
    """

    generator: str
    version: str
    seed: int
    index: int
    knobs: dict[str, JsonValue]
    world: str = ""
    calls: tuple[str, ...] = ()


class Task(Record):
    """One question. `task_id` hashes what is asked and what is right, so equal tasks are one task wherever they were made."""

    task_id: str
    family: Family | Literal["benchmark"]
    """`benchmark` is one of a user's file: nothing generates or curates such tasks."""
    stratum: str
    question: str
    answer: AnswerSpec
    tools: tuple[str, ...]
    evidence: tuple[Evidence, ...] = ()
    constraints: Annotated[Query | Problem, Field(discriminator="kind")]
    near_misses: tuple[NearMiss, ...] = ()
    lineage: Lineage

    @classmethod
    def create(cls, **fields: Any) -> "Task":
        """A task with its id computed. Takes every field but `task_id`."""
        return cls(
            task_id=_task_id(fields["family"], fields["question"], fields["answer"], fields["constraints"]), **fields
        )

    @model_validator(mode="after")
    def _id_matches_content(self) -> "Task":
        expected = _task_id(self.family, self.question, self.answer, self.constraints)
        if self.task_id != expected:
            raise ValueError(
                f"task_id {self.task_id}: the content hashes to {expected}; the row was changed after it was made"
            )
        return self


def _task_id(family: str, question: str, answer: Record, constraints: Record) -> str:
    return content_hash([family, question, answer.model_dump(mode="json"), constraints.model_dump(mode="json")])
