"""A user's file of a benchmark: CSV, TSV, JSON lines or Parquet, told apart by what is in it."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from pipeline.benchmarks import FORMATS, Format
from pipeline.benchmarks.base import Item, Skip
from schemas.base import content_hash, unique_keys
from schemas.errors import TouchstoneError
from schemas.query import Problem
from schemas.task import Lineage, Task

VERSION = "1"


class BenchmarkError(TouchstoneError):
    """A file that is no benchmark we know, or that cannot be read."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """`rows` of the file are the tasks and those that were `skipped`, by reason. `name` is the format and a hash of the file."""

    name: str
    rows: int
    tasks: tuple[Task, ...]
    skipped: dict[str, int]


def read(path: Path, tools: Sequence[str], format: str | None = None) -> Benchmark:
    """Every row of the file as a task with these tools, or counted as skipped.

    Without `format` the columns tell it. Raises `BenchmarkError`, also where no row is a task.
    """
    if format is not None and format not in FORMATS:
        raise BenchmarkError(f"format={format}: is unknown; the formats are {', '.join(FORMATS)}")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BenchmarkError(f"{path}: cannot be read ({error}); correct its name") from error
    rows, columns = _table(path, data)
    chosen = _format(path, columns, format)
    digest = hashlib.sha256(data).hexdigest()[:12]
    tasks, skipped = [], Counter[str]()
    seen: set[str] = set()
    for index, row in enumerate(rows):
        try:
            item = chosen.read(row)
            id = item.id or content_hash([item.question, item.gold.model_dump(mode="json")])
            if not item.question:
                raise Skip("empty_question")
            if id in seen:
                raise Skip("duplicate_id")
        except Skip as reason:
            skipped[str(reason)] += 1
            continue
        seen.add(id)
        tasks.append(_task(chosen.name, item, id, index, digest, tools))
    if not tasks:
        raise BenchmarkError(
            f"{path}: none of {len(rows)} rows is a task ({_reasons(skipped)}); give a file as published"
        )
    return Benchmark(f"{chosen.name}/{digest}", len(rows), tuple(tasks), dict(skipped))


def _task(name: str, item: Item, id: str, index: int, digest: str, tools: Sequence[str]) -> Task:
    return Task.create(
        family="benchmark",
        stratum=f"{name}/{item.category}/{item.gold.kind}",
        question=item.question,
        answer=item.gold,
        tools=tuple(tools),
        constraints=Problem(template=name, parameters={"id": id}),
        lineage=Lineage(generator=f"benchmark/{name}", version=VERSION, seed=0, index=index, knobs={"file": digest}),
    )


def _format(path: Path, columns: frozenset[str], named: str | None) -> Format:
    has = f"has the columns {', '.join(sorted(columns)) or 'of no table'}"
    if named is not None:
        if missing := FORMATS[named].columns - columns:
            raise BenchmarkError(f"{path}: {has}; {named} needs {', '.join(sorted(missing))} too, name another format")
        return FORMATS[named]
    fitting = [format for format in FORMATS.values() if format.columns <= columns]
    if len(fitting) != 1:
        known = "; ".join(f"{name}: {', '.join(sorted(format.columns))}" for name, format in FORMATS.items())
        fits = f"fits {' and '.join(format.name for format in fitting)}" if fitting else "fits no known format"
        raise BenchmarkError(f"{path}: {has} and {fits}; name one with --format ({known})")
    return fitting[0]


def _table(path: Path, data: bytes) -> tuple[list[dict[str, Any]], frozenset[str]]:
    try:
        if data.startswith(b"PAR1"):
            frame = pl.read_parquet(data)
            return frame.to_dicts(), frozenset(frame.columns)
        plain = data.decode("utf-8-sig")
        if plain.lstrip().startswith("{"):
            rows = list(_json_lines(plain))
            return rows, frozenset(rows[0])
        separator = "\t" if "\t" in plain.split("\n", 1)[0] else ","
        frame = pl.read_csv(plain.encode(), separator=separator, infer_schema=False)
        return frame.to_dicts(), frozenset(frame.columns)
    except (PolarsError, ValueError, RecursionError) as error:
        said = str(error).split("\n")[0]
        raise BenchmarkError(
            f"{path}: cannot be read as CSV, TSV, JSON lines or Parquet ({said}); give the file as published"
        ) from error


def _json_lines(plain: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(plain.split("\n"), 1):
        if line.strip():
            try:
                row = json.loads(line, object_pairs_hook=unique_keys)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"line {number}: {error}") from error
            if not isinstance(row, dict):
                raise ValueError(f"line {number}: is no object")
            yield row


def _reasons(skipped: Counter[str]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in skipped.most_common()) or "it is empty"
