"""Servers of `tests.infra.tools.toolsets` in processes of their own."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

COMMAND = (sys.executable, "-m", "tests.infra.tools.toolsets")
ROOT = Path(__file__).parents[3]


@contextlib.contextmanager
def http_server(folder: Path, *, port: int = 0, serves: str = "tests") -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    process = subprocess.Popen(
        [*COMMAND, "--http", str(folder), str(port), serves],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
    )
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"], process
    finally:
        process.kill()
        process.wait()


def port_of(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None
    return port
