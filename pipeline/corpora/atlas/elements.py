"""The chemical elements, from the database that `mendeleev` ships."""

import sqlite3
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

from pipeline.corpora.atlas.draft import Draft, slug

CREDIT_DISPUTED = frozenset(["He", "V", "Nd", "No", "Lr", "Rf", "Db", "Sg", "Bh", "Lv", "Ts"])
"""Discoveries that are claimed twice, or dated wrongly in the source."""
_LATTICES = {
    "BCC": "body-centered cubic", "CUB": "cubic", "DIA": "diamond cubic", "FCC": "face-centered cubic", "HEX": "hexagonal",
    "MCL": "monoclinic", "ORC": "orthorhombic", "RHL": "rhombohedral", "SC": "simple cubic", "TET": "tetragonal",
}  # fmt: skip
_WHERE = {
    "England": "GB", "Scotland": "GB", "Great Britain": "GB", "Sweden": "SE", "France": "FR", "Germany": "DE", "Denmark": "DK",
    "Austria": "AT", "Finland": "FI", "Italy": "IT", "Japan": "JP", "Romania": "RO", "Russia": "RU", "Spain": "ES",
    "Switzerland": "CH", "United States": "US",
}  # fmt: skip
_ROOM = 298.15


def elements(draft: Draft) -> None:
    """Add the 118 elements with their groups, periods, blocks, series and properties."""
    source = draft.source("mendeleev", "MIT")
    with closing(sqlite3.connect(_database())) as database:
        database.row_factory = sqlite3.Row
        rows = database.execute("select * from elements order by atomic_number").fetchall()
        series = {r["id"]: r["name"] for r in database.execute("select id, name from series")}
        phases: dict[int, list[sqlite3.Row]] = {}
        for row in database.execute("select * from phasetransitions order by id"):
            phases.setdefault(row["atomic_number"], []).append(row)
    for row in rows:
        key = draft.entity(
            f"element:{row['symbol']}", "element", row["name"], name=row["name"].lower(), aliases=[row["symbol"]]
        )
        _position(draft, key, row, series[row["series_id"]], source)
        _discovery(draft, key, row, source)
        _phases(draft, key, phases.get(row["atomic_number"], []), source)
        if row["lattice_structure"] in _LATTICES:
            lattice = _LATTICES[row["lattice_structure"]]
            article = "an" if lattice.startswith("o") else "a"
            draft.fact(key, "lattice", _shape(draft, "crystal structure", f"{lattice} lattice", article), source)
        if row["goldschmidt_class"] and row["goldschmidt_class"] != "synthetic":
            family = row["goldschmidt_class"].replace("litophile", "lithophile")
            draft.fact(key, "goldschmidt", _shape(draft, "Goldschmidt class", f"{family} elements", "the"), source)
        if row["en_pauling"]:
            draft.fact(key, "electronegativity", row["en_pauling"], source)


def _database() -> Path:
    """The package's database, found without importing the package, which would take seconds."""
    spec = find_spec("mendeleev")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).with_name("elements.db")


def _position(draft: Draft, key: str, row: sqlite3.Row, series: str, source: int) -> None:
    draft.fact(key, "atomic_number", row["atomic_number"], source)
    if row["group_id"]:
        draft.fact(key, "group", _shape(draft, "element group", f"group {row['group_id']}", ""), source)
    draft.fact(key, "period", _shape(draft, "period", f"period {row['period']}", ""), source)
    block = f"{row['block']}-block"
    draft.fact(key, "block", draft.entity(f"block:{block}", "block", block, name=f"the {block}"), source)
    draft.fact(key, "series", _shape(draft, "element series", series.lower(), "the"), source)


def _discovery(draft: Draft, key: str, row: sqlite3.Row, source: int) -> None:
    places = [_WHERE.get(p) for p in (row["discovery_location"] or "?").split("/")]
    if row["symbol"] in CREDIT_DISPUTED or None in places:
        draft.gap(key, "discovered_in", "disputed or unknown")
        return
    for iso in dict.fromkeys(p for p in places if p):
        draft.fact(key, "discovered_in", f"country:{iso}", source)
    if row["discovery_year"]:
        draft.fact(key, "discovery_year", row["discovery_year"], source)


def _phases(draft: Draft, key: str, rows: list[sqlite3.Row], source: int) -> None:
    """Melting and boiling points in kelvin to one digit. Elements with several allotropes have none here."""
    if len(rows) != 1 or rows[0]["is_sublimation_point"]:
        return
    melting, boiling = rows[0]["melting_point"], rows[0]["boiling_point"]
    if melting:
        draft.fact(key, "melting_point", round(melting, 1), source)
    if boiling:
        draft.fact(key, "boiling_point", round(boiling, 1), source)
    state = None
    if melting and melting > _ROOM:
        state = "solid"
    elif boiling and boiling < _ROOM:
        state = "gas"
    elif melting and boiling:
        state = "liquid"
    if state:
        draft.fact(key, "state_of_matter", _shape(draft, "state of matter", state, "a"), source)


def _shape(draft: Draft, type: str, name: str, article: str) -> str:
    return draft.entity(f"{type}:{slug(name)}", type, name.capitalize(), name=f"{article} {name}".strip())
