"""Model folders on disk, whole or not there at all, and the manifest by which a damaged one is known."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import torch
from pydantic import BaseModel, ValidationError
from safetensors import SafetensorError
from safetensors.torch import save_file

from infra.store import StoreError, Written, explained, measure
from schemas.errors import TouchstoneError

WEIGHTS_FILE, OPTIMISER_FILE, MANIFEST_FILE = "model.safetensors", "optimiser.state", "manifest.json"
_COPIED = frozenset((".json", ".jinja", ".txt", ".model"))
"""What a model folder holds beside weights: config, tokenizer, chat template, `build.json`."""
_NOT_COPIED = frozenset((MANIFEST_FILE, "model.safetensors.index.json"))
_PARTIAL = ".partial-"


_WAY_BACK = "remove the checkpoint and the run's buffer.sqlite to go on from an earlier checkpoint"


class TrainerError(TouchstoneError):
    """A trainer that cannot begin or go on."""


class Manifest(BaseModel):
    """Where training stood, and every file of the checkpoint."""

    version: int
    updates: int
    """Steps in which the optimiser moved the weights."""
    files: dict[str, tuple[int, str]]
    """Size and SHA-256 by name."""


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder to write into, which takes the name `folder` once the block ends and all of it is on the disk.

    What had that name goes. Raises `StoreError`.
    """
    with explained(str(folder)):
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = folder.parent / f"{_PARTIAL}{uuid4().hex}"
        partial.mkdir()
        try:
            yield partial
            for path in (*partial.iterdir(), partial):
                _sync(path)
            if folder.exists():
                folder.rename(folder.parent / f"{_PARTIAL}{uuid4().hex}")
            partial.rename(folder)
            _sync(folder.parent)
        finally:
            sweep(folder.parent)


def sweep(parent: Path) -> None:
    """Remove what was never finished; one process writes folders under `parent`."""
    for partial in parent.glob(f"{_PARTIAL}*"):
        shutil.rmtree(partial, ignore_errors=True)


def write_model(folder: Path, policy: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    """Write a model that a server can be started from, with all but the weights from `policy`.

    Its config says that the head is untied, since `tensors` has both: a CPU engine keeps the old head when it swaps
    weights that are tied.
    """
    for path in policy.iterdir():
        if path.suffix in _COPIED and path.name not in _NOT_COPIED:
            shutil.copyfile(path, folder / path.name)
    config = json.loads((policy / "config.json").read_text("utf-8"))
    dtype = str(next(iter(tensors.values())).dtype).removeprefix("torch.")
    config = {key: value for key, value in config.items() if key != "torch_dtype"}
    config |= {"tie_word_embeddings": False, "dtype": dtype}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")
    write_tensors(tensors, folder / WEIGHTS_FILE)


def write_tensors(tensors: Mapping[str, torch.Tensor], path: Path) -> None:
    """Write a safetensors file. Raises `TrainerError`."""
    try:
        save_file(dict(tensors), path, metadata={"format": "pt"})
    except SafetensorError as error:
        raise TrainerError(
            f"{path}: cannot be written ({error}); free some space and go on from a checkpoint"
        ) from error


def keep_two(parent: Path, version: int) -> None:
    """Remove every published `v<version>` but this one and the last before it."""
    versions = {int(path.name[1:]): path for path in parent.glob("v*") if path.name[1:].isdecimal()}
    kept = {version, max((each for each in versions if each < version), default=version)}
    for each in versions.keys() - kept:
        shutil.rmtree(versions[each])


def write_manifest(folder: Path, version: int, updates: int) -> None:
    """The last file of a checkpoint: it names all the others."""
    files = {path.name: measure(path) for path in sorted(folder.iterdir())}
    manifest = Manifest(
        version=version, updates=updates, files={name: (each.bytes, each.sha256) for name, each in files.items()}
    )
    (folder / MANIFEST_FILE).write_text(manifest.model_dump_json(indent=1) + "\n", "utf-8")


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a checkpoint whose every file is as it was written. Raises `TrainerError`."""
    path = folder / MANIFEST_FILE
    try:
        manifest = Manifest.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise TrainerError(f"{folder}: has no {MANIFEST_FILE}; {_WAY_BACK}") from None
    except (OSError, ValidationError) as error:
        raise TrainerError(f"{path}: is not what a checkpoint holds; {_WAY_BACK}") from error
    for name in (WEIGHTS_FILE, OPTIMISER_FILE):
        if name not in manifest.files:
            raise TrainerError(f"{path}: names no {name}; {_WAY_BACK}")
    for name, (size, sha256) in manifest.files.items():
        try:
            found = measure(folder / name)
        except StoreError as error:
            raise TrainerError(f"{folder / name}: cannot be read; {_WAY_BACK}") from error
        if found != Written(size, sha256):
            reason = f"{found.bytes} bytes of {size}" if found.bytes != size else "other bytes than were written"
            raise TrainerError(f"{folder / name}: {reason}; {_WAY_BACK}")
    return manifest


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
