"""The one declared Arrow schema of every stored record, and the exact way between the two.

Nothing is inferred from rows: types are plain and nullable (`string`, `int64`, `double`, `list`, `struct`), free-form JSON is
a string column, and the `datasets` features are embedded, so that a shard whose column is all null loads like any other.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import pyarrow as pa  # type: ignore[import-untyped]

from schemas.answer import canonical_answer
from schemas.base import Record
from schemas.certificate import Certificate
from schemas.errors import TouchstoneError
from schemas.measured import Failure, Metric
from schemas.row import Candidate, Kept, Rejected
from schemas.trajectory import Trajectory

SCHEMA_VERSION = "3"
"""Raised when a column changes its name, type or meaning."""

R = TypeVar("R", bound=Record)
Row = dict[str, Any]


class SchemaError(TouchstoneError):
    """A row that its declared schema does not describe; names the field."""


class Table(Generic[R]):
    """Where records of one class are stored.

    `json` are the dotted paths of string columns that hold JSON, `optional` those that may be null. `flatten` and `restore`
    lead from a record's JSON-mode dump to a row with JSON still as values, and back; by default they are the same thing.
    """

    def __init__(
        self,
        name: str,
        record: type[R],
        fields: Mapping[str, pa.DataType],
        *,
        json: Iterable[str] = (),
        optional: Iterable[str] = (),
        flatten: Callable[[R], Row] = lambda record: record.model_dump(mode="json"),
        restore: Callable[[Row], Row] = lambda row: row,
    ) -> None:
        self.name = name
        self.record = record
        self.json = frozenset(json)
        self.optional = frozenset(optional)
        self.flatten = flatten
        self.restore = restore
        plain = pa.schema(list(fields.items()))
        features = {field.name: _feature(field.type) for field in plain}
        self.schema = plain.with_metadata({"huggingface": _dump({"info": {"features": features}})})

    def to_row(self, record: R) -> Row:
        """A dict of plain values, one a column."""
        return {name: self._encode(value, name) for name, value in self.flatten(record).items()}

    def from_row(self, row: Mapping[str, Any]) -> R:
        """The record that made `row`. Raises `SchemaError` if no record could have."""
        try:
            plain = {name: self._decode(row[name], name) for name in self.schema.names}
            return self.record.model_validate(self.restore(plain))
        except (KeyError, TypeError, ValueError) as error:
            raise SchemaError(f"{self.name} row {row.get('task_id', '')}: {error}; it was not written by us") from error

    def table(self, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
        """The rows as Arrow. Raises `SchemaError` naming the first value that the schema does not describe."""
        for i, row in enumerate(rows):
            self._check(row, pa.struct(list(self.schema)), f"{self.name} row {i}", "")
        return pa.Table.from_pylist(list(rows), schema=self.schema)

    def pack(self, records: Iterable[R]) -> pa.Table:
        return self.table([self.to_row(record) for record in records])

    def check(self, table: pa.Table) -> None:
        """Raises `SchemaError` naming the first column that is missing, unknown, of another type, or null where none may be."""
        declared, given = dict(zip(self.schema.names, self.schema.types, strict=True)), table.schema
        for name in [*declared, *given.names]:
            has = given.field(name).type if name in given.names else "nothing"
            wants = declared.get(name, "nothing")
            if has != wants:
                raise SchemaError(
                    f"{self.name} column {name}: has {has}, schema version {SCHEMA_VERSION} has {wants}; "
                    "use the version that wrote it"
                )
            if name not in self.optional and table[name].null_count:
                raise SchemaError(
                    f"{self.name} column {name}: has nulls, and a row always has one; leave such rows out"
                )

    def unpack(self, table: pa.Table) -> list[R]:
        """Raises `SchemaError` if the columns are not exactly the declared ones."""
        self.check(table)
        return [self.from_row(row) for row in table.to_pylist()]

    def _encode(self, value: Any, path: str) -> Any:
        if path in self.json:
            return None if value is None else _dump(value)
        if isinstance(value, dict):
            return {key: self._encode(item, f"{path}.{key}") for key, item in value.items()}
        return [self._encode(item, path) for item in value] if isinstance(value, list) else value

    def _decode(self, value: Any, path: str) -> Any:
        if path in self.json:
            return None if value is None else json.loads(value)
        if isinstance(value, dict):
            return {key: self._decode(item, f"{path}.{key}") for key, item in value.items()}
        return [self._decode(item, path) for item in value] if isinstance(value, list) else value

    def _check(self, value: Any, type: pa.DataType, where: str, path: str) -> None:
        """`where` is for people and has list positions; `path` is for `optional` and has none."""
        if value is None:
            if path not in self.optional:
                raise SchemaError(f"{where}=null: {path} always has a value; leave the row out or fill it in")
        elif pa.types.is_struct(type):
            names = [field.name for field in type]
            if not isinstance(value, Mapping) or sorted(value) != sorted(names):
                given = ", ".join(sorted(value)) if isinstance(value, Mapping) else repr(value)
                raise SchemaError(f"{where}: has {given}, the schema has {', '.join(sorted(names))}; match them")
            for field in type:
                inner = f"{path}.{field.name}" if path else field.name
                self._check(
                    value[field.name], field.type, f"{where}, {inner}" if not path else f"{where}.{field.name}", inner
                )
        elif pa.types.is_list(type):
            if not isinstance(value, list | tuple):
                raise SchemaError(f"{where}={value!r}: not a {type}; give a list")
            if not _are_numbers(value, type.value_type):
                for i, item in enumerate(value):
                    self._check(item, type.value_type, f"{where}[{i}]", path)
        elif not _fits(value, type):
            raise SchemaError(f"{where}={value!r}: not a {type}; convert it before it is written")


def _are_numbers(values: Sequence[Any], wanted: pa.DataType) -> bool:
    """Whether every one plainly fits a column of numbers, told at once: one by one, the tokens of a step take seconds."""
    if not values:
        return True
    kinds = set(map(type, values))
    if pa.types.is_int64(wanted):
        return kinds == {int} and min(values) >= -(2**63) and max(values) < 2**63
    return pa.types.is_float64(wanted) and kinds == {float} and all(map(math.isfinite, values))


def _fits(value: Any, type: pa.DataType) -> bool:
    if pa.types.is_string(type):
        return isinstance(value, str) and _is_utf8(value)
    if pa.types.is_int64(type):
        return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _dump(value: Any) -> str:
    """JSON in the order it has: arguments of a tool call stay as the policy wrote them."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _feature(type: pa.DataType) -> Any:
    """The `datasets` feature of a type. A list is spelt `[inner]`, which every version of the library reads."""
    if pa.types.is_struct(type):
        return {field.name: _feature(field.type) for field in type}
    if pa.types.is_list(type):
        return [_feature(type.value_type)]
    return {"_type": "Value", "dtype": {"double": "float64"}.get(str(type), str(type))}


def _struct(**fields: pa.DataType) -> pa.DataType:
    return pa.struct(list(fields.items()))


TEXT, INT, FLOAT, TEXTS = pa.string(), pa.int64(), pa.float64(), pa.list_(pa.string())

_TASK: dict[str, pa.DataType] = {
    "task_id": TEXT,
    "family": TEXT,
    "stratum": TEXT,
    "question": TEXT,
    "answer": TEXT,
    "answer_spec": TEXT,
    "tools": TEXTS,
    "evidence": pa.list_(_struct(document=TEXT, document_hash=TEXT, start=INT, end=INT, quote=TEXT)),
    "constraints": TEXT,
    "near_misses": pa.list_(_struct(answer=TEXT, why=TEXT)),
    "difficulty": pa.list_(
        _struct(
            solver=TEXT, arm=TEXT, n=INT, correct=INT, truncated=INT, undecided=INT,
            prior_a=FLOAT, prior_b=FLOAT, seeds=pa.list_(INT),
        )
    ),
    "lineage": _struct(generator=TEXT, version=TEXT, seed=INT, index=INT, knobs=TEXT, world=TEXT, calls=TEXTS),
}  # fmt: skip
_TASK_JSON = ("answer_spec", "constraints", "lineage.knobs")


def _flatten_task(record: Kept | Rejected) -> Row:
    """The task's own fields beside the others; its gold as canonical text and as spec."""
    dump = record.model_dump(mode="json")
    task = dump.pop("task")
    return {**task, "answer": canonical_answer(record.task.answer), "answer_spec": task["answer"], **dump}


def _restore_task(row: Row) -> Row:
    rest = {name: value for name, value in row.items() if name not in _TASK or name == "difficulty"}
    task = {name: value for name, value in row.items() if name not in rest and name != "answer_spec"}
    return {"task": {**task, "answer": row["answer_spec"]}, **rest}


KEPT = Table("task", Kept, _TASK, json=_TASK_JSON, flatten=_flatten_task, restore=_restore_task)

REJECTED = Table(
    "rejected",
    Rejected,
    {**_TASK, "filter": TEXT, "outcome": TEXT, "reason": TEXT},
    json=_TASK_JSON,
    flatten=_flatten_task,
    restore=_restore_task,
)

CANDIDATES = Table(
    "candidate", Candidate, {"index": INT, "task": TEXT, "miss": TEXT}, json=("task",), optional=("task",)
)

CERTIFICATES = Table(
    "certificate",
    Certificate,
    {
        "task_id": TEXT,
        "filter": TEXT,
        "version": TEXT,
        "outcome": TEXT,
        "reason": TEXT,
        "score": FLOAT,
        "interval": pa.list_(FLOAT),
        "n": INT,
        "cost": INT,
        "calls": TEXTS,
        "detail": TEXT,
    },
    json=("detail",),
    optional=("score", "interval"),
)

ATTEMPTS = Table(
    "attempt",
    Trajectory,
    {
        "task_id": TEXT,
        "solver": TEXT,
        "arm": TEXT,
        "seed": INT,
        "turns": pa.list_(
            _struct(
                prompt_tokens=INT,
                segment=INT,
                shown_ids=pa.list_(INT),
                output_ids=pa.list_(INT),
                logprobs=pa.list_(FLOAT),
                text=TEXT,
                version=TEXT,
                call_id=TEXT,
                tool_calls=pa.list_(_struct(name=TEXT, arguments=TEXT)),
                observation=TEXT,
                fault=TEXT,
            )
        ),
        "stop": TEXT,
        "answer": TEXT,
        "error": TEXT,
        "tokens": INT,
    },
    json=("turns.tool_calls.arguments",),
    optional=("turns.observation", "answer"),
)

METRICS = Table(
    "metric",
    Metric,
    {"step": INT, "seconds": FLOAT, "name": TEXT, "population": TEXT, "value": FLOAT},
    optional=("value",),
)

FAILURES = Table(
    "failure",
    Failure,
    {
        "stratum": TEXT,
        "epoch": INT,
        "version": TEXT,
        "outcome": TEXT,
        "n": INT,
        "read": INT,
        **dict.fromkeys(("turns", "tokens", "seconds", "failed_at", "clues_met", "unread"), FLOAT),
        "calls": TEXT,
        "uncalled": TEXT,
        "pass_a": FLOAT,
        "pass_b": FLOAT,
    },
    json=("calls", "uncalled"),
    optional=("failed_at", "clues_met"),
)
