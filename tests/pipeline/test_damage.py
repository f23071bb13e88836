"""A release that was damaged, cut or forged is refused in one line that says what is wrong and what to do."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from infra.store import Store, StoreError, measure
from pipeline.release import (
    CARD,
    MANIFEST,
    BrokenRelease,
    Release,
    ReleaseError,
    ReleaseExists,
    latest,
    load,
    publish,
    resolve,
)
from pipeline.release import _content as content_of
from pipeline.replay import ReplayError, config_of
from schemas.arrow import KEPT
from schemas.manifest import Manifest
from tests.pipeline.test_release import kept, part, task


@pytest.fixture
def disk(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store"))


def changed(release: Release, **changes: object) -> Path:
    """The release with another manifest, whatever that leads to."""
    path = Path(release.url, MANIFEST)
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return Path(release.url)


def forged(release: Release, name: str, data: bytes) -> Path:
    """The release with another file, and a manifest that agrees with it in every hash."""
    (Path(release.url) / name).write_bytes(data)
    found = measure(data)
    manifest = json.loads(Path(release.url, MANIFEST).read_text())
    for shard in manifest["shards"] + manifest["ledgers"]:
        if shard["path"] == name:
            shard |= {"bytes": found.bytes, "sha256": found.sha256}
    content = content_of(Manifest.model_validate_json(json.dumps(manifest)))
    named = Path(release.url).with_name(content)
    shutil.move(release.url, named)
    (named / MANIFEST).write_text(json.dumps(manifest | {"content": content, "version": content}))
    return named


def refusal(of: Callable[[], object]) -> str:
    with pytest.raises(BrokenRelease) as error:
        of()
    assert "\n" not in str(error.value)
    assert str(error.value).count("; ") >= 1
    return str(error.value)


@pytest.mark.parametrize("version", [None, "nightly-1"])
def test_a_changed_card_is_refused(disk: Store, version: str | None) -> None:
    release = publish(disk, [part()], version=version)
    card = Path(release.url, CARD)
    card.write_text(card.read_text().replace("math/train", "../evil/train"))
    assert "README.md was changed after it was written" in refusal(lambda: load(release.url))
    changed(release, card=measure(card.read_bytes()).sha256)
    assert "manifest.json was changed after it was written" in refusal(lambda: load(release.url))


def test_content_is_compared_under_a_chosen_name_too(disk: Store) -> None:
    release = publish(disk, [part()], version="nightly-1")
    assert load(release.url).manifest.content == publish(disk, [part()]).version
    root = changed(release, generators={"math": "2"})
    assert "was changed after it was written: its content is r-" in refusal(lambda: load(root))


def test_a_name_is_part_of_what_is_compared(disk: Store, tmp_path: Path) -> None:
    release, named = publish(disk, [part()]), publish(disk, [part(train=6)], version="nightly-1")
    elsewhere = shutil.copytree(release.url, tmp_path / "copy")
    assert load(elsewhere).version == release.version
    assert f"what is called {release.version} is v2" in refusal(lambda: load(changed(release, version="v2")))
    assert "what is called nightly-1 is r-0" in refusal(lambda: load(changed(named, version="r-0")))


def test_a_forged_shard_is_refused_at_the_load(disk: Store) -> None:
    release = publish(disk, [part()])
    root = forged(release, "math/train-00000-of-00001.parquet", b"PAR1 and nothing PAR1")
    assert "math/train-00000-of-00001.parquet cannot be read (" in refusal(lambda: load(root))


def test_a_shard_with_other_columns_is_refused_at_the_load(disk: Store) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(KEPT.pack([kept(i) for i in range(7)]).drop_columns(["task_id"]), sink)
    root = forged(publish(disk, [part()]), "math/train-00000-of-00001.parquet", sink.getvalue().to_pybytes())
    assert "column task_id: has nothing" in refusal(lambda: load(root))


def test_a_row_that_no_record_made_is_refused_when_it_is_read(disk: Store) -> None:
    table = KEPT.pack([kept(i) for i in range(7)])
    column = table.schema.get_field_index("question")
    sink = pa.BufferOutputStream()
    pq.write_table(table.set_column(column, table.schema.field(column), [["what?"] * 7]), sink)
    root = forged(publish(disk, [part()]), "math/train-00000-of-00001.parquet", sink.getvalue().to_pybytes())
    assert "the row was changed after it was made" in refusal(lambda: list(load(root).rows("math")))


def test_damage_anywhere_in_an_unverified_shard_is_a_broken_release(disk: Store) -> None:
    """Every 40th byte turned over, and every 400th length."""
    release = load(publish(disk, [part()]).url, verify=False)
    path = Path(release.url, "math/train-00000-of-00001.parquet")
    whole = path.read_bytes()
    refused = 0
    for damaged in (
        *(whole[:i] + bytes([whole[i] ^ 255]) + whole[i + 1 :] for i in range(0, len(whole), 40)),
        *(whole[:i] for i in range(0, len(whole), 400)),
    ):
        path.write_bytes(damaged)
        try:
            list(release.rows("math"))
            release.find(task(0).task_id)
        except BrokenRelease as error:
            refused += "\n" not in str(error)
        except ReleaseError:
            pass  # the damaged byte is in the id
    assert refused > len(whole) / 100


@pytest.mark.parametrize("text", ["", "{}", "[]", "nope", '{"shards": 1}', "[" * 100_000])
def test_a_damaged_manifest_is_one_line(disk: Store, text: str) -> None:
    release = publish(disk, [part()])
    Path(release.url, MANIFEST).write_text(text)
    said = refusal(lambda: load(release.url))
    assert "manifest.json cannot be read" in said and said.endswith("remove it and publish again")
    assert len(said) < 1000


def test_a_manifest_without_a_hash_is_refused(disk: Store) -> None:
    root = changed(publish(disk, [part()]), configs={"math": {"seed": float("nan")}})
    assert "its content is no JSON" in refusal(lambda: load(root))


@pytest.mark.parametrize("text", ["", "nope", "[]", "{}", '{"version": 5}', '{"version": "../x"}', "[" * 100_000])
def test_a_damaged_pointer_is_named_and_the_next_publish_heals_it(disk: Store, text: str) -> None:
    first = publish(disk, [part()])
    pointer = Path(disk.root, "latest/00000001.json")
    pointer.write_text(text)
    with pytest.raises(ReleaseError, match=r"latest/00000001\.json: is damaged; name a version, or publish again"):
        resolve(disk, "latest")
    second = publish(disk, [part(train=6)])
    assert latest(disk) == second.version
    Path(disk.root, "latest/00000002.json").write_text(text)
    with pytest.raises(ReleaseExists):
        publish(disk, [part()])
    assert latest(disk) == first.version


def test_publishing_again_what_is_there_leaves_a_whole_pointer_alone(disk: Store) -> None:
    publish(disk, [part()])
    second = publish(disk, [part(train=6)])
    with pytest.raises(ReleaseExists):
        publish(disk, [part()])
    assert latest(disk) == second.version


@pytest.mark.parametrize("configs", [{}, {"hard_search": {}}, {"math": {}}, {"math": {"family": "math", "sed": 1}}])
def test_a_task_whose_config_is_not_in_the_release_cannot_be_replayed(disk: Store, configs: dict[str, object]) -> None:
    root = changed(publish(disk, [part()]), configs=configs)
    with pytest.raises(ReplayError, match=r"the config of math|no config of math.*; publish its run again") as error:
        config_of(task(0), load(root, verify=False))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("x" * 300, "no release of"),
        ("a b", "no release of"),
        ("~nouser/x", "has no home folder"),
        ("x/" * 2500, "is too long"),
        (__file__, "has no _touchstone/manifest.json"),
        ("gs://bucket/x", "are not supported"),
    ],
)
def test_a_name_that_can_be_no_release_is_one_line(disk: Store, name: str, error: str) -> None:
    with pytest.raises((ReleaseError, StoreError), match=error):
        load(resolve(disk, name))
