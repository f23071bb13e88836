"""Servers of a run: one a model, however often and however it is sampled."""

from pathlib import Path

import pytest

from infra.endpoint import ServerDown
from infra.models import UnavailableModel
from infra.settings import Settings
from infra.tools.base import ToolDown
from rl.engines import Engines
from schemas.config import Served
from schemas.episode import ToolOptions, ToolServer
from tests.infra.servers import ModelServer, down, running


class CountingServer(ModelServer):
    """Counts how often somebody attaches to it."""

    attached = 0

    def get(self, http: object) -> None:
        self.attached += 1
        super().get(http)  # type: ignore[arg-type]


def settings(tmp_path: Path) -> Settings:
    return Settings(store=str(tmp_path), cache=tmp_path)


def test_a_model_is_opened_once_for_all_stages_and_temperatures(tmp_path: Path) -> None:
    server = CountingServer()
    with running(server) as url, Engines(settings(tmp_path)) as engines:
        first = engines.endpoint(Served(model="echo", url=url))
        assert engines.endpoint(Served(model="echo", url=url, temperature=0.5)) is first
    assert server.attached == 1


def test_an_endpoint_that_somebody_else_keeps_is_used_as_it_is(tmp_path: Path) -> None:
    server = CountingServer()
    with running(server) as url:
        served = Served(model="echo", url=url)
        with Engines(settings(tmp_path)) as keeper:
            kept = keeper.endpoint(served)
            with Engines(settings(tmp_path), up={served: kept}) as engines:
                assert engines.endpoint(served) is kept
    assert server.attached == 1


def test_what_went_wrong_ahead_of_time_is_told_to_who_asks(tmp_path: Path) -> None:
    server = CountingServer()
    with running(server) as url, down() as nobody, Engines(settings(tmp_path)) as engines:
        here, gone = Served(model="echo", url=url), Served(model="echo", url=nobody)
        engines.start([here, gone])
        assert engines.endpoint(here).url == url
        with pytest.raises(ServerDown, match=nobody):
            engines.endpoint(gone)
    assert server.attached == 1


def test_only_servers_that_somebody_else_runs_are_found_out_about_beforehand(tmp_path: Path) -> None:
    server = CountingServer()
    with running(server) as url, Engines(settings(tmp_path)) as engines:
        engines.attach([Served(model="memory"), Served(model="echo", url=url)], ToolOptions())
        assert server.attached == 1
    with down() as url, Engines(settings(tmp_path)) as engines, pytest.raises(ServerDown, match=url):
        engines.attach([Served(model="echo", url=url)], ToolOptions())
    with down() as url, Engines(settings(tmp_path)) as engines, pytest.raises(ToolDown, match=url):
        engines.attach([], ToolOptions(servers=(ToolServer(name="mine", urls=(url,)),)))


def test_a_model_that_is_not_there_is_refused_before_any_work(tmp_path: Path) -> None:
    with Engines(settings(tmp_path)) as engines, pytest.raises(UnavailableModel, match="no/model: is neither a recipe"):
        engines.attach([Served(model="memory"), Served(model="no/model")], ToolOptions())


def test_a_server_that_is_down_is_named(tmp_path: Path) -> None:
    with down() as url, Engines(settings(tmp_path)) as engines, pytest.raises(ServerDown, match=url):
        engines.endpoint(Served(model="echo", url=url))
