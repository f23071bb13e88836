"""`make up`: the Prefect server, the work pool, the deployments and one worker, in the foreground until Ctrl-C.

Children share this process's group fate: each is ended by id, worker first, and asks the kernel to end it should this
process be killed.
"""

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import yaml
from rich.console import Console

from infra.settings import ROOT, Settings
from schemas.errors import TouchstoneError

POOL = "local"
START_LIMIT_S = 240.0
"""A first start migrates an empty database; on a loaded machine that alone can take three minutes."""
STOP_LIMIT_S = 10.0


class UpError(TouchstoneError):
    """The local Prefect installation could not be brought up."""


def up(console: Console) -> None:
    """Run everything until interrupted. Raises `UpError` where a part does not start or dies."""
    url = _api_url()
    environment = _environment(url)
    logs = Settings.from_env().cache / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        console.print(f"starting the Prefect server at {url} (log: {logs / 'prefect-server.log'})")
        server = stack.enter_context(_child(["server", "start"], environment, logs / "prefect-server.log"))
        _await_health(url, server, logs / "prefect-server.log")
        _prefect(["work-pool", "create", POOL, "--type", "process", "--overwrite"], environment)
        _prefect(["deploy", "--all"], environment)
        asyncio.run(_ensure_automation((ROOT / "infra" / "automations.yaml").read_text()))
        worker = stack.enter_context(
            _child(["worker", "start", "--pool", POOL, "--limit", "2"], environment, logs / "prefect-worker.log")
        )
        console.print(f"[bold]up[/bold]: {url.removesuffix('/api')}  -  Ctrl-C stops everything")
        console.print("run one with: prefect deployment run curate/hard-search --watch")
        console.print("         or: prefect deployment run train/coupled --watch")
        while True:
            for name, child in (("server", server), ("worker", worker)):
                if child.poll() is not None:
                    raise UpError(f"prefect {name}: ended with code {child.returncode}; see {logs}/prefect-{name}.log")
            time.sleep(1)


def _api_url() -> str:
    from prefect.settings import get_current_settings

    url = get_current_settings().api.url
    if url is None or urlsplit(url).hostname not in {"127.0.0.1", "localhost"}:
        raise UpError(f"PREFECT_API_URL={url}: this starts a local server; unset it, or use the server that is there")
    return url


def _environment(url: str) -> dict[str, str]:
    database = Settings.from_env().cache / "prefect" / "prefect.db"
    database.parent.mkdir(parents=True, exist_ok=True)
    return {
        **os.environ,
        "PREFECT_API_URL": url,
        "PREFECT_SERVER_API_HOST": "127.0.0.1",
        "PREFECT_SERVER_API_PORT": str(urlsplit(url).port),
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{database}",
        "DO_NOT_TRACK": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
    }


@contextmanager
def _child(arguments: list[str], environment: Mapping[str, str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    with log.open("ab") as sink:
        child = subprocess.Popen(
            [sys.executable, "-m", "prefect", *arguments],
            cwd=ROOT,
            env=dict(environment),
            stdout=sink,
            stderr=subprocess.STDOUT,
            # A group of its own, so that Ctrl-C reaches this process alone and the order of stopping is ours.
            process_group=0,
            preexec_fn=_die_with_parent,
        )
    try:
        yield child
    finally:
        _stop(child)


def _die_with_parent() -> None:
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL("libc.so.6").prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _stop(child: "subprocess.Popen[bytes]") -> None:
    """A worker's first SIGTERM is passed on as an interrupt it ignores in a group of its own; the second one ends it."""
    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        if child.poll() is not None:
            return
        os.killpg(child.pid, sign)
        try:
            child.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            continue


def _await_health(url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline:
        if server.poll() is not None:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-8:])
            raise UpError(
                f"{url}: the server ended at once; if its port is taken, stop the other server or set "
                f"PREFECT_API_URL=http://127.0.0.1:<free port>/api here and where you run `prefect`\n{tail}"
            )
        try:
            if httpx.get(f"{url}/health", timeout=5).status_code == httpx.codes.OK:
                return
        except httpx.HTTPError:
            time.sleep(0.5)
    raise UpError(f"{url}: no answer within {START_LIMIT_S:.0f} s; see {log}")


def _prefect(arguments: list[str], environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "prefect", *arguments], cwd=ROOT, env=dict(environment), capture_output=True, text=True
    )
    if done.returncode:
        raise UpError(f"prefect {' '.join(arguments)}: failed\n{(done.stdout + done.stderr)[-2000:]}")


async def _ensure_automation(description: str) -> None:
    from prefect.automations import Automation

    wanted = Automation(**yaml.safe_load(description))
    try:
        await Automation.aread(name=wanted.name)
    except ValueError:
        await wanted.acreate()


def main() -> None:
    console = Console()
    for sign in (signal.SIGINT, signal.SIGTERM):  # also where the shell that started this ignores interrupts
        signal.signal(sign, signal.default_int_handler)
    try:
        up(console)
    except KeyboardInterrupt:
        console.print("stopped")
    except UpError as error:
        console.print(f"[red]error[/red] {error}", soft_wrap=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
