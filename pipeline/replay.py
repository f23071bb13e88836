"""A stored task made again from its lineage, byte for byte, or the reason why that cannot be."""

from pydantic import ValidationError

from pipeline.corpora.world import World
from pipeline.families import FamilyError, Miss, generator, made_again
from pipeline.release import Release
from schemas.base import canonical_json
from schemas.config import CurateConfig, describe_errors
from schemas.errors import TouchstoneError
from schemas.task import Task


class ReplayError(TouchstoneError):
    """A task that this installation cannot make again, and what differs."""


def replay(task_id: str, release: Release, world: World | None) -> Task:
    """Run the generator that made the task and compare. `world` is the one that `config_of` names."""
    stored = release.find(task_id).task
    lineage = stored.lineage
    if lineage.world and (world is None or world.hash != lineage.world):
        given = f"{world.name} is {world.hash}" if world else "none is given"
        raise ReplayError(
            f"{task_id}: made on world {lineage.world}, and {given}; build the world from the same sources"
        )
    version = generator(CurateConfig(family=config_of(stored, release).family), world).version
    if version != lineage.version:
        raise ReplayError(
            f"{task_id}: made by {lineage.generator} version {lineage.version}, and version {version} is installed; "
            f"check out {release.manifest.code_revision}"
        )
    try:
        made = made_again(lineage, world)
    except (ValidationError, KeyError, FamilyError) as error:
        why = describe_errors(error, "; ") if isinstance(error, ValidationError) else error
        raise ReplayError(f"{task_id}: its lineage holds settings that no generator takes ({why})") from error
    if isinstance(made, Miss):
        raise ReplayError(
            f"{task_id}: index {lineage.index} now gives no task ({made.reason}); the generator has changed"
        )
    one, other = made.model_dump(mode="json"), stored.model_dump(mode="json")
    if differing := [name for name in one if canonical_json(one[name]) != canonical_json(other[name])]:
        raise ReplayError(f"{task_id}: made again it differs in {', '.join(differing)}; the generator has changed")
    return made


def config_of(task: Task, release: Release) -> CurateConfig:
    """The config of the run that made a task. Raises `ReplayError` where the release does not hold it."""
    try:
        return CurateConfig.model_validate(release.manifest.configs[task.family])
    except KeyError:
        reason = f"release {release.version} holds no config of {task.family}"
    except ValidationError as error:
        reason = f"the config of {task.family} in release {release.version} is none ({describe_errors(error, '; ')})"
    raise ReplayError(f"{task.task_id}: {reason}; publish its run again with the code revision that made it")
