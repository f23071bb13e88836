"""A tokenizer of the toy world."""

from pathlib import Path

import pytest

from pipeline.families.hard_search.oracle import plain
from rl.formats import TurnFormat, load_format
from rl.starter.data import hard_tasks
from rl.starter.tokenizer import build_tokenizer
from schemas.config import HardSearchConfig
from schemas.task import Task
from tests.worlds import toy_world


@pytest.fixture(scope="session")
def toy_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tokenizer whose names are those of the toy world."""
    folder: Path = tmp_path_factory.mktemp("toy")
    world = toy_world()
    names = {plain(e.name) for e in world.entities.values()}
    texts = [d.text for d in world.documents.values()]
    build_tokenizer(names, texts, words=300, pieces=300, context=1024).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def toy_format(toy_tokenizer: Path) -> TurnFormat:
    return load_format(toy_tokenizer)


@pytest.fixture(scope="session")
def toy_tasks() -> list[Task]:
    return hard_tasks(toy_world(), HardSearchConfig(types=("country",)), 0, 20)
