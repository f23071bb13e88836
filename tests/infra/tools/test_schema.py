"""Schemas and arguments as somebody hostile would write them."""

import sys
import time
from typing import Any

import pytest

from infra.tools.base import ToolDown
from infra.tools.schema import UnusableSchema, plain, satisfies
from infra.tools.sessions import McpTools
from schemas.episode import ToolOptions, ToolServer

DOUBLED: dict[str, Any] = {
    "$defs": {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(30)} | {"d30": {}},
    "$ref": "#/$defs/d0",
}
SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        given = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                 "serverInfo": {"name": "evil", "version": "1"}}
    elif asked.get("method") == "tools/list":
        given = {"tools": [{"name": "t", "inputSchema": json.loads(sys.argv[1])}]}
    else:
        given = {}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": given}), flush=True)
"""


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "foo"}, "foo"),
        ({"properties": {"x": {"pattern": "("}}}, "regex"),
        ({"$ref": "#"}, "refers to itself"),
        ({"properties": {"x": {"$ref": "#"}}}, "refers to itself"),
        ({"$ref": "#/nope"}, "refers to #/nope, which is not in it"),
        ({"$ref": "http://127.0.0.1:1/s.json"}, "refers to http://127.0.0.1:1/s.json, which is not in it"),
        ({"$ref": "file:///etc/passwd"}, "which is not in it"),
        ({"$ref": "#/required", "required": ["x"]}, "which is no schema"),
        ({"$dynamicRef": "#x"}, "uses"),
        ({"description": "x" * 200_000}, "characters"),
        (DOUBLED, "parts"),
    ],
)
def test_a_schema_that_cannot_be_judged_by_is_refused_with_its_tool(schema: dict[str, Any], why: str) -> None:
    began = time.monotonic()
    with pytest.raises(UnusableSchema, match=r"^tool t: its schema .*" + why):
        plain("t", schema)
    assert time.monotonic() - began < 1


@pytest.mark.parametrize(
    ("x", "value"),
    [
        ({"pattern": "(a+)+$"}, "a" * 40 + "b"),
        ({"uniqueItems": True}, [{"a": i} for i in range(5000)]),
        ({"not": {"pattern": "a"}}, "b"),
        ({"oneOf": [{"pattern": "a"}, {"pattern": "b"}]}, "b"),
        ({"patternProperties": {"a": {}}, "additionalProperties": False}, {"a": 1}),
        ({"$ref": "#/$defs/a~1b"}, 1),
    ],
)
def test_what_takes_long_is_left_to_the_server_and_nothing_that_it_takes_is_refused(x: Any, value: Any) -> None:
    began = time.monotonic()
    assert satisfies("t", {"properties": {"x": x}, "$defs": {"a/b": {"type": "integer"}}}, {"x": value})
    assert time.monotonic() - began < 1


def test_arguments_that_cannot_be_judged_or_break_the_schema_do_not_satisfy_it() -> None:
    assert not satisfies("t", {"properties": {"x": {"multipleOf": 0.1}}}, {"x": 10**400})
    assert not satisfies(
        "t", {"properties": {"pattern": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "null"}}}, {"pattern": 1}
    )
    assert not satisfies("t", {"properties": {}, "additionalProperties": False}, {"x": 1})


async def test_a_server_with_such_a_schema_is_down_and_its_tool_is_named() -> None:
    server = ToolServer(name="evil", command=(sys.executable, "-c", SERVER, '{"type": "object", "$ref": "#"}'))
    with pytest.raises(ToolDown, match=r"(?s)^evil: .*tool t: its schema refers to itself by #"):
        async with McpTools(ToolOptions(servers=(server,))):
            pass
