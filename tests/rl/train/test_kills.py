"""A run of the command line in one process, killed as a whole and in its server, on a release that models who toss coins kept."""

import asyncio
from pathlib import Path

import pytest

from bench.kills import CONFIG, Drill, account, play
from infra.settings import Settings
from infra.store import Store
from pipeline.curate import Here, curate, publish
from schemas.config import CurateConfig
from tests.pipeline.runs import coins
from tests.worlds import atlas

pytestmark = [pytest.mark.slow, pytest.mark.engine, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder, world = tmp_path_factory.mktemp("release"), atlas()
    config = CurateConfig(family="hard_search", candidates=48, seed=3, batch=16, test_share=0.3)
    store, work = Store(str(folder / "store")), Here(world, coins(folder / "log"))
    run = asyncio.run(curate(config, world=world, runs=folder / "runs", store=store, work=work))
    return publish([run], store).release.url


def test_kill_9_of_the_whole_run_and_of_its_server_at_random_points_loses_nothing(release: str, tmp_path: Path) -> None:
    (tmp_path / "worlds").symlink_to(Settings.from_env().cache / "worlds")
    drill = Drill(tmp_path, release, CONFIG, ray=None)
    assert play(drill, ["whole", "whole", "server"]) == 0, drill.last_words()
    assert drill.survived == 3
    figures = asyncio.run(account(drill.run))
    assert [str(figure) for figure in figures if not figure.met] == []
