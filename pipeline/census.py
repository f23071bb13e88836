"""Who came first: an index over every candidate of a run, small enough to hand to every batch."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType

from schemas.answer import canonical_answer
from schemas.base import content_hash
from schemas.task import Task


@dataclass(frozen=True, slots=True)
class Census:
    """First candidate by formal signature and by wording, and every answer a wording or a signature was given.

    The order is that of the candidates' `lineage.index`, so batches and their order change nothing; tasks of an earlier release
    that are tried again come before.
    """

    first: dict[str, tuple[int, str]] = field(default_factory=dict)
    """(place, task id) by key."""
    answers: dict[str, frozenset[str]] = field(default_factory=dict)
    carried: Mapping[str, int] = field(default_factory=dict)
    """The place of each task that is tried again: below 0."""

    def place(self, task: Task) -> int:
        """The task's place among the candidates, which no other has."""
        return self.carried.get(task.task_id, task.lineage.index)

    @classmethod
    def of(cls, tasks: Iterable[Task], carried: Mapping[str, int] = MappingProxyType({})) -> "Census":
        census = cls(carried=carried)
        first: dict[str, tuple[int, str]] = {}
        answers: dict[str, set[str]] = defaultdict(set)
        for task in tasks:
            for key in keys(task):
                own = census.place(task), task.task_id
                first[key] = min(first.get(key, own), own)
                answers[key].add(canonical_answer(task.answer))
        return replace(census, first=first, answers={key: frozenset(found) for key, found in answers.items()})


def keys(task: Task) -> tuple[str, str]:
    """What two equal tasks share: `signature:` of the formal question, `wording:` of the text without case, accents, marks."""
    return f"signature:{task.constraints.signature}", f"wording:{content_hash(' '.join(tokens(task.question)))}"


@lru_cache(maxsize=1 << 16)
def tokens(text: str) -> tuple[str, ...]:
    """Words and numbers, case-folded, accents removed. Signs that change a formula count as tokens."""
    folded = unicodedata.normalize("NFKD", text.casefold())
    return tuple(re.findall(r"\w+|[-+*/^=<>(){}\[\]|!%.]", "".join(c for c in folded if not unicodedata.combining(c))))


@lru_cache(maxsize=1 << 16)
def words(text: str) -> tuple[str, ...]:
    """The tokens that are words or numbers: "N'Djamena" is n, djamena."""
    return tuple(token for token in tokens(text) if token[0].isalnum() or token[0] == "_")
