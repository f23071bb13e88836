"""An object is written once and whole, or not at all, on a disk and on a real S3 server."""

import os
import resource
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from infra.settings import ROOT
from infra.store import (
    Corrupted,
    DiskFull,
    KeyExists,
    KeyMissing,
    Store,
    StoreError,
    StoreUnreachable,
    Written,
    explained,
)
from tests.s3 import moto_server

EMPTY = Written(0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
"""The SHA-256 of nothing, as FIPS 180 test vectors give it."""


@pytest.fixture(params=["local", "s3"])
def store(request, tmp_path) -> Store:
    if request.param == "local":
        return Store(str(tmp_path / "store"))
    return Store(request.getfixturevalue("bucket") + "/some prefix+1")


def everything_under(store: Store) -> list[str]:
    if store.local:
        return sorted(str(p.relative_to(store.local)) for p in store.local.rglob("*") if p.is_file())
    import boto3

    bucket, _, prefix = store.root.removeprefix("s3://").partition("/")
    found = boto3.client("s3").list_objects_v2(Bucket=bucket).get("Contents", [])
    return sorted(o["Key"].removeprefix(prefix).strip("/") for o in found)


def test_what_was_put_is_there_and_nothing_else(store, tmp_path):
    assert not store.exists("a/b.bin")
    written = store.put("a/b.bin", b"abc")
    assert written == Written(3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    (tmp_path / "file").write_bytes(b"")
    assert store.put("empty", tmp_path / "file") == EMPTY
    assert store.exists("a/b.bin") and store.get("a/b.bin") == b"abc" and store.get("empty") == b""
    assert store.download("a/b.bin", tmp_path / "down/b.bin") == written
    assert (tmp_path / "down/b.bin").read_bytes() == b"abc"
    assert everything_under(store) == ["a/b.bin", "empty"]


def test_a_key_is_written_once(store):
    store.put("k", b"first")
    with pytest.raises(KeyExists, match="written once"):
        store.put("k", b"second")
    assert store.ensure("k", b"first") == store.digest("k")
    with pytest.raises(KeyExists, match="other content"):
        store.ensure("k", b"second")
    assert store.get("k") == b"first"


def test_of_racing_writers_exactly_one_wins(store):
    def write(i: int) -> int | None:
        try:
            Store(store.root).put("k", b"%d" % i * 100_000)
        except KeyExists:
            return None
        return i

    with ThreadPoolExecutor(8) as pool:
        winners = [i for i in pool.map(write, range(8)) if i is not None]
    assert len(winners) == 1
    assert store.get("k") == b"%d" % winners[0] * 100_000
    assert everything_under(store) == ["k"]


def test_a_large_file_goes_up_in_parts_and_is_still_written_once(store, tmp_path):
    """101 MiB: s3fs sends more than 2 * 50 MiB as a multipart upload, whose last request carries the condition."""
    big = tmp_path / "big"
    big.write_bytes(bytes(range(256)) * (101 * 4096))
    assert store.put("big", big).bytes == 101 << 20
    with pytest.raises(KeyExists):
        store.put("big", big)


def test_nothing_under_a_key_when_the_source_breaks(store, tmp_path):
    with pytest.raises(KeyMissing):
        store.put("k", tmp_path / "absent")
    assert not store.exists("k") and everything_under(store) == []


def test_a_missing_key_is_named(store):
    with pytest.raises(KeyMissing, match=r"a/b\.bin: does not exist"):
        store.get("a/b.bin")


def test_existence_is_never_remembered(store):
    other = Store(store.root)
    assert not other.exists("k")
    store.put("k", b"x")
    assert other.exists("k")


@pytest.mark.parametrize(
    "key", ["", "/a", "a/", "a//b", "../a", "a/../b", "a/./b", "a*", "a?b", "a[1]", "a b", "a\n", "é"]
)
def test_a_key_that_could_mean_something_else_is_refused(tmp_path, key):
    with pytest.raises(StoreError, match="no key"):
        Store(str(tmp_path)).put(key, b"x")


@pytest.mark.parametrize(
    "root",
    [
        "", " ", "runs/exp[1]", "a*b", "what?", "s3://", "s3:///x", "s3://b/[x]", "gs://bucket/a", "s3:/b", "~nouser/x",
        "x" * 300, "x/" * 2000,
    ],
)  # fmt: skip
def test_a_root_that_would_hide_the_data_is_refused_at_once(root):
    with pytest.raises(StoreError):
        Store(root)


@pytest.mark.parametrize(
    "url", ["notaurl", "http://", "http://[::1", "http://a b", "http://a:99999", "127.0.0.1:9", " "]
)
def test_an_endpoint_that_is_no_url_is_refused_at_once(monkeypatch, url):
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    with pytest.raises(StoreError, match=r"^AWS_ENDPOINT_URL=.*: is no URL of a server; give http://host:port"):
        Store("s3://bucket")


def test_a_store_that_is_a_file_says_so(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for root in ("file", "file/below"):
        with pytest.raises(StoreError, match="is a file, or lies below one; give a folder"):
            Store(str(tmp_path / root)).check()


def test_a_part_of_an_object_can_be_read(store):
    store.put("k", b"abcdef")
    with store.open("k") as file:
        file.seek(2)
        assert file.read(2) == b"cd"
    with pytest.raises(KeyMissing), store.open("absent") as file:
        file.read()


@pytest.mark.parametrize("folder", ["with space", "données 数据", "a#b", "a+b", "a%20b"])
def test_other_unusual_folders_work(tmp_path, folder):
    store = Store(str(tmp_path / folder))
    store.put("k", b"x")
    assert store.get("k") == b"x"


def test_what_reads_back_differently_is_reported(tmp_path):
    class FlippingDisk(Store):
        """Stores what it is given and gives back something else."""

        def digest(self, key: str) -> Written:
            return EMPTY

    with pytest.raises(Corrupted, match="read back 0 bytes"):
        FlippingDisk(str(tmp_path)).put("k", b"x")


def run_limited(code: str, limit: int, *arguments: str) -> str:
    """Standard output of `code` in a process whose files may not pass `limit` bytes."""
    script = "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n" + textwrap.dedent(code)
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_full_disk_is_a_typed_error_and_leaves_nothing(tmp_path):
    """The largest file here is 64 KiB, so the 100 KiB do not fit; the kernel says EFBIG where a full disk says ENOSPC."""
    said = run_limited(
        """
        import sys
        from infra.store import DiskFull, Store
        store = Store(sys.argv[1])
        store.put("small", b"x")
        try:
            store.put("large", b"x" * 100 * 1024)
        except DiskFull as error:
            print(error)
        """,
        64 * 1024,
        str(tmp_path),
    )
    assert "large: File too large; free some space and run again" in said
    assert [p.name for p in tmp_path.rglob("*")] == ["small"]


def test_a_full_device_is_a_typed_error():
    """/dev/full takes no byte: the kernel's own ENOSPC."""
    with pytest.raises(DiskFull, match="No space left on device"), explained("k"), Path("/dev/full").open("wb") as file:
        file.write(b"x")


def test_a_folder_without_permission_is_a_typed_error(tmp_path):
    """As nobody: root may write everywhere."""
    folder = tmp_path / "readonly"
    folder.mkdir(mode=0o555)
    code = """
        import os, sys
        from infra.store import AccessDenied, Store
        if os.getuid() == 0:
            os.setuid(65534)
        for attempt in (lambda: Store(sys.argv[1]).put("k", b"x"), lambda: Store(sys.argv[1]).check()):
            try:
                attempt()
            except AccessDenied as error:
                print(error)
        """
    for parent in (tmp_path, *tmp_path.parents[:2]):
        os.chmod(parent, parent.stat().st_mode | 0o055)
    said = run_limited(code, 1 << 30, str(folder))
    assert said.count("check the permissions") == 2


def test_a_store_without_a_bucket_is_found_out_before_the_work(s3_server):
    with pytest.raises(StoreUnreachable, match="no such bucket"):
        Store("s3://never-made/x").check()
    with pytest.raises(StoreUnreachable, match="bucket"):
        Store("s3://never-made/x").put("k", b"x")


def test_a_server_that_is_gone_is_a_typed_error(monkeypatch):
    import boto3

    with moto_server() as endpoint:
        for name, value in {
            "ENDPOINT_URL": endpoint,
            "ACCESS_KEY_ID": "a",
            "SECRET_ACCESS_KEY": "b",
            "REGION": "us-east-1",
        }.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="gone")
        store = Store("s3://gone")
        store.check()
        store.put("k", b"x")
    for attempt in (store.check, lambda: store.put("l", b"x"), lambda: store.get("k"), lambda: store.exists("k")):
        with pytest.raises(StoreUnreachable, match="AWS_ENDPOINT_URL"):
            attempt()
