"""The base of every record, and the one way to hash content."""

import hashlib
import json
from collections import Counter
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator


class Record(BaseModel):
    """A frozen value. Unknown keys are refused, so a typo in a file is an error and not a default."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Options(Record):
    """A record that a user writes: an unknown key is answered with the known ones."""

    @model_validator(mode="before")
    @classmethod
    def _only_known_keys(cls, given: Any) -> Any:
        for key in given if isinstance(given, dict) else ():
            if key not in cls.model_fields:
                raise ValueError(f"{key}: is no setting here; the settings are {', '.join(cls.model_fields)}")
        return given


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For `json.loads(..., object_pairs_hook=unique_keys)`: two readers of `{"a": 1, "a": 2}` may see two things."""
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        raise ValueError(f"the key {twice!r} is written twice")
    return found


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal bytes on every machine."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def content_hash(value: Any, length: int = 16) -> str:
    """The first `length` hex digits of the SHA-256 of `canonical_json(value)`."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:length]
