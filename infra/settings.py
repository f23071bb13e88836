"""Where things live on this machine. The only reader of the `TOUCHSTONE_*` environment variables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from schemas.errors import TouchstoneError

ROOT = Path(__file__).resolve().parent.parent
ASSETS = ROOT / "data"
"""Small committed assets; nothing is written here except under `store/`."""

_GLOB_CHARACTERS = "*?[]"


class SettingsError(TouchstoneError):
    """An environment variable that cannot be used."""


@dataclass(frozen=True)
class Settings:
    """`store` holds the releases: an absolute local path or `s3://bucket/prefix`, without a trailing slash.

    `cache` is local scratch for worlds, models and runs: the store itself where that is local, so that everything made
    lies in one place.
    """

    store: str
    cache: Path
    ray: str | None = None
    """Address of a Ray cluster ("auto", "local", "ray://host:10001"); `None` keeps batches on threads of this process."""
    api_key: str = field(default="", repr=False)
    """Sent to model servers that someone else runs; empty sends none."""

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> "Settings":
        """Read TOUCHSTONE_STORE, TOUCHSTONE_CACHE, TOUCHSTONE_RAY and TOUCHSTONE_API_KEY. Creates nothing.

        Raises `SettingsError` for a value that could only fail later, when the work is already done.
        """
        store = _store("TOUCHSTONE_STORE", env.get("TOUCHSTONE_STORE", str(ASSETS / "store")))
        local = ASSETS / "store" if "://" in store else Path(store)
        return cls(
            store,
            cache=_folder("TOUCHSTONE_CACHE", env["TOUCHSTONE_CACHE"]) if "TOUCHSTONE_CACHE" in env else local,
            ray=env.get("TOUCHSTONE_RAY") or None,
            api_key=env.get("TOUCHSTONE_API_KEY", ""),
        )


def _store(name: str, value: str) -> str:
    scheme, separator, rest = value.partition("://")
    if not separator:
        return str(_folder(name, value))
    if scheme != "s3":
        raise SettingsError(f"{name}={value}: {scheme}:// is not supported; give a local path or s3://bucket/prefix")
    if not rest.strip("/") or rest.startswith("/"):
        raise SettingsError(f"{name}={value}: names no bucket; give s3://bucket/prefix")
    _refuse_globs(name, value)
    return value.rstrip("/")


def _folder(name: str, value: str) -> Path:
    if not value.strip():
        raise SettingsError(f"{name}={value!r}: is empty; unset it to use {ASSETS / 'store'}, or give a path")
    if "://" in value:
        raise SettingsError(f"{name}={value}: is an address; scratch files need a folder on this machine")
    _refuse_globs(name, value)
    path = Path(value).expanduser().absolute()
    existing = next(p for p in (path, *path.parents) if p.exists())
    if not existing.is_dir():
        raise SettingsError(f"{name}={value}: {existing} is a file; give a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise SettingsError(f"{name}={value}: {existing} is not writable; give a folder you own")
    return path


def _refuse_globs(name: str, value: str) -> None:
    """`datasets` and fsspec read these characters as patterns and would find no data under such a path."""
    if found := sorted(set(value) & set(_GLOB_CHARACTERS)):
        raise SettingsError(f"{name}={value}: {' '.join(found)} would be read as a pattern; give a path without it")
