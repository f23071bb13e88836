"""Which version was published last: numbered files under `latest/`, each written once; the last one counts.

A damaged pointer says so when it is read, and the next publish writes one above it.
"""

from pydantic import Field, ValidationError

from infra.store import KeyExists, Store
from schemas.base import Record, canonical_json

NAME = r"[a-z0-9][a-z0-9.-]{0,63}"
"""Of a version."""


class _Pointer(Record):
    version: str = Field(pattern=f"^{NAME}$")


def add(store: Store, version: str) -> None:
    """Point to a version. Two publishers at once take two numbers, for a number is written once."""
    number = last(store)
    if number and read(store, number) == version:
        return
    while True:
        number += 1
        try:
            store.put(key(number), canonical_json({"version": version}).encode())
        except KeyExists:
            continue
        return


def heal(store: Store, version: str) -> None:
    """Point to a version that is published already if the last pointer cannot say which one it was."""
    number = last(store)
    if not number or read(store, number) is None:
        add(store, version)


def read(store: Store, number: int) -> str | None:
    """The version that a pointer names; `None` for a damaged one."""
    try:
        return _Pointer.model_validate_json(store.get(key(number))).version
    except ValidationError:
        return None


def key(number: int) -> str:
    return f"latest/{number:08d}.json"


def last(store: Store) -> int:
    """Numbers have no gaps, so doubling and then halving finds the last one; 0 when there is none."""
    above = 1
    while store.exists(key(above)):
        above *= 2
    below = above // 2
    while above - below > 1:
        middle = (above + below) // 2
        below, above = (middle, above) if store.exists(key(middle)) else (below, middle)
    return below
