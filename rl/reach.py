"""Which tasks a policy can attempt at all: those whose names it has tokens for."""

import json
from collections.abc import Iterator
from pathlib import Path

from pipeline.corpora.world import World
from schemas.answer import EntityAnswer
from schemas.query import EntityRef, Query
from schemas.task import Task

COVERS = "covers.json"
"""In a model folder: a JSON list of the page titles its vocabulary holds. Absent where a model can spell any name."""


class Reach:
    """The titles a policy knows, and the world that says which title an entity has."""

    def __init__(self, titles: frozenset[str], world: World) -> None:
        self._titles = titles
        self._world = world

    @classmethod
    def load(cls, folder: Path, world: World) -> "Reach | None":
        """What the model folder declares; `None` where it declares nothing."""
        path = folder / COVERS
        return cls(frozenset(json.loads(path.read_text())), world) if path.exists() else None

    def unknown_name(self, task: Task) -> str | None:
        """The first unknown name among the answer and the entities the question names."""
        for id in _named(task):
            entity = self._world.entities.get(id)
            title = entity.title if entity else id
            if title not in self._titles:
                return title
        return None


def _named(task: Task) -> Iterator[str]:
    if isinstance(task.answer, EntityAnswer):
        yield task.answer.entity
    if isinstance(task.constraints, Query):
        yield from _ends(task.constraints)


def _ends(query: Query) -> Iterator[str]:
    for clue in query.clues:
        match clue.target:
            case EntityRef(entity=entity):
                yield entity
            case Query() as inner:
                yield from _ends(inner)
