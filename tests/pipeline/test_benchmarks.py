"""Files of published benchmarks, with rows made up here: every row is a task or counted, and golds are typed or left out."""

import base64
import csv
import io
import json
from itertools import cycle
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.benchmarks import FORMATS
from pipeline.benchmarks.base import Skip, gold
from pipeline.benchmarks.files import Benchmark, BenchmarkError
from pipeline.benchmarks.files import read as read_file
from pipeline.grading import grade
from schemas.answer import AnswerSpec, DateAnswer, EntityAnswer, NumberAnswer, canonical_answer

Rows = list[dict[str, Any]]
TOOLS = ("search", "open")


def hidden(plain: str, canary: str) -> str:
    return base64.b64encode(bytes(b ^ k for b, k in zip(plain.encode(), cycle(canary.encode()), strict=False))).decode()


META = "{'topic': 'Geography', 'answer_type': 'Place', 'urls': ['https://a.example/b', \"https://c.example\"]}"
ROWS: dict[str, Rows] = {
    "simpleqa": [
        {"metadata": META, "problem": 'Which town has "the\nold mill"?', "answer": "Ober-Mühlen"},
        {"metadata": "not python", "problem": "In which year was the mill built?", "answer": "1742"},
        {"metadata": META, "problem": "When did it burn?", "answer": "March 3, 1801"},
        {"metadata": META, "problem": "Who asked?", "answer": ""},
        {"metadata": META, "problem": "In which year was the mill built?", "answer": "1742"},
    ],
    "frames": [
        {"": "0", "Prompt": "How many bells?", "Answer": "1,204", "reasoning_types": "Tabular reasoning | Numerical"},
        {"": "1", "Prompt": "Why?", "Answer": "Because " + "word " * 20, "reasoning_types": "Temporal"},
    ],
    "hle": [
        {"id": "a", "question": "Pick", "image": "", "answer": "C", "answer_type": "multipleChoice", "category": "Bio"},
        {"id": "b", "question": "Which name?", "image": None, "answer": "Ann", "answer_type": "exactMatch", "category": "Bio"},
        {"id": "b", "question": "Other?", "image": "", "answer": "Ben", "answer_type": "exactMatch", "category": "Bio"},
        {"id": "c", "question": "See", "image": "data:;base64,AA", "answer": "A", "answer_type": "multipleChoice", "category": "Art"},
        {"id": "d", "question": "Derive", "image": "", "answer": "$x^2 - y$", "answer_type": "exactMatch", "category": "Math"},
        {"id": "e", "question": "Pick", "image": "", "answer": "A or B", "answer_type": "multipleChoice", "category": "Math"},
    ],
    "xbench": [
        {"id": "1", "prompt": hidden("哪一年?", "key-1"), "answer": hidden("1999", "key-1"), "reference_steps": "x", "canary": "key-1"},
        {"id": "2", "prompt": hidden("谁?", "key-1"), "answer": hidden("张三", "key-1"), "reference_steps": "x", "canary": "other"},
        {"id": "3", "prompt": "Who, in plain text?", "answer": "Zed", "reference_steps": "x", "canary": "key-1"},
    ],
    "seal0": [
        {"question": "Who won the cup of no land?", "answer": "Team Nil", "freshness": "slow-changing", "topic": "Sports"},
        {"question": " ", "answer": "None", "freshness": "never-changing", "topic": "Other"},
    ],
}  # fmt: skip
SKIPPED: dict[str, dict[str, int]] = {
    "simpleqa": {"empty_answer": 1, "duplicate_id": 1},
    "frames": {"prose": 1},
    "hle": {"duplicate_id": 1, "image": 1, "formula": 1, "no_letter": 1},
    "xbench": {"wrong_canary": 2},
    "seal0": {"empty_question": 1},
}
STRATA = {
    "simpleqa": ["simpleqa/Geography/entity", "simpleqa/all/number", "simpleqa/Geography/date"],
    "frames": ["frames/Numerical+Tabular reasoning/number"],
    "hle": ["hle/Bio multipleChoice/entity", "hle/Bio exactMatch/entity"],
    "xbench": ["xbench/all/number"],
    "seal0": ["seal0/slow-changing/entity"],
}


def delimited(rows: Rows, separator: str) -> bytes:
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, list(rows[0]), delimiter=separator)
    writer.writeheader()
    writer.writerows(rows)
    return b"\xef\xbb\xbf" + file.getvalue().encode()


def written(kind: str, rows: Rows, path: Path) -> Path:
    match kind:
        case "csv":
            path.write_bytes(delimited(rows, ","))
        case "tsv":
            path.write_bytes(delimited(rows, "\t"))
        case "jsonl":
            path.write_text("\n".join(json.dumps(row) for row in rows) + "\n", "utf-8-sig")
        case "parquet":
            pl.DataFrame(rows).write_parquet(path)
    return path


def read(path: Path, format: str | None = None) -> Benchmark:
    return read_file(path, TOOLS, format)


def test_every_format_has_rows_here() -> None:
    assert set(ROWS) == set(FORMATS)


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
@pytest.mark.parametrize("name", FORMATS)
def test_a_file_is_told_by_its_content_and_its_columns_and_every_row_is_accounted_for(
    name: str, kind: str, tmp_path: Path
) -> None:
    """The name of the file says nothing; a BOM, quotes and line breaks in cells are no part of what they surround."""
    found = read(written(kind, ROWS[name], tmp_path / "file"))
    assert found.name.startswith(f"{name}/")
    assert found.skipped == SKIPPED[name]
    assert found.rows == len(ROWS[name]) == len(found.tasks) + sum(found.skipped.values())
    assert [task.stratum for task in found.tasks] == STRATA[name]
    assert {(task.family, task.tools) for task in found.tasks} == {("benchmark", TOOLS)}


def test_a_stored_answer_grades_right_and_its_question_is_whole(tmp_path: Path) -> None:
    for name, rows in ROWS.items():
        for task in read(written("csv", rows, tmp_path / name)).tasks:
            assert grade(task.answer, canonical_answer(task.answer)).verdict == "right"
    questions = [task.question for task in read(tmp_path / "simpleqa").tasks]
    assert questions[0] == 'Which town has "the\nold mill"?'
    assert [task.question for task in read(tmp_path / "xbench").tasks] == ["哪一年?"]


def test_equal_rows_are_equal_tasks_in_any_container(tmp_path: Path) -> None:
    one, other = (read(written(kind, ROWS["hle"], tmp_path / kind)).tasks for kind in ("csv", "parquet"))
    assert [task.task_id for task in one] == [task.task_id for task in other]


@pytest.mark.parametrize(
    ("answer", "spec"),
    [
        ("1742", NumberAnswer(value="1742")),
        ("1,204", NumberAnswer(value="1204")),
        ("3.5 million", NumberAnswer(value="3500000")),
        ("0.25", NumberAnswer(value="1/4")),
        ("12 March 1879", DateAnswer(value="1879-03-12")),
        ("1879-03", DateAnswer(value="1879-03")),
        ("44 BC", DateAnswer(value="-0043")),
        ("03/04/1879", EntityAnswer(entity="03/04/1879", name="03/04/1879")),
        ("120 km", EntityAnswer(entity="120 km", name="120 km")),
        ("Ann, then Ben", EntityAnswer(entity="Ann, then Ben", name="Ann, then Ben")),
    ],
)
def test_a_gold_is_what_it_wholly_is_and_otherwise_a_name(answer: str, spec: AnswerSpec) -> None:
    assert gold(answer) == spec


@pytest.mark.parametrize(
    ("answer", "reason"),
    [("", "empty_answer"), ("x^2 - y", "formula"), (r"\sqrt{2}", "formula"), ("one " * 13, "prose"), ("1e9999", "number_too_long")],
)  # fmt: skip
def test_what_no_rule_can_grade_is_skipped_with_the_reason(answer: str, reason: str) -> None:
    with pytest.raises(Skip, match=reason):
        gold(answer)


def test_unknown_columns_are_named_beside_the_known_formats(tmp_path: Path) -> None:
    path = written("csv", [{"q": "Who?", "a": "Ann"}], tmp_path / "x.csv")
    with pytest.raises(
        BenchmarkError, match=r"has the columns a, q and fits no known format.*simpleqa: answer, meta.*seal0"
    ):
        read(path)


def test_a_named_format_says_which_column_is_missing(tmp_path: Path) -> None:
    path = written("csv", [{"problem": "Who?", "metadata": "{}"}], tmp_path / "x.csv")
    with pytest.raises(BenchmarkError, match="simpleqa needs answer too"):
        read(path, "simpleqa")
    with pytest.raises(BenchmarkError, match="format=quiz: is unknown; the formats are simpleqa, frames"):
        read(path, "quiz")


def test_columns_of_two_formats_are_told_apart_by_name_only(tmp_path: Path) -> None:
    path = written("csv", [{**ROWS["seal0"][0], **ROWS["hle"][0]}], tmp_path / "x.csv")
    with pytest.raises(BenchmarkError, match="fits hle and seal0; name one with --format"):
        read(path)
    assert read(path, "hle").name.startswith("hle/")


def test_a_file_without_a_task_says_why(tmp_path: Path) -> None:
    rows = [{**row, "canary": "wrong"} for row in ROWS["xbench"]]
    with pytest.raises(BenchmarkError, match=r"none of 3 rows is a task \(wrong_canary 3\)"):
        read(written("csv", rows, tmp_path / "x.csv"))


@pytest.mark.parametrize(
    "data", [b"", b"\x00\xff\xfe", b"PAR1 and no more", b'{"question": 1}\n[2]', b'{"a": 1, "a": 2}']
)
def test_what_is_no_table_is_one_error(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(BenchmarkError, match="cannot be read as CSV, TSV, JSON lines or Parquet"):
        read(path)


def test_half_a_character_is_no_text(tmp_path: Path) -> None:
    rows = [*ROWS["seal0"], {"question": "\ud800?", "answer": "Ann", "freshness": "x"}]
    assert read(written("jsonl", rows, tmp_path / "x")).skipped == {"empty_question": 1, "no_text": 1}
