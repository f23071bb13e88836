"""`make up`: everything a deployment needs comes up in the foreground, and Ctrl-C leaves nothing behind."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from infra.settings import ROOT

pytestmark = pytest.mark.prefect

LIMIT_S = 280.0


def started(tmp_path: Path, port: int) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "infra.up"],
        cwd=ROOT,
        env={
            **os.environ,
            "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
            "TOUCHSTONE_STORE": str(tmp_path),
            "PYTHONUNBUFFERED": "1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@pytest.mark.timeout(400)
@pytest.mark.parametrize("end", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_up_deploys_everything_and_an_interrupt_stops_it(tmp_path: Path, end: signal.Signals) -> None:
    port = free_port()
    up = started(tmp_path, port)
    assert up.stdout is not None
    said = []
    deadline = time.monotonic() + LIMIT_S
    for line in up.stdout:
        said.append(line)
        if line.startswith("up:") or time.monotonic() > deadline:
            break
    children = psutil.Process(up.pid).children(recursive=True)
    listed = subprocess.run(
        [sys.executable, "-m", "prefect", "deployment", "ls"],
        env={**os.environ, "PREFECT_API_URL": f"http://127.0.0.1:{port}/api", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    up.send_signal(end)
    rest = up.communicate(timeout=60)[0]
    assert "curate/hard-search" in listed.stdout, "".join(said) + listed.stderr
    assert "curate/math" in listed.stdout
    assert len(children) >= 2
    assert up.returncode == 0, rest
    assert "stopped" in rest
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive


def test_a_taken_port_is_one_clear_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        up = started(tmp_path, holder.getsockname()[1])
        said = up.communicate(timeout=240)[0]
    assert up.returncode == 1
    assert "if its port is taken" in said
    assert "Traceback" not in said
