"""The families of tasks. Ground truth comes from construction or execution, never from a model that wrote the question.

To add one: a package beside these whose class implements `Generator`, its name in `schemas.task.Family`, and a line in
`FAMILIES`.
"""

from collections.abc import Callable
from typing import Any

from pipeline.corpora.world import World
from pipeline.families.aims import Aimed, asked_for
from pipeline.families.base import Generator, Miss
from schemas.config import Aim, CurateConfig
from schemas.errors import TouchstoneError
from schemas.task import Family, Lineage, Task

# A family is imported when it is first asked for: sympy alone takes a second, and a hard-search run needs none of it.


def _hard_search(config: CurateConfig, world: World | None) -> Generator:
    from pipeline.families.hard_search import HardSearch

    if world is None:
        raise FamilyError("family=hard_search: asks about a world and got none; name one in the config's `world`")
    return HardSearch(world, config.hard_search)


def _math(config: CurateConfig, world: World | None) -> Generator:
    from pipeline.families.math import Math

    return Math(config.math)


FAMILIES: dict[Family, Callable[[CurateConfig, World | None], Generator]] = {
    "hard_search": _hard_search,
    "math": _math,
}


class FamilyError(TouchstoneError):
    """A family that is unknown, or cannot make tasks from what it was given."""


def generator(config: CurateConfig, world: World | None) -> Generator:
    """The generator of `config.family`; `world` may be `None` for a family that asks about none."""
    if config.family not in FAMILIES:
        raise FamilyError(f"family={config.family}: not registered; one of {', '.join(FAMILIES)}")
    make = FAMILIES[config.family](config, world)
    if not config.aims:
        return make
    if unknown := [aim.stratum for aim in config.aims if aim.stratum not in make.strata]:
        raise FamilyError(
            f"aims={unknown[0]}: {config.family} makes no such stratum; it makes {', '.join(make.strata)}"
        )
    return Aimed(make, config.aims)


def made_again(lineage: Lineage, world: World | None) -> Task | Miss:
    """What its generator makes of a lineage, by the settings that are written in it.

    Raises `ValidationError` or `KeyError` for knobs that no generator wrote.
    """
    knobs: dict[str, Any] = dict(lineage.knobs)
    aim = knobs.pop("aim", None)
    family = lineage.generator
    own = type(getattr(CurateConfig.model_validate({"family": family}), family)).model_fields
    config = CurateConfig.model_validate({"family": family, family: {name: knobs[name] for name in own}})
    make = generator(config, world)
    if aim is None:
        return make(lineage.seed, lineage.index)
    return asked_for(make, lineage.seed, lineage.index, Aim.model_validate(aim))


__all__ = ["FAMILIES", "FamilyError", "Generator", "Miss", "generator", "made_again"]
