"""Where things live on this machine. The only reader of the `TOUCHSTONE_*` environment variables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from infra.store import StoreError, is_address, place
from schemas.errors import TouchstoneError

ROOT = Path(__file__).resolve().parent.parent
ASSETS = ROOT / "data"
"""Small committed assets; nothing is written here except under `store/`."""


class SettingsError(TouchstoneError):
    """An environment variable or option that cannot be used."""


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
        store = location("TOUCHSTONE_STORE", env.get("TOUCHSTONE_STORE", str(ASSETS / "store")))
        local = ASSETS / "store" if "://" in store else Path(store)
        return cls(
            store,
            cache=folder("TOUCHSTONE_CACHE", env["TOUCHSTONE_CACHE"]) if "TOUCHSTONE_CACHE" in env else local,
            ray=env.get("TOUCHSTONE_RAY") or None,
            api_key=env.get("TOUCHSTONE_API_KEY", ""),
        )


def location(name: str, value: str) -> str:
    """The `Settings.store` that a variable or option called `name` asks for. Raises `SettingsError`."""
    try:
        found = place(value)
    except StoreError as error:
        raise SettingsError(f"{name}={error}") from error
    return found if "://" in found else str(folder(name, value))


def folder(name: str, value: str) -> Path:
    """The folder on this machine that a variable or option asks for, there or not yet. Raises `SettingsError`."""
    if is_address(value):
        raise SettingsError(f"{name}={value}: is an address; this needs a folder on this machine")
    try:
        path = Path(place(value))
    except StoreError as error:
        raise SettingsError(f"{name}={error}") from error
    existing = next(p for p in (path, *path.parents) if os.path.exists(p))
    if not existing.is_dir():
        raise SettingsError(f"{name}={value}: {existing} is a file; give a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise SettingsError(f"{name}={value}: {existing} is not writable; give a folder you own")
    return path
