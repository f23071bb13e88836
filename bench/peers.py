"""Other libraries to compare with, each in an environment of its own: pinned, made on first use, driven line by line.

A peer's packages lie in a folder of their own ahead of ours, so that torch, transformers and pydantic are the same ones on
both sides and nothing of a peer is ever installed beside us. A peer runs as a process that answers every line with one
line of JSON, so that its measurements can alternate with ours.
"""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from infra.settings import ROOT, Settings
from schemas.errors import TouchstoneError

PINS: Mapping[str, tuple[str, ...]] = {
    "trl": ("trl==1.16.0",),
    "verifiers": (
        "verifiers==0.2.1",
        "prime-pydantic-config==0.4.3",
        "prime-sandboxes==0.2.31",
        "prime-tunnel==0.1.8",
        "renderers==0.1.12",
        "tenacity==9.2.1",
        "aiolimiter==1.3.0",
        "aiofiles==25.1.0",
        "connect-python==0.9.0",
        "pyqwest==0.12.0",
        "openai-agents==0.24.0",
    ),
}
"""Verifiers 0.2 is the last that plays episodes in its own process; later ones start a program for each, which costs more."""


class NoPeer(TouchstoneError):
    """A library to compare with cannot be had."""


class Peer:
    """A running process that answers in JSON."""

    def __init__(self, name: str, process: "subprocess.Popen[str]") -> None:
        self._name = name
        self._process = process

    def ask(self, line: str) -> dict[str, Any]:
        """Its answer to a line. Blocks; raises `NoPeer` when it has ended."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            print(line, file=self._process.stdin, flush=True)
        return self.hear()

    def hear(self) -> dict[str, Any]:
        """What it says next. Blocks; raises `NoPeer` when it has ended."""
        assert self._process.stdout is not None
        for said in self._process.stdout:
            if said.startswith("{"):
                answer: dict[str, Any] = json.loads(said)
                return answer
        raise NoPeer(f"{self._name}: its process ended; what it said last stands above")


@contextlib.contextmanager
def peer(name: str, script: str, *args: str) -> Iterator[Peer]:
    """Run `bench/<script>.py` with the peer's packages. Raises `NoPeer`."""
    with started(f"bench.{script}", *args, packages=packages(name)) as running:
        yield running


@contextlib.contextmanager
def started(module: str, *args: str, packages: Path | None = None) -> Iterator[Peer]:
    """A module in a process of its own, one thread for its arithmetic, with `packages` ahead of ours."""
    paths = [str(path) for path in (packages, ROOT) if path]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    command = (sys.executable, "-m", module, *args)
    process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Peer(module, process)
    finally:
        process.kill()
        process.communicate()


def packages(name: str) -> Path:
    """The folder of a peer's packages, installed where it is missing or its pins have changed. Raises `NoPeer`."""
    folder = Settings.from_env().cache / "bench" / "peers" / name
    pins = "\n".join(PINS[name])
    made = folder / "pins.txt"
    if made.exists() and made.read_text("utf-8") == pins:
        return folder
    command = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target", str(folder))
    done = subprocess.run((*command, *PINS[name]), capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip() or "no reason given").splitlines()[-1]
        raise NoPeer(f"{PINS[name][0]}: pip cannot install it ({reason}); give pip a package index that has it")
    made.write_text(pins, "utf-8")
    return folder
