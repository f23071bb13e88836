"""Corpora: a `World` of documents and typed facts, the default one (`atlas`), and a reader for a user's own documents."""

import hashlib
from importlib import metadata
from pathlib import Path

from pipeline.corpora import store
from pipeline.corpora.atlas import PACKAGES, compile_atlas
from pipeline.corpora.counterfactual import counterfactual
from pipeline.corpora.describe import describe, page
from pipeline.corpora.documents import read_documents
from pipeline.corpora.store import WorldError
from pipeline.corpora.world import World

__all__ = ["World", "WorldError", "build_world", "counterfactual", "describe", "load_world", "page", "read_documents"]

_CODE = "code"


def load_world(name: str, cache: Path) -> World:
    """The named world, or a user's own documents where `name` is a path to JSONL or Parquet.

    The first call builds and stores it under `<cache>/worlds/`; later ones load it in a few seconds. Where a stored world was
    built from other versions of the source packages, `WorldError` says so: a run never changes worlds silently.
    """
    if name != "atlas":
        return read_documents(Path(name))
    recipe = _recipe()
    path = _place(cache, recipe)
    if store.header(path) is None:
        _refuse_other_versions(cache, recipe)
        return build_world(name, cache)
    return store.load(path)


def build_world(name: str, cache: Path) -> World:
    """Compile the world from the installed packages, store it and load it back. Worlds of other versions stay where they are."""
    if name != "atlas":
        raise WorldError(f"{name}: no such world; the one that can be built is atlas")
    recipe = _recipe()
    path = _place(cache, recipe)
    if store.header(path) is None:
        store.save(compile_atlas(), path, recipe)
    return store.load(path)


def _recipe() -> dict[str, str]:
    """Versions of the source packages, and a hash of the code that compiles them."""
    versions = {package: metadata.version(package) for package in PACKAGES}
    return {**versions, _CODE: _COMPILER}


def _code_hash() -> str:
    here = Path(__file__).parent
    code = hashlib.sha256(store.LAYOUT.encode())
    for file in (here / "pages.py", *sorted(here.glob("atlas/*.py"))):
        code.update(file.read_bytes())
    return code.hexdigest()[:16]


_COMPILER = _code_hash()
"""Taken at import: a file edited while this process runs is not the code that compiles here."""


def _place(cache: Path, recipe: dict[str, str]) -> Path:
    key = hashlib.sha256(repr(sorted(recipe.items())).encode()).hexdigest()[:12]
    return cache / "worlds" / f"atlas-{key}"


def _refuse_other_versions(cache: Path, recipe: dict[str, str]) -> None:
    for path in sorted((cache / "worlds").glob("atlas-*")):
        theirs = (store.header(path) or {}).get("recipe", recipe)
        for package in sorted(set(recipe) & set(theirs) - {_CODE}):
            if theirs[package] != recipe[package]:
                raise WorldError(
                    f"{path}: built from {package} {theirs[package]}, but {recipe[package]} is installed; "
                    "run `touchstone world build` to build the world anew, or install the version it was built from"
                )
