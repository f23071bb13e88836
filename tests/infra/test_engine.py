"""How a server is started, watched and ended; the server itself is a stand-in here and vLLM in `test_vllm.py`."""

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from infra.endpoint import ServerSlow, Unauthorized, list_models
from infra.engine import Command, EngineDied, EngineOptions, serve, vllm_command
from infra.models import LocalModel
from tests.infra import standin

MODEL = LocalModel("tiny", Path("/nowhere"), "r1")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    (folder := tmp_path / "notes").mkdir()
    return folder


@pytest.fixture
def that(notes: Path) -> Callable[[str], Command]:
    """The command line of a stand-in with this behaviour."""

    def command(behaviour: str) -> Command:
        def line(model: LocalModel, badge: str, port: int, options: EngineOptions) -> list[str]:
            return [sys.executable, standin.__file__, behaviour, str(notes), model.name, badge, str(port)]

        return line

    return command


def starts(notes: Path) -> list[dict[str, str]]:
    return [json.loads(path.read_text()) for path in sorted(notes.iterdir())]


KEPT: set[int] = set()


@pytest.fixture(autouse=True)
def _others() -> None:
    """Children that other tests of the session keep are no business of these."""
    KEPT.clear()
    KEPT.update(child.pid for child in psutil.Process().children(recursive=True))


def own_children() -> list[psutil.Process]:
    """Children that this test started."""
    return [child for child in psutil.Process().children(recursive=True) if child.pid not in KEPT]


def test_a_server_is_ours_behind_its_key_and_gone_after_the_block(
    that: Callable[[str], Command], tmp_path: Path
) -> None:
    with serve(MODEL, cache=tmp_path, command=that("works")) as endpoint:
        endpoint.check()
        assert (endpoint.model, endpoint.revision, endpoint.max_model_len) == ("tiny", "r1", 64)
        assert urlsplit(endpoint.url).hostname == "127.0.0.1"
        with pytest.raises(Unauthorized):
            list_models(endpoint.url, "guess")
        family = own_children()
        assert len(family) == 2
        assert not any(endpoint.api_key in " ".join(p.cmdline()) for p in family)
    assert not any(p.is_running() for p in family)


def test_an_exception_in_the_block_ends_the_server_too(that: Callable[[str], Command], tmp_path: Path) -> None:
    family = []

    def interrupted() -> None:
        with serve(MODEL, cache=tmp_path, command=that("works")):
            family.extend(own_children())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(family) == 2 and not any(p.is_running() for p in family)


def test_two_servers_at_once_have_ports_and_keys_of_their_own(that: Callable[[str], Command], tmp_path: Path) -> None:
    command = that("works")
    with serve(MODEL, cache=tmp_path, command=command) as one, serve(MODEL, cache=tmp_path, command=command) as other:
        assert one.url != other.url and one.api_key != other.api_key
        with pytest.raises(Unauthorized):
            list_models(one.url, other.api_key)


@pytest.mark.parametrize("behaviour", ["clashes", "stranger"])
def test_a_taken_port_is_given_up_for_another(
    behaviour: str, that: Callable[[str], Command], notes: Path, tmp_path: Path
) -> None:
    with serve(MODEL, cache=tmp_path, command=that(behaviour)) as endpoint:
        first, second = starts(notes)
        assert first["port"] != second["port"] == str(urlsplit(endpoint.url).port)
        assert not psutil.pid_exists(int(first["pid"]))


def test_the_port_is_kept_from_others_while_the_server_starts(
    that: Callable[[str], Command], notes: Path, tmp_path: Path
) -> None:
    with serve(MODEL, cache=tmp_path, command=that("works")) as endpoint:
        port = urlsplit(endpoint.url).port
        with socket.socket() as other, pytest.raises(OSError, match="Address already in use"):
            other.bind(("127.0.0.1", port))


def test_a_server_that_dies_while_it_starts_says_why_at_once(that: Callable[[str], Command], tmp_path: Path) -> None:
    started = time.monotonic()
    why = r"tiny: its server ended with code 3; .*\n.*the weights are for another model$"
    with pytest.raises(EngineDied, match=why), serve(MODEL, cache=tmp_path, command=that("dies")):
        raise AssertionError("a dead server was handed out")
    assert time.monotonic() - started < 20
    (log,) = (tmp_path / "logs").iterdir()
    assert log.read_text().startswith("loading\n")


def test_a_server_that_is_never_ready_is_ended_at_the_deadline(
    that: Callable[[str], Command], notes: Path, tmp_path: Path
) -> None:
    options = EngineOptions(start_timeout_s=2)
    with (
        pytest.raises(ServerSlow, match="not ready after 2 s"),
        serve(MODEL, cache=tmp_path, options=options, command=that("sleeps")),
    ):
        raise AssertionError("a server that sleeps was handed out")
    assert own_children() == []


def test_a_death_in_use_is_known_to_who_asks(that: Callable[[str], Command], notes: Path, tmp_path: Path) -> None:
    with serve(MODEL, cache=tmp_path, command=that("works")) as endpoint:
        psutil.Process(int(starts(notes)[0]["pid"])).kill()

        def use() -> None:
            deadline = time.monotonic() + 10
            while time.monotonic() < deadline:
                endpoint.check()
                time.sleep(0.05)

        with pytest.raises(EngineDied, match="ended by signal 9"):
            use()


KILLED = """
import sys, time
from pathlib import Path
from infra.engine import serve
from tests.infra.test_engine import MODEL
line = sys.argv[2:]
command = lambda model, badge, port, options: [*line, model.name, badge, str(port)]
with serve(MODEL, cache=Path(sys.argv[1]), command=command):
    print("up", flush=True)
    time.sleep(600)
"""


def test_kill_9_of_the_whole_program_leaves_no_server(notes: Path, tmp_path: Path) -> None:
    line = [sys.executable, standin.__file__, "works", str(notes)]
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path), *line], stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "up\n"
        family = psutil.Process(program.pid).children(recursive=True)
        program.kill()
        assert len(family) == 2 and psutil.wait_procs(family, timeout=10)[1] == []


def test_the_options_reach_the_command_line() -> None:
    options = EngineOptions(max_model_len=512, max_num_seqs=7)
    command = " ".join(vllm_command(MODEL, "badge", 81, options))
    for part in (
        "--model /nowhere",
        "--served-model-name tiny badge",
        "--port 81",
        "--max-model-len 512",
        "--max-num-seqs 7",
    ):
        assert part in command
    assert "infra." not in command, "only who exchanges weights opens the development endpoints"
    exchanging = " ".join(vllm_command(MODEL, "badge", 81, EngineOptions(exchange=True)))
    assert "--worker-extension-cls infra.weights.TakesWeights --middleware infra.guarded.OnlyWithKey" in exchanging


def test_a_start_that_nobody_waits_for_any_more_is_ended(that: Callable[[str], Command], tmp_path: Path) -> None:
    unwanted = threading.Event()
    threading.Timer(1.0, unwanted.set).start()
    started = time.monotonic()
    with (
        pytest.raises(EngineDied, match="tiny: its server was ended while it started"),
        serve(MODEL, cache=tmp_path, command=that("sleeps"), unwanted=unwanted),
    ):
        raise AssertionError("a server that sleeps was handed out")
    assert time.monotonic() - started < 60, "the time allowed to start is 600 s"
    assert own_children() == []
