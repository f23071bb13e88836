"""Every relation of the atlas with its grammar, in the order a page tells them."""

from schemas.world import Relation


def _names(
    name: str,
    subject: str,
    object: str,
    sentence: str,
    clue: str,
    inverse: str | None = None,
    *,
    functional: bool = True,
    complete: bool = False,
    dated: bool = False,
) -> Relation:
    return Relation(
        name=name,
        subject_type=subject,
        object_type=object,
        functional=functional,
        complete=complete,
        dated=dated,
        sentence=sentence,
        clue=clue,
        inverse_clue=inverse,
    )


def _number(
    name: str, subject: str, unit: str | None, sentence: str, clue: str, *, complete: bool = False, dated: bool = False
) -> Relation:
    return Relation(
        name=name,
        subject_type=subject,
        unit=unit,
        functional=True,
        complete=complete,
        dated=dated,
        sentence=sentence,
        clue=clue,
    )


_COUNTRY = (
    _names("continent", "country", "continent", "{s} is in {o}.", "is in {o}", "contains {s}"),
    _names(
        "region", "country", "region", "{s} lies in the region of {o}.", "lies in the region of {o}", "contains {s}"
    ),
    _names("capital", "country", "capital city", "the capital of {s} is {o}.", "has {o} as its capital"),
    _names(
        "borders",
        "country",
        "country",
        "{s} borders {o}.",
        "borders {o}",
        functional=False,
        complete=True,
    ),
    _names(
        "official_language",
        "country",
        "language",
        "the official [language|languages] of {s} [is|are] {o}.",
        "has {o} as an official language",
        "is an official language of {s}",
        functional=False,
        complete=True,
    ),
    _names(
        "currency",
        "country",
        "currency",
        "the currency of {s} is {o}.",
        "uses {o} as its currency",
        "is the currency of {s}",
    ),
    _names(
        "government",
        "country",
        "form of government",
        "the form of government of {s} is {o}.",
        "is {o}",
        "is the form of government of {s}",
        dated=True,
    ),
    _names(
        "legislature",
        "country",
        "kind of legislature",
        "{s} has {o}.",
        "has {o}",
        "is the kind that {s} has",
        dated=True,
    ),
    _names(
        "utc_offset",
        "country",
        "UTC offset",
        "the standard time in the capital of {s} is {o}.",
        "has a capital whose standard time is {o}",
        "is the standard time in the capital of {s}",
    ),
    _names(
        "member_of",
        "country",
        "organization",
        "{s} is a member of {o}.",
        "is a member of {o}",
        "has {s} as a member",
        functional=False,
        complete=True,
        dated=True,
    ),
    _names(
        "national_color",
        "country",
        "color",
        "the national [color|colors] of {s} [is|are] {o}.",
        "has {o} among its national colors",
        "is a national color of {s}",
        functional=False,
        complete=True,
    ),
    _names(
        "main_export",
        "country",
        "commodity",
        "the main exports of {s} include {o}.",
        "has {o} among its five main exports",
        "is among the five main exports of {s}",
        functional=False,
        complete=True,
        dated=True,
    ),
    _names(
        "farm_product",
        "country",
        "commodity",
        "the main agricultural products of {s} include {o}.",
        "has {o} among its ten main agricultural products",
        "is among the ten main agricultural products of {s}",
        functional=False,
        complete=True,
        dated=True,
    ),
    _names(
        "export_partner",
        "country",
        "country",
        "the largest export partner of {s} is {o}.",
        "has {o} as its largest export partner",
        "is the largest export partner of {s}",
        dated=True,
    ),
    _names(
        "import_partner",
        "country",
        "country",
        "the largest import partner of {s} is {o}.",
        "has {o} as its largest import partner",
        "is the largest import partner of {s}",
        dated=True,
    ),
    _names(
        "highest_point",
        "country",
        "summit",
        "the highest point of {s} is {o}.",
        "has {o} as its highest point",
        "is the highest point of {s}",
    ),
    _number("independence_year", "country", "year", "{s} became independent in {o}.", "became independent in {o}"),
    _number("population", "country", "people", "{s} has a population of {o}.", "has a population of {o}", dated=True),
    _number("area", "country", "km²", "{s} has an area of {o}.", "has an area of {o}"),
    _number("coastline", "country", "km", "{s} has a coastline of {o}.", "has a coastline of {o}"),
    _number(
        "highest_elevation",
        "country",
        "m",
        "the highest point of {s} is {o} above sea level.",
        "has its highest point {o} above sea level",
    ),
    _number("median_age", "country", "years", "the median age in {s} is {o}.", "has a median age of {o}", dated=True),
    _number(
        "urban_share",
        "country",
        "%",
        "in {s}, {o} of the people live in cities.",
        "has {o} of its people living in cities",
        dated=True,
    ),
    _number(
        "heritage_sites",
        "country",
        None,
        "the number of World Heritage Sites in {s} is {o}.",
        "has a number of World Heritage Sites of {o}",
        dated=True,
    ),
)

_TERRITORY = (
    _names("territory_continent", "territory", "continent", "{s} is in {o}.", "is in {o}", None),
    _names("territory_currency", "territory", "currency", "the currency of {s} is {o}.", "uses {o} as its currency"),
    _number(
        "territory_population",
        "territory",
        "people",
        "{s} has a population of {o}.",
        "has a population of {o}",
        dated=True,
    ),
    _number("territory_area", "territory", "km²", "{s} has an area of {o}.", "has an area of {o}"),
)

_MONEY_AND_TONGUES = (
    _names(
        "currency_unit", "currency", "currency unit", "{s} is a kind of {o}.", "is a kind of {o}", complete=True,
    ),
    _number(
        "decimals", "currency", None, "amounts of {s} are written with {o} decimal digits.", "is written with {o} decimal digits",
        complete=True,
    ),
    _names(
        "script", "language", "script", "{s} is usually written in {o}.", "is usually written in {o}",
        "is what {s} is usually written in",
    ),
    _names(
        "direction", "language", "writing direction", "{s} is written {o}.", "is written {o}", "is how {s} is written"
    ),
)  # fmt: skip

_PLACES = tuple(
    relation
    for type, short in (("capital city", "capital"), ("city", "city"), ("state capital", "state_capital"))
    for relation in (
        _names(
            f"{short}_time_zone",
            type,
            "time zone",
            "{s} keeps the time zone {o}.",
            "keeps the time zone {o}",
            "is kept in {s}",
        ),
        _number(
            f"{short}_population", type, "people", "{s} has a population of {o}.", "has a population of {o}", dated=True
        ),
        _number(f"{short}_latitude", type, "° north", "{s} lies at a latitude of {o}.", "lies at a latitude of {o}"),
    )
)

_CITIES = (
    _names("capital_of", "capital city", "country", "{s} is the capital of {o}.", "is the capital of {o}"),
    _names("city_country", "city", "country", "{s} is a city in {o}.", "is in {o}", complete=True),
    _names("city_territory", "city", "territory", "{s} is a city in {o}.", "is in {o}", complete=True),
    _names("city_state", "city", "US state", "{s} is in the state of {o}.", "is in the state of {o}", complete=True),
    _names("airport_country", "airport", "country", "{s} is an airport in {o}.", "is in {o}", complete=True),
    _names("airport_territory", "airport", "territory", "{s} is an airport in {o}.", "is in {o}", complete=True),
    _names(
        "airport_city", "airport", "city", "{s} serves the city of {o}.", "serves the city of {o}", "is served by {s}"
    ),
    _names(
        "airport_capital",
        "airport",
        "capital city",
        "{s} serves the city of {o}.",
        "serves the city of {o}",
        "is served by {s}",
    ),
    _names("airport_time_zone", "airport", "time zone", "{s} keeps the time zone {o}.", "keeps the time zone {o}"),
    _number("airport_elevation", "airport", "feet", "{s} lies {o} above sea level.", "lies {o} above sea level"),
    _number("airport_latitude", "airport", "° north", "{s} lies at a latitude of {o}.", "lies at a latitude of {o}"),
    _number("summit_elevation", "summit", "m", "{s} rises {o} above sea level.", "rises {o} above sea level"),
)

_STATE = (
    _names(
        "state_capital", "US state", "state capital", "the capital of {s} is {o}.", "has {o} as its capital", "is the capital of {s}"
    ),
    _names("state_borders", "US state", "US state", "{s} borders {o}.", "borders {o}", functional=False, complete=True),
    _names(
        "state_time_zone",
        "US state",
        "US time zone",
        "[the time zone|the time zones] of {s} [is|are] {o}.",
        "keeps, at least in part, the time zone {o}",
        "is kept in {s}",
        functional=False,
        complete=True,
    ),
    _names("division", "US state", "census division", "{s} belongs to {o}.", "belongs to {o}", "includes {s}", complete=True),
    _number("admission_year", "US state", "year", "{s} was admitted to the Union in {o}.", "was admitted to the Union in {o}", complete=True),
    _number("counties", "US state", None, "{s} has {o} counties or their equivalents.", "has {o} counties or their equivalents", complete=True),
)  # fmt: skip

_ELEMENT = (
    _names("group", "element", "element group", "{s} is in {o} of the periodic table.", "is in {o} of the periodic table", "contains {s}"),
    _names("period", "element", "period", "{s} is in {o} of the periodic table.", "is in {o} of the periodic table", "contains {s}", complete=True),
    _names("block", "element", "block", "{s} belongs to {o} of the periodic table.", "belongs to {o} of the periodic table", "contains {s}", complete=True),
    _names("series", "element", "element series", "{s} is one of {o}.", "is one of {o}", "includes {s}", complete=True),
    _names("state_of_matter", "element", "state of matter", "at 25 °C, {s} is {o}.", "is {o} at 25 °C", "is the state of {s} at 25 °C"),
    _names("lattice", "element", "crystal structure", "{s} crystallizes in {o}.", "crystallizes in {o}", "is that of {s}"),
    _names("goldschmidt", "element", "Goldschmidt class", "in the Goldschmidt classification, {s} is one of {o}.", "is one of {o} in the Goldschmidt classification", "includes {s}"),
    _names(
        "discovered_in", "element", "country", "{s} was discovered in {o}.", "was discovered in {o}", "is where {s} was discovered",
        functional=False, complete=True,
    ),
    _number("atomic_number", "element", None, "the atomic number of {s} is {o}.", "has an atomic number of {o}", complete=True),
    _number("discovery_year", "element", "year", "{s} was discovered in {o}.", "was discovered in {o}"),
    _number("melting_point", "element", "K", "{s} melts at {o}.", "melts at {o}"),
    _number("boiling_point", "element", "K", "{s} boils at {o}.", "boils at {o}"),
    _number("electronegativity", "element", None, "{s} has a Pauling electronegativity of {o}.", "has a Pauling electronegativity of {o}"),
)  # fmt: skip

RELATIONS = (*_COUNTRY, *_TERRITORY, *_MONEY_AND_TONGUES, *_CITIES, *_PLACES, *_STATE, *_ELEMENT)
