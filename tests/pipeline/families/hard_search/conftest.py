"""Tasks of the small world, made once."""

import pytest

from pipeline.corpora.world import World
from pipeline.families.hard_search import HardSearch
from schemas.config import HardSearchConfig
from schemas.task import Task
from tests.worlds import toy_world

CONFIG = HardSearchConfig(types=("country", "capital city"))
"""The small world has too few entities for any type to be asked about unless it is named."""


@pytest.fixture(scope="session")
def world() -> World:
    return toy_world()


@pytest.fixture(scope="session")
def family(world: World) -> HardSearch:
    return HardSearch(world, CONFIG)


@pytest.fixture(scope="session")
def tasks(family: HardSearch) -> list[Task]:
    made = [family(7, index) for index in range(200)]
    return [task for task in made if isinstance(task, Task)]
