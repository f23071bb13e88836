"""Schemas of tools that somebody else wrote, and arguments that a policy wrote, judged in little time.

Of a schema only `plain` is judged: its own text without references and without what takes long (patterns, uniqueness) or
what leaving that out would turn round (`not`, `if`). So a call that a server would refuse may pass; none is refused
that the server would take. The server judges by all of it.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from jsonschema.exceptions import SchemaError  # type: ignore[import-untyped]

from infra.tools.base import Schema
from schemas.errors import TouchstoneError

MOST_CHARS = 100_000
"""Of a schema, and of the arguments of a call, as JSON."""
_MOST_PARTS = 5_000
"""Schemas within one, those that are referred to counted each time."""

_KEPT = (
    *("type", "enum", "const", "required", "dependentRequired", "multipleOf", "minimum", "maximum", "exclusiveMinimum"),
    *("exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
)
_ONE = ("items", "additionalProperties", "propertyNames")


class UnusableSchema(TouchstoneError):
    """A tool's schema that its arguments cannot be judged by."""


def plain(name: str, schema: Schema) -> dict[str, Any]:
    """What of the schema of tool `name` is judged here. Raises `UnusableSchema`."""
    try:
        size = len(json.dumps(schema))
        if size > MOST_CHARS:
            raise _Unusable(f"takes {size} of at most {MOST_CHARS} characters")
        Draft202012Validator.check_schema(schema)
        made: dict[str, Any] = _Plain(schema).part(schema, ())
        return made
    except (_Unusable, SchemaError, ValueError, RecursionError) as error:
        why = error.message if isinstance(error, SchemaError) else str(error)
        raise UnusableSchema(
            f"tool {name[:100]}: its schema {why[:300]}; correct it, or leave its server out"
        ) from None


def satisfies(name: str, schema: Schema, arguments: Mapping[str, Any]) -> bool:
    """Whether arguments are what the plain schema asks for. What cannot be judged does not."""
    try:
        return bool(_judge(name, json.dumps(schema)).is_valid(arguments))
    except (UnusableSchema, ArithmeticError, RecursionError, ValueError):  # a number of 400 digits is no float
        return False


@lru_cache(maxsize=1024)
def _judge(name: str, schema: str) -> Draft202012Validator:
    """By the schema's text: a policy calls the same few tools over and over."""
    return Draft202012Validator(plain(name, json.loads(schema)))


class _Unusable(Exception):
    pass


class _Plain:
    def __init__(self, root: Schema) -> None:
        self._root, self._parts = root, 0

    def part(self, schema: Any, within: tuple[str, ...]) -> Any:
        """`within`: the references that led here."""
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise _Unusable(f"has more than {_MOST_PARTS} parts")
        if not isinstance(schema, Mapping):
            return schema
        made: dict[str, Any] = {key: schema[key] for key in _KEPT if key in schema}
        for key in _ONE:
            if key in schema and not (key == "additionalProperties" and "patternProperties" in schema):
                made[key] = self.part(schema[key], within)
        if "properties" in schema:
            made["properties"] = {key: self.part(value, within) for key, value in schema["properties"].items()}
        every = [{"anyOf": [self.part(one, within) for one in schema["oneOf"]]}] if "oneOf" in schema else []
        for key in ("anyOf", "prefixItems"):
            if key in schema:
                made[key] = [self.part(one, within) for one in schema[key]]
        every += [self.part(one, within) for one in schema.get("allOf", ())]
        if unknown := {"$dynamicRef", "$recursiveRef"} & schema.keys():
            raise _Unusable(f"uses {min(unknown)}")
        if (ref := schema.get("$ref")) is not None:
            if ref in within:
                raise _Unusable(f"refers to itself by {ref}")
            every.append(self.part(self._at(ref), (*within, ref)))
        return made | ({"allOf": every} if every else {})

    def _at(self, ref: str) -> Any:
        if ref != "#" and not ref.startswith("#/"):
            raise _Unusable(f"refers to {ref}, which is not in it")
        found: Any = self._root
        for step in ref.split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or key not in found:
                raise _Unusable(f"refers to {ref}, which is not in it")
            found = found[key]
        if not isinstance(found, Mapping | bool):
            raise _Unusable(f"refers to {ref}, which is no schema")
        return found
