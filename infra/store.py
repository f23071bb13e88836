"""An object store where a key is written once: a local folder or `s3://bucket/prefix`, by the same rules.

Invariants: under a key there is the whole object or nothing, whatever crashed; a key is never overwritten, and of two
writers exactly one wins; what was written is read back and compared before `put` returns. Nothing here lists: existence is
asked of the one key, never of a cached listing.
"""

import errno
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from schemas.errors import TouchstoneError

_KEY = re.compile(r"[A-Za-z0-9_.+=-]+(/[A-Za-z0-9_.+=-]+)*")
_GLOB = "*?[]"


class StoreError(TouchstoneError):
    """The store could not do it. What it holds is whole and unchanged."""


class KeyExists(StoreError):
    """The key was written before, by whomever."""


class KeyMissing(StoreError):
    """Nothing was ever written under the key."""


class DiskFull(StoreError):
    """No space, or a quota or file size limit was met."""


class AccessDenied(StoreError):
    """Not allowed to read or write here."""


class StoreUnreachable(StoreError):
    """The server does not answer, or its bucket does not exist."""


class Corrupted(StoreError):
    """What was read is not what was written."""


@dataclass(frozen=True)
class Written:
    """Size and SHA-256 of an object."""

    bytes: int
    sha256: str


class _Backend(Protocol):
    def create(self, key: str, data: bytes | Path) -> None:
        """Write the whole object or nothing. Raises `FileExistsError` for a key that has one."""
        ...

    def read(self, key: str) -> Iterator[bytes]:
        """Raises `FileNotFoundError`."""
        ...

    def exists(self, key: str) -> bool: ...

    def check(self) -> None: ...


class Store:
    """The objects under `root`, an absolute or relative local path or `s3://bucket/prefix`.

    S3 takes its endpoint, keys and region from the usual AWS_* variables (AWS_ENDPOINT_URL for a server of your own).
    """

    def __init__(self, root: str) -> None:
        """Creates nothing. Raises `StoreError` for a root that readers would take for a pattern."""
        scheme, separator, rest = root.partition("://")
        if bad := sorted(set(root) & set(_GLOB)):
            raise StoreError(f"{root}: {' '.join(bad)} would be read as a pattern; choose a path without it")
        if separator and scheme != "s3":
            raise StoreError(f"{root}: {scheme}:// is not supported; give a local path or s3://bucket/prefix")
        if not root or (separator and not rest.partition("/")[0]):
            raise StoreError(f"{root!r}: names no bucket or folder; give a local path or s3://bucket/prefix")
        self.root = root.rstrip("/") if separator else str(Path(root).expanduser().absolute())
        self.local = None if separator else Path(self.root)
        self._backend: _Backend = _S3(self.root) if separator else _Local(Path(self.root))

    def under(self, prefix: str) -> "Store":
        """The same store, of the keys below `prefix`."""
        return type(self)(self.url(prefix))

    def check(self) -> None:
        """Raise now what would otherwise fail after the work is done: no such bucket, no server, no permission."""
        with explained(self.root):
            self._backend.check()

    def url(self, key: str) -> str:
        """What other libraries open: a local path or an `s3://` URL."""
        return f"{self.root}/{_checked(key)}"

    @property
    def storage_options(self) -> dict[str, Any]:
        """What `datasets` and pandas need beside `url` to reach it."""
        return {} if self.local else s3_options()

    def put(self, key: str, data: bytes | Path) -> Written:
        """Write `data`, or the file it names, under `key`. Raises `KeyExists` rather than replace anything."""
        written = measure(data)
        with explained(self.url(key)):
            self._backend.create(key, data)
            self._verify(key, written)
        return written

    def ensure(self, key: str, data: bytes | Path) -> Written:
        """As `put`, but equal content that is there already is fine. Raises `KeyExists` for different content."""
        try:
            return self.put(key, data)
        except KeyExists:
            written = measure(data)
            if self.digest(key) != written:
                raise KeyExists(f"{self.url(key)}: holds other content and is written once; use another key") from None
            return written

    def get(self, key: str) -> bytes:
        with explained(self.url(key)):
            return b"".join(self._backend.read(key))

    def download(self, key: str, path: Path) -> Written:
        """Copy to a local file, which appears whole or not at all."""
        sha, size, partial = hashlib.sha256(), 0, path.with_name(f".{path.name}.{uuid4().hex}")
        with explained(self.url(key)):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with partial.open("wb") as file:
                    for block in self._backend.read(key):
                        file.write(block)
                        sha.update(block)
                        size += len(block)
                partial.replace(path)
            finally:
                partial.unlink(missing_ok=True)
        return Written(size, sha.hexdigest())

    def digest(self, key: str) -> Written:
        """Size and hash of what is stored, read in full."""
        sha, size = hashlib.sha256(), 0
        with explained(self.url(key)):
            for block in self._backend.read(key):
                sha.update(block)
                size += len(block)
        return Written(size, sha.hexdigest())

    def exists(self, key: str) -> bool:
        with explained(self.url(key)):
            return self._backend.exists(key)

    def _verify(self, key: str, written: Written) -> None:
        if (found := self.digest(key)) != written:
            raise Corrupted(
                f"{self.url(key)}: read back {found.bytes} bytes with another hash than the {written.bytes} written; "
                "check the disk or the server"
            )


class _Local:
    """A folder. An object is written and synced under a temporary name, then linked, which fails if the key exists."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def create(self, key: str, data: bytes | Path) -> None:
        path = self._root / key
        if path.exists():
            raise FileExistsError(errno.EEXIST, "exists", str(path))
        path.parent.mkdir(parents=True, exist_ok=True)
        # Outside every release folder: a loader that looks at one never sees a partial file.
        partial = self._root / f".partial-{uuid4().hex}"
        try:
            with partial.open("xb") as file:
                if isinstance(data, Path):
                    with data.open("rb") as source:
                        shutil.copyfileobj(source, file, 1 << 20)
                else:
                    file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.link(partial, path)
            _sync_folder(path.parent)
        finally:
            partial.unlink(missing_ok=True)

    def read(self, key: str) -> Iterator[bytes]:
        with (self._root / key).open("rb") as file:
            while block := file.read(1 << 20):
                yield block

    def exists(self, key: str) -> bool:
        return (self._root / key).is_file()

    def check(self) -> None:
        self._root.mkdir(parents=True, exist_ok=True)
        probe = self._root / f".partial-{uuid4().hex}"
        probe.touch()
        probe.unlink()


class _S3:
    """A bucket. `mode="create"` is one conditional request (`If-None-Match: *`), also for a multipart upload's last step.

    s3fs repeats a request whose answer was lost, and the repetition finds its own object; `Store.ensure` sorts that out.
    """

    def __init__(self, root: str) -> None:
        self._root = root.removeprefix("s3://")
        environment = tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("AWS_")))
        self._fs = _connection(os.getpid(), environment)

    def create(self, key: str, data: bytes | Path) -> None:
        if isinstance(data, Path):
            self._fs.put_file(str(data), f"{self._root}/{key}", mode="create")
        else:
            self._fs.pipe_file(f"{self._root}/{key}", data, mode="create")

    def read(self, key: str) -> Iterator[bytes]:
        with self._fs.open(f"{self._root}/{key}", "rb", cache_type="readahead", block_size=1 << 23) as file:
            while block := file.read(1 << 23):
                yield block

    def exists(self, key: str) -> bool:
        bucket, _, prefix = self._root.partition("/")
        try:
            self._fs.call_s3("head_object", Bucket=bucket, Key="/".join(filter(None, (prefix, key))))
        except FileNotFoundError:
            return False
        return True

    def check(self) -> None:
        bucket = self._root.partition("/")[0]
        try:
            self._fs.call_s3("head_bucket", Bucket=bucket)
        except FileNotFoundError as error:
            raise StoreUnreachable(f"s3://{bucket}: no such bucket; create it first") from error


@cache
def _connection(process: int, environment: tuple[tuple[str, str], ...]) -> Any:
    """One client for a process and the settings it was made with; it does not survive a fork."""
    import s3fs  # type: ignore[import-untyped]

    return s3fs.S3FileSystem(**s3_options(), use_listings_cache=False, skip_instance_cache=True)


def s3_options() -> dict[str, Any]:
    """Connection of s3fs: patient enough for a busy server, quick enough to say that there is none."""
    return {"config_kwargs": {"connect_timeout": 5, "read_timeout": 60, "retries": {"max_attempts": 2}}}


def _checked(key: str) -> str:
    if not _KEY.fullmatch(key) or any(part.strip(".") == "" for part in key.split("/")):
        raise StoreError(f"{key!r}: no key of this store; use letters, digits and . _ + = - between single slashes")
    return key


def measure(data: bytes | Path) -> Written:
    """Size and hash of bytes or a local file."""
    if isinstance(data, bytes):
        return Written(len(data), hashlib.sha256(data).hexdigest())
    with explained(str(data)), data.open("rb") as file:
        return Written(data.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


def _sync_folder(path: Path) -> None:
    """Make a new name survive a power cut."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Whatever the machine or the server says, as one of the errors above."""
    try:
        yield
    except StoreError:
        raise
    except FileExistsError as error:
        raise KeyExists(f"{where}: exists and is written once; use another key") from error
    except FileNotFoundError as error:
        if "bucket" in str(error).lower():
            raise StoreUnreachable(f"{where}: {error}; create the bucket first") from error
        raise KeyMissing(f"{where}: does not exist; check the path") from error
    except PermissionError as error:
        raise AccessDenied(f"{where}: {error}; check the permissions or the AWS_* keys") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise DiskFull(f"{where}: {error.strerror}; free some space and run again") from error
        raise StoreUnreachable(f"{where}: {error}; check the disk or the server") from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] in ("botocore", "aiobotocore", "aiohttp"):
            raise StoreUnreachable(f"{where}: {error}; check AWS_ENDPOINT_URL, the keys and the network") from error
        raise
