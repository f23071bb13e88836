"""The states of the USA."""

import us

from pipeline.corpora.atlas.draft import Draft, slug

BORDERS = """
AL FL GA MS TN|AR LA MO MS OK TN TX|AZ CA NM NV UT|CA NV OR|CO KS NE NM OK UT WY|CT MA NY RI|DE MD NJ PA|FL GA|GA NC SC TN|
IA IL MN MO NE SD WI|ID MT NV OR UT WA WY|IL IN KY MO WI|IN KY MI OH|KS MO NE OK|KY MO OH TN VA WV|LA MS TX|MA NH NY RI VT|
MD PA VA WV|ME NH|MI OH WI|MN ND SD WI|MO NE OK TN|MS TN|MT ND SD WY|NC SC TN VA|ND SD|NE SD WY|NH VT|NJ NY PA|NM OK TX|
NV OR UT|NY PA VT|OH PA WV|OK TX|OR WA|PA WV|SD WY|TN VA|UT WY|VA WV
"""
"""Each state with the later ones of the alphabet that share a land or river border with it. Corners (AZ-CO, NM-UT) and borders
in open water (NY-RI) do not count."""
DIVISIONS = {
    "New England": "CT MA ME NH RI VT",
    "Middle Atlantic": "NJ NY PA",
    "East North Central": "IL IN MI OH WI",
    "West North Central": "IA KS MN MO ND NE SD",
    "South Atlantic": "DE FL GA MD NC SC VA WV",
    "East South Central": "AL KY MS TN",
    "West South Central": "AR LA OK TX",
    "Mountain": "AZ CO ID MT NM NV UT WY",
    "Pacific": "AK CA HI OR WA",
}
"""Divisions of the Census Bureau."""
_ZONES = {
    "America/New_York": "Eastern Time", "America/Chicago": "Central Time", "America/Denver": "Mountain Time",
    "America/Phoenix": "Mountain Time", "America/Boise": "Mountain Time", "America/Los_Angeles": "Pacific Time",
    "America/Anchorage": "Alaska Time", "America/Adak": "Hawaii-Aleutian Time", "Pacific/Honolulu": "Hawaii-Aleutian Time",
}  # fmt: skip


def states(draft: Draft) -> None:
    """Add the fifty states with their capitals; borders and divisions are this project's own tables."""
    package = draft.source("us", "BSD-3-Clause")
    own = draft.source("touchstone-rl", "Apache-2.0")
    for state in us.states.STATES:
        assert state.name and state.capital and state.statehood_year, state
        key = draft.entity(f"state:{state.abbr}", "US state", state.name, aliases=[state.abbr])
        capital = draft.entity(
            f"capital:US-{state.abbr}", "state capital", state.capital, f"{state.capital}, {state.name}"
        )
        draft.fact(key, "state_capital", capital, package)
        draft.fact(capital, "capital_of_state", key, package)
        draft.fact(key, "admission_year", state.statehood_year, package)
        draft.fact(key, "counties", len(state.counties), package)
        for zone in dict.fromkeys(_ZONES[z] for z in state.time_zones if z in _ZONES):
            draft.fact(key, "state_time_zone", draft.entity(f"us-zone:{slug(zone)}", "US time zone", zone), package)
    for group in BORDERS.replace("\n", "").split("|"):
        first, *others = group.split()
        for other in others:
            draft.fact(f"state:{first}", "state_borders", f"state:{other}", own)
            draft.fact(f"state:{other}", "state_borders", f"state:{first}", own)
    for title, members in DIVISIONS.items():
        division = draft.entity(
            f"division:{slug(title)}", "census division", f"{title} division", name=f"the {title} division"
        )
        for abbr in members.split():
            draft.fact(f"state:{abbr}", "division", division, own)
