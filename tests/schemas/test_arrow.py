"""Rows lose nothing on the way to Parquet and back, and every shard of a table looks the same to a loader."""

import json
import random

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.arrow import ATTEMPTS, CANDIDATES, CERTIFICATES, FAILURES, KEPT, METRICS, REJECTED, SchemaError
from schemas.base import canonical_json
from schemas.trajectory import StopReason, ToolCall, Trajectory, Turn
from tests.schemas import strategies

TABLES = [
    (KEPT, strategies.kept),
    (REJECTED, strategies.rejected),
    (CANDIDATES, strategies.candidates),
    (CERTIFICATES, strategies.certificates),
    (ATTEMPTS, strategies.attempts),
    (METRICS, strategies.metrics),
    (FAILURES, strategies.failures),
]
tables = pytest.mark.parametrize(("table", "records"), TABLES, ids=[table.name for table, _ in TABLES])
slow_data = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@tables
def test_a_record_comes_back_from_parquet_exactly(table, records, tmp_path_factory):
    path = tmp_path_factory.mktemp("shard") / "a.parquet"

    @slow_data
    @given(st.lists(records, max_size=4))
    def check(batch):
        pq.write_table(table.pack(batch), path)
        back = table.unpack(pq.read_table(path))
        assert back == batch
        assert [json.dumps(r.model_dump(mode="json")) for r in back] == [
            json.dumps(r.model_dump(mode="json")) for r in batch
        ]

    check()


@tables
def test_embedded_features_are_what_datasets_reads_from_the_types(table, records):
    plain = table.schema.remove_metadata()
    assert datasets.Features.from_arrow_schema(table.schema) == datasets.Features.from_arrow_schema(plain)
    assert datasets.Features.from_arrow_schema(table.schema).arrow_schema.remove_metadata() == plain


@tables
def test_every_column_is_plain_and_nullable(table, records):
    def walk(field):
        assert field.nullable
        if pa.types.is_struct(field.type):
            for inner in field.type:
                walk(inner)
        elif pa.types.is_list(field.type):
            walk(field.type.value_field)
        else:
            assert field.type in (pa.string(), pa.int64(), pa.float64())

    for field in table.schema:
        walk(field)


def attempt(arguments=(), observation=None, answer=None):
    calls = tuple(ToolCall(name="open", arguments=a) for a in arguments)
    turn = Turn(prompt_tokens=3, text="t", version="v", call_id="c", tool_calls=calls, observation=observation)
    stop = StopReason.ANSWERED if answer else StopReason.NO_ANSWER
    return Trajectory(task_id="t", solver="s", arm="tools", seed=1, turns=(turn,), stop=stop, answer=answer)


def test_shards_with_all_null_or_empty_columns_load_in_any_order(tmp_path):
    """No shard here has a value in all columns: `answer` and `observation` are null, lists are empty, somewhere."""
    shards = [[attempt()], [attempt([{}], "seen", "Niger")], [attempt([{"query": "x"}])], [attempt([], "o")]]
    files = []
    for i, shard in enumerate(shards):
        pq.write_table(ATTEMPTS.pack(shard), tmp_path / f"{i}.parquet")
        files.append(tmp_path / f"{i}.parquet")
    expected = sorted(canonical_json(ATTEMPTS.to_row(a)) for shard in shards for a in shard)
    for seed in range(6):
        random.Random(seed).shuffle(files)
        for streaming in (False, True):
            loaded = datasets.load_dataset(
                "parquet",
                data_files=[str(file) for file in files],
                split="train",
                streaming=streaming,
                cache_dir=str(tmp_path / "hf"),
            )
            assert sorted(canonical_json(row) for row in loaded) == expected


def test_a_replayed_tool_call_has_exactly_the_keys_it_was_written_with():
    calls = [{"query": "x"}, {"url": "u", "page": 2}, {}, {"page": 1, "id": "b"}]
    (back,) = ATTEMPTS.unpack(ATTEMPTS.pack([attempt(calls)]))
    assert [json.dumps(c.arguments) for c in back.turns[0].tool_calls] == [json.dumps(c) for c in calls]


CERTIFICATE = {
    "task_id": "a", "filter": "f", "version": "1", "outcome": "keep", "reason": "", "score": None,
    "interval": None, "n": 0, "cost": 0, "calls": [], "detail": "{}",
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"n": 1.5}, "n=1.5: not a int64"),
        ({"n": True}, "n=True"),
        ({"n": 2**63}, "n=9223372036854775808"),
        ({"n": None}, "n=null"),
        ({"score": "0.5"}, "score='0.5': not a double"),
        ({"score": float("nan")}, "score=nan"),
        ({"interval": [0.1, "x"]}, "interval[1]='x'"),
        ({"interval": [0.1, float("inf")]}, "interval[1]=inf"),
        ({"calls": "abc"}, "calls='abc'"),
        ({"reason": "\ud800"}, "reason="),
        ({"extra": 1}, "extra"),
    ],
)
def test_a_row_off_the_schema_is_refused_and_the_field_named(change, named):
    with pytest.raises(SchemaError) as error:
        CERTIFICATES.table([CERTIFICATE, {**CERTIFICATE, **change}])
    assert "certificate row 1" in str(error.value) and named in str(error.value)


def test_a_missing_column_is_refused():
    with pytest.raises(SchemaError, match=r"the schema has .*reason"):
        CERTIFICATES.table([{k: v for k, v in CERTIFICATE.items() if k != "reason"}])


def test_a_nested_value_off_the_schema_is_named_with_its_place():
    row = ATTEMPTS.to_row(attempt([{}]))
    row["turns"][0]["tool_calls"][0]["name"] = 7
    with pytest.raises(SchemaError, match=r"attempt row 0, turns\[0\]\.tool_calls\[0\]\.name=7"):
        ATTEMPTS.table([row])


@pytest.mark.parametrize("token", [True, 2**63, -(2**63) - 1, 1.0, None])
def test_a_token_that_is_no_int64_is_named_with_its_place(token):
    row = ATTEMPTS.to_row(attempt([{}]))
    row["turns"][0]["output_ids"] = [1, token, 2]
    with pytest.raises(SchemaError, match=r"turns\[0\]\.output_ids\[1\]="):
        ATTEMPTS.table([row])


def test_a_table_with_other_columns_is_not_read():
    other = CERTIFICATES.table([CERTIFICATE]).drop_columns(["detail"])
    with pytest.raises(SchemaError, match="column detail: has nothing, schema version 3 has string"):
        CERTIFICATES.unpack(other)
    wide = CERTIFICATES.table([CERTIFICATE]).append_column("more", pa.array([1]))
    with pytest.raises(SchemaError, match="column more: has int64"):
        CERTIFICATES.check(wide)
    null = pa.table({"index": [1], "task": pa.array([None], pa.string()), "miss": pa.array([None], pa.string())})
    with pytest.raises(SchemaError, match="candidate column miss: has nulls"):
        CANDIDATES.check(null)


def test_a_row_changed_after_it_was_made_is_not_read():
    @settings(max_examples=5, deadline=None)
    @given(strategies.kept)
    def check(record):
        row = {**KEPT.to_row(record), "question": record.task.question + "?"}
        with pytest.raises(SchemaError, match="changed after it was made"):
            KEPT.from_row(row)

    check()
