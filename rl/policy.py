"""A policy as its model folder describes it: how it writes, what it may spend, which names it knows."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ValidationError

from pipeline.corpora.world import World
from rl.formats import TurnFormat, load_format
from schemas.answer import EntityAnswer
from schemas.config import describe_errors
from schemas.episode import ContextOptions, Limits
from schemas.errors import TouchstoneError
from schemas.query import Query, named
from schemas.task import Task

BUILD_FILE = "build.json"
UNBUILT = Limits(max_turns=100, max_tokens=1024, context=16_384, management=ContextOptions(mode="drop"))
"""What a model may spend whose folder does not say what it was built for; a smaller window of its server goes first."""


class PolicyError(TouchstoneError):
    """A model folder that is no policy."""


@dataclass(frozen=True, slots=True)
class Policy:
    """`covers` are the page titles its vocabulary holds; `None` for a model that can spell any name."""

    format: TurnFormat
    limits: Limits = UNBUILT
    covers: frozenset[str] | None = None

    @classmethod
    def load(cls, folder: Path, limits: Limits | None = None) -> "Policy":
        """Read `tokenizer.json` and, where the folder has one, `build.json`: the limits it was trained with, and its names.

        What `limits` sets goes first. Raises `TokenizerError` or `PolicyError`.
        """
        path = folder / BUILD_FILE
        try:
            built = _Build.model_validate_json(path.read_bytes()) if path.exists() else _Build()
        except ValidationError as error:
            raise PolicyError(
                f"{path}: is not what a build writes ({error.errors()[0]['msg']}); build again"
            ) from error
        return cls(load_format(folder), within(built.config.limits, limits), built.covers)

    def unknown_name(self, task: Task, world: World) -> str | None:
        """The first name it does not know among the answer and the entities the question names; `None` if it knows all."""
        if self.covers is None:
            return None
        for id in _named(task):
            entity = world.entities.get(id)
            title = entity.title if entity else id
            if title not in self.covers:
                return title
        return None


def within(built: Limits, given: Limits | None) -> Limits:
    """The limits that a policy was built with, but for what was given. Raises `PolicyError` where the two do not go together."""
    try:
        return built if given is None else given.over(built)
    except ValidationError as error:
        raise PolicyError(f"limits: {describe_errors(error)}") from error


class _Config(BaseModel):
    limits: Limits = UNBUILT


class _Build(BaseModel):
    config: _Config = _Config()
    covers: frozenset[str] | None = None


def _named(task: Task) -> Iterator[str]:
    if isinstance(task.answer, EntityAnswer):
        yield task.answer.entity
    if isinstance(task.constraints, Query):
        yield from named(task.constraints)
