"""Folders that one process works in at a time, and files that are there whole or not at all."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from infra.store import explained
from schemas.errors import TouchstoneError


class FolderInUse(TouchstoneError):
    """Another process works in the folder."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds the folder of a run for this process; the kernel lets go when the process ends, however it ends.

    Raises `FolderInUse` naming the process that holds it.
    """
    with explained(str(folder)), (folder / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise FolderInUse(
                f"{folder}: process {file.read().strip() or 'unknown'} works on this run; wait for it, or stop it and "
                "run again: nothing that is done is repeated"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def write_whole(path: Path, data: Any) -> None:
    """Write the bytes under a name of their own, to the disk, then under the name that is asked for; folders as needed."""
    partial = path.with_name(f".{path.name}.{uuid4().hex}")
    with explained(str(path)):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with partial.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


def write_table(path: Path, table: pa.Table) -> None:
    """`write_whole` of a table as Parquet."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    write_whole(path, sink.getvalue())
