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
from typing import IO, Any, Protocol
from urllib.parse import urlsplit
from uuid import uuid4

from schemas.errors import TouchstoneError

_KEY = re.compile(r"[A-Za-z0-9_.+=-]+(/[A-Za-z0-9_.+=-]+)*")
_GLOB = "*?[]"
"""`datasets` and fsspec read these characters as patterns and would find no data under such a path."""
_BUCKETS = "s3://"
_BLOCK = 1 << 23
_NAME_MAX, _PATH_MAX = 255, 3500
"""Bytes of a name, as every common file system has it, and of a path, with room for the files below it (Linux: 4,095)."""


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

    def open(self, key: str) -> IO[bytes]:
        """Raises `FileNotFoundError`, now or at the first read."""
        ...

    def exists(self, key: str) -> bool: ...

    def check(self) -> None: ...


class Store:
    """The objects under `root`, an absolute or relative local path or `s3://bucket/prefix`.

    S3 takes its endpoint, keys and region from the usual AWS_* variables (AWS_ENDPOINT_URL for a server of your own).
    """

    def __init__(self, root: str) -> None:
        """Creates nothing. Raises `StoreError` as `place` does, and for an AWS_ENDPOINT_URL that is no URL."""
        self.root = place(root)
        self.local = None if self.root.startswith(_BUCKETS) else Path(self.root)
        self._backend: _Backend = _Local(self.local) if self.local else _S3(self.root)

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
            return b"".join(self._blocks(key))

    @contextmanager
    def open(self, key: str) -> Iterator[IO[bytes]]:
        """The object as a file that can be sought in, for readers that need only parts of it."""
        with explained(self.url(key)), self._backend.open(key) as file:
            yield file

    def download(self, key: str, path: Path) -> Written:
        """Copy to a local file, which appears whole or not at all."""
        sha, size, partial = hashlib.sha256(), 0, path.with_name(f".{path.name}.{uuid4().hex}")
        with explained(self.url(key)):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with partial.open("wb") as file:
                    for block in self._blocks(key):
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
            for block in self._blocks(key):
                sha.update(block)
                size += len(block)
        return Written(size, sha.hexdigest())

    def exists(self, key: str) -> bool:
        with explained(self.url(key)):
            return self._backend.exists(key)

    def _blocks(self, key: str) -> Iterator[bytes]:
        with self._backend.open(key) as file:
            while block := file.read(_BLOCK):
                yield block

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

    def open(self, key: str) -> IO[bytes]:
        return (self._root / key).open("rb")

    def exists(self, key: str) -> bool:
        return (self._root / key).is_file()

    def check(self) -> None:
        try:
            self._root.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise StoreError(f"{self._root}: is a file, or lies below one; give a folder") from error
        probe = self._root / f".partial-{uuid4().hex}"
        probe.touch()
        probe.unlink()


class _S3:
    """A bucket. `mode="create"` is one conditional request (`If-None-Match: *`), also for a multipart upload's last step.

    s3fs repeats a request whose answer was lost, and the repetition finds its own object; `Store.ensure` sorts that out.
    """

    def __init__(self, root: str) -> None:
        _refuse_bad_endpoint()
        self._root = root.removeprefix(_BUCKETS)
        environment = tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("AWS_")))
        self._fs = _connection(os.getpid(), environment)

    def create(self, key: str, data: bytes | Path) -> None:
        if isinstance(data, Path):
            self._fs.put_file(str(data), f"{self._root}/{key}", mode="create")
        else:
            self._fs.pipe_file(f"{self._root}/{key}", data, mode="create")

    def open(self, key: str) -> IO[bytes]:
        file: IO[bytes] = self._fs.open(f"{self._root}/{key}", "rb", cache_type="readahead", block_size=_BLOCK)
        return file

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


def _refuse_bad_endpoint() -> None:
    """botocore raises a bare `ValueError` for some of them, and only at the first request."""
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        url = os.environ.get(name, "")
        try:
            known = re.fullmatch(r"(https?://[^\s/?#]+\S*)?", url) and urlsplit(url).port != 0
        except ValueError:
            known = False
        if not known:
            raise StoreError(f"{name}={url}: is no URL of a server; give http://host:port, or unset it for AWS itself")


def place(value: str) -> str:
    """The one rule for where a store may lie: an absolute local path or `s3://bucket/prefix`, without a trailing slash.

    Raises `StoreError` for what is neither, and for what readers would take for a pattern.
    """
    way_out = f"give a local path or {_BUCKETS}bucket/prefix"
    if not value.strip():
        raise StoreError(f"{value!r}: is empty; give a path")
    if bad := sorted(set(value) & set(_GLOB)):
        raise StoreError(f"{value}: {' '.join(bad)} would be read as a pattern; choose a path without it")
    if value.startswith(_BUCKETS):
        if not value.removeprefix(_BUCKETS).partition("/")[0]:
            raise StoreError(f"{value}: names no bucket; {way_out}")
        return value.rstrip("/")
    if is_address(value):
        raise StoreError(f"{value}: addresses other than {_BUCKETS} are not supported; {way_out}")
    return str(local_path(value))


def is_address(value: str) -> bool:
    """Whether it is meant as one; `s3:/x` is, with a slash missing."""
    return "://" in value or value.partition("/")[0].endswith(":")


def local_path(value: str) -> Path:
    """The absolute path, `~` expanded. Raises `StoreError` where this machine can have none such."""
    try:
        path = Path(value).expanduser().absolute()
    except RuntimeError as error:
        raise StoreError(f"{value}: has no home folder here ({error}); give an absolute path") from error
    if max(map(len, map(os.fsencode, path.parts))) > _NAME_MAX or len(os.fsencode(path)) > _PATH_MAX:
        raise StoreError(f"{value[:40]}...: is too long for a path on this machine; choose a shorter one")
    return path


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
    except (FileNotFoundError, NotADirectoryError) as error:
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
