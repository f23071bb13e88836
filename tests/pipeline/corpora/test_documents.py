"""A user's own documents, and the line that is wrong."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.corpora import documents, load_world
from pipeline.corpora.documents import DocumentError, read_documents

GOOD = {"id": "a", "title": "Alpha", "text": "Alpha is first.", "links": ["b"]}
ALSO_GOOD = {"id": "b", "title": "Beta", "text": "Beta is second."}


def _write(folder: Path, *lines: Any) -> Path:
    path = folder / "docs.jsonl"
    path.write_bytes(b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines))
    return path


def test_jsonl_becomes_a_world_without_facts_that_can_be_searched(tmp_path: Path) -> None:
    world = load_world(str(_write(tmp_path, GOOD, b"\n", ALSO_GOOD)), tmp_path)
    assert world.documents["a"].links == ("b",)
    assert world.facts == () and world.types == ()
    assert [hit.title for hit in world.index.search("second", 3)] == ["Beta"]


def test_parquet_is_read_like_jsonl(tmp_path: Path) -> None:
    path = tmp_path / "docs.parquet"
    pl.DataFrame([GOOD, {**ALSO_GOOD, "links": None}]).write_parquet(path)
    assert read_documents(path).hash == read_documents(_write(tmp_path, GOOD, ALSO_GOOD)).hash


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((GOOD, {"id": "b", "title": "Beta"}), "docs.jsonl:2: 'text' is missing"),
        ((GOOD, {**ALSO_GOOD, "title": 7}), "docs.jsonl:2: 'title' is int; make it a string"),
        ((GOOD, {**ALSO_GOOD, "text": "  "}), "docs.jsonl:2: 'text' is empty"),
        ((GOOD, {**ALSO_GOOD, "id": "a"}), "docs.jsonl:2: id 'a' was used in docs.jsonl:1"),
        ((GOOD, {**ALSO_GOOD, "title": "Alpha"}), "docs.jsonl:2: title 'Alpha' was used in docs.jsonl:1"),
        ((GOOD, {**ALSO_GOOD, "title": " ALPHA"}), "docs.jsonl:2: title ' ALPHA' was used in docs.jsonl:1, case and"),
        (
            ({**GOOD, "links": []}, {**ALSO_GOOD, "id": "Alpha"}),
            "docs.jsonl:2: id 'Alpha' is the title in docs.jsonl:1",
        ),
        (
            ({**ALSO_GOOD, "id": "alpha "}, {**GOOD, "links": []}),
            "docs.jsonl:1: id 'alpha ' is the title in docs.jsonl:2",
        ),
        ((GOOD, {**ALSO_GOOD, "links": {}}), "docs.jsonl:2: 'links' must be a list of document ids"),
        ((GOOD, {**ALSO_GOOD, "links": ""}), "docs.jsonl:2: 'links' must be a list of document ids"),
        ((GOOD, b'{"id": "b", "id": "c"}\n'), "docs.jsonl:2: the key 'id' is written twice; each line"),
        ((GOOD, {**ALSO_GOOD, "links": ["c"]}), "docs.jsonl:2: link 'c' leads to no document"),
        ((GOOD, {**ALSO_GOOD, "links": "a"}), "docs.jsonl:2: 'links' must be a list of document ids"),
        ((GOOD, b"{nope}\n"), "docs.jsonl:2: Expecting property name"),
        ((GOOD, b'["a"]\n'), "docs.jsonl:2: list where an object with id, title, text should be"),
        ((GOOD, b'{"id": "b", "title": "\xff"}\n'), "docs.jsonl:2: byte 22 is not UTF-8"),
        (
            (GOOD, b'{"id": "b", "title": "\\ud800", "text": "x"}\n'),
            "docs.jsonl:2: 'title' holds half a surrogate pair",
        ),
        ((b"[" * 100_000,), "docs.jsonl:1: "),
        ((), "docs.jsonl: no documents"),
        ((b"\n\n",), "docs.jsonl: no documents"),
    ],
)
def test_an_error_names_the_line_and_the_way_out(tmp_path: Path, lines: tuple[Any, ...], message: str) -> None:
    with pytest.raises(DocumentError) as raised:
        read_documents(_write(tmp_path, *lines))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_id_may_be_its_own_title(tmp_path: Path) -> None:
    assert list(read_documents(_write(tmp_path, {**ALSO_GOOD, "id": "Beta"})).documents) == ["Beta"]


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    path = _write(tmp_path, b"\xef\xbb\xbf" + json.dumps(ALSO_GOOD).encode())
    assert list(read_documents(path).documents) == ["b"]


@pytest.mark.parametrize("name", ["x" * 300 + ".jsonl", "~nouser/x.jsonl", ""])
def test_a_name_that_can_be_no_file_says_so(tmp_path: Path, name: str) -> None:
    with pytest.raises(DocumentError, match="no such file; give a"):
        load_world(name, tmp_path)


def test_a_line_longer_than_the_limit_is_refused_without_reading_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "LINE_LIMIT", 1 << 20)
    path = _write(tmp_path, GOOD, {**ALSO_GOOD, "text": "x" * (1 << 20)})
    with pytest.raises(DocumentError, match=r"docs\.jsonl:2: longer than 1 MiB; split the document"):
        read_documents(path)


def test_a_missing_file_and_a_file_that_is_no_parquet_say_so(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"no such file; give a \.jsonl or \.parquet file"):
        load_world("atlantis", tmp_path)
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(DocumentError, match=r"broken\.parquet: .*give a readable Parquet file"):
        read_documents(broken)
    pl.DataFrame([{"id": "a", "title": "b"}]).write_parquet(broken)
    with pytest.raises(DocumentError, match=r"broken\.parquet: row 1: 'text' is missing"):
        read_documents(broken)
