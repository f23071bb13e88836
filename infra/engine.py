"""Starting vLLM as a server, noticing its death, and ending it without a trace.

Invariants: an endpoint is yielded only after our own server has proved by name that it is ours; whatever ends the `with`
block, or the whole process, ends every process of the server (see `infra.guard`).
"""

import contextlib
import importlib.metadata
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from infra import guard
from infra.endpoint import Endpoint, EngineDied, ModelCard, ModelError, ServerDown, ServerSlow, attach, list_models
from infra.models import LocalModel
from infra.settings import ROOT

__all__ = ["Endpoint", "EngineDied", "EngineOptions", "attach", "serve"]

_PORT_TRIES = 3
_POLL_S = 0.2
_LAST_WORDS = 5
_ERROR = re.compile(r"\w+(Error|Exception): ")


class _PortTaken(ModelError):
    pass


@dataclass(frozen=True)
class EngineOptions:
    """How a model is served. The same fields hold on a CPU and on a GPU, except where said."""

    max_model_len: int | None = None
    """Tokens of prompt and completion together; `None` takes the model's own."""
    max_num_seqs: int = 128
    """Requests decoded at once; more wait in the server."""
    threads: int | None = None
    """CPU only: OpenMP threads; `None` takes every core. Give 1 to each of two servers on two cores."""
    kv_cache_gib: int = 1
    """CPU only: memory for keys and values."""
    gpu_memory: float = 0.85
    """GPU only: share of the GPU's memory the server may take."""
    exchange: bool = False
    """Whether weights can be exchanged while it runs (`infra.exchange`). Opens vLLM's development endpoints, all of them and
    everything else behind the API key."""
    start_timeout_s: float = 600.0
    """A server that is not ready by then is ended. One that dies is noticed at once."""


class Command(Protocol):
    """Makes a server's command line. Who serves under the name `badge` is the server that was started."""

    def __call__(self, model: LocalModel, badge: str, port: int, options: EngineOptions) -> list[str]: ...


def vllm_command(model: LocalModel, badge: str, port: int, options: EngineOptions) -> list[str]:
    """vLLM's server, for the build that is installed."""
    # The module rather than `vllm serve`: the CPU build's console command looks for metadata it does not have.
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model.path)]
    command += ["--served-model-name", model.name, badge, "--host", "127.0.0.1", "--port", str(port)]
    command += ["--max-num-seqs", str(options.max_num_seqs), "--logprobs-mode", "processed_logprobs"]
    command += ["--disable-uvicorn-access-log"]
    if options.max_model_len is not None:
        command += ["--max-model-len", str(options.max_model_len)]
    if options.exchange:
        # vLLM's own guard asks for the key under /v1 alone, not at the development endpoints.
        command += ["--worker-extension-cls", "infra.weights.TakesWeights", "--middleware", "infra.guarded.OnlyWithKey"]
    if _on_gpu():
        return [*command, "--gpu-memory-utilization", str(options.gpu_memory)]
    # A prompt prefilled in pieces rewinds its request's random generator, which a CPU generator cannot: the server would die.
    command += ["--no-enable-chunked-prefill"]
    # Only whole blocks of a prompt are cached; the default of 128 tokens would compute most of a short one anew every time.
    command += ["--block-size", "32"]
    return [*command, "--dtype", "float32", "--enforce-eager", "--gpu-memory-utilization", "0.2"]


@contextlib.contextmanager
def serve(
    model: LocalModel,
    *,
    cache: Path,
    options: EngineOptions = EngineOptions(),
    command: Command = vllm_command,
    unwanted: threading.Event | None = None,
) -> Iterator[Endpoint]:
    """Serve `model` on loopback with a random API key until the block ends. Blocks 25-45 s to start, less once `unwanted`.

    The log goes to `cache`/logs. Raises `EngineDied` where the server does not come up, with the log's last lines.
    """
    unwanted = unwanted or threading.Event()
    with contextlib.ExitStack() as stack:
        for attempt in range(_PORT_TRIES):
            try:
                endpoint = stack.enter_context(_server(model, cache / "logs", options, command, unwanted))
                break
            except _PortTaken:
                if attempt == _PORT_TRIES - 1:
                    raise
        yield endpoint


@contextlib.contextmanager
def _server(
    model: LocalModel, logs: Path, options: EngineOptions, command: Command, unwanted: threading.Event
) -> Iterator[Endpoint]:
    key, badge = secrets.token_urlsafe(24), f"touchstone-{secrets.token_hex(8)}"
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"engine-{model.name}-{badge[-16:]}.log"
    with _reserved_port() as port, log.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "-I", guard.__file__, *command(model, badge, port, options)],
            stdin=subprocess.PIPE,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=_environment(key, options),
            process_group=0,
        )
        try:
            url = f"http://127.0.0.1:{port}/v1"

            def check() -> None:
                if process.poll() is not None:
                    raise EngineDied(_obituary(model, process.returncode, log))

            def go_on() -> None:
                check()
                if unwanted.is_set():
                    raise EngineDied(f"{model.name}: its server was ended while it started")

            card = _when_ready(url, key, badge, go_on, options.start_timeout_s)
            yield Endpoint(url, key, model.name, model.revision, max_model_len=card.max_model_len, check=check)
        finally:
            _end(process)


def _environment(key: str, options: EngineOptions) -> dict[str, str]:
    cores = sorted(os.sched_getaffinity(0))
    threads = min(options.threads or len(cores), len(cores))
    return os.environ | {
        "VLLM_API_KEY": key,
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_SERVER_DEV_MODE": str(int(options.exchange)),
        "HF_HUB_OFFLINE": "1",
        # Otherwise the first request for log-probabilities waits 9-23 s for a compiler.
        "TORCH_COMPILE_DISABLE": "1",
        "OMP_NUM_THREADS": str(threads),
        # Bound threads are a tenth faster, but starve on a core that another server keeps busy.
        "VLLM_CPU_OMP_THREADS_BIND": "nobind" if threads < len(cores) else ",".join(map(str, cores)),
        "VLLM_CPU_KVCACHE_SPACE": str(options.kv_cache_gib),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
    }


def _on_gpu() -> bool:
    """Whether the installed vLLM is the CUDA build; the CPU build is a distribution of its own, `vllm-cpu`."""
    try:
        importlib.metadata.version("vllm")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


@contextlib.contextmanager
def _reserved_port() -> Iterator[int]:
    """A port that the system gives to nobody else meanwhile: bound but not listening, which lets our server bind it too."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def _when_ready(url: str, key: str, badge: str, check: Callable[[], None], timeout_s: float) -> ModelCard:
    """Our server's card, once it answers. Raises `_PortTaken` where it could not have its port or another server has it."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        try:
            check()
            cards = list_models(url, key, timeout_s=5)
        except (ServerDown, ServerSlow):
            time.sleep(_POLL_S)
            continue
        except EngineDied as error:
            if "address already in use" not in str(error).lower():
                raise
            raise _PortTaken(f"{url}: the port was taken while the server started; run again") from error
        except ModelError as error:
            raise _PortTaken(f"{url}: another server took the port; run again") from error
        if badge in (served := {card.id: card for card in cards}):
            return served[badge]
        raise _PortTaken(f"{url}: another server took the port; run again")
    raise ServerSlow(
        f"{url}: the server was not ready after {timeout_s:g} s; free the machine or raise start_timeout_s"
    )


def _obituary(model: LocalModel, code: int, log: Path) -> str:
    how = f"by signal {code - 128}" if code > 128 else f"with code {code}"
    return f"{model.name}: its server ended {how}; its last words, from {log}:\n{_last_words(log.read_text(errors='replace'))}"


def _last_words(log: str) -> str:
    """The errors a log ends with, which tracebacks bury; its last lines where it names none."""
    lines = [line for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.search(line)]
    return "\n".join((errors or lines)[-_LAST_WORDS:])


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let the guard end the group, then kill what is left of it. An interrupt meanwhile leaves the rest to the guard."""
    assert process.stdin is not None
    process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(guard.GRACE_S + 5)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
