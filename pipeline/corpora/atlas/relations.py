"""Every relation of the atlas with its grammar, in the order a page tells them."""

from schemas.world import Relation


def _names(
    name: str,
    ends: str,
    sentence: str,
    clue: str,
    inverse: str | None = None,
    is_: str = "functional",
    *,
    shared: str | None = None,
) -> Relation:
    """A relation between entities; `ends` is "subject type -> object type", `is_` lists what is declared of it."""
    subject, object = ends.split(" -> ")
    return Relation(
        name=name, subject_type=subject, object_type=object, sentence=sentence, clue=clue, inverse_clue=inverse,
        shared_clue=shared,
        functional="functional" in is_, complete="complete" in is_, dated="dated" in is_,
    )  # fmt: skip


def _number(name: str, subject: str, unit: str | None, sentence: str, clue: str, is_: str = "") -> Relation:
    """A functional relation to a number."""
    return Relation(
        name=name, subject_type=subject, unit=unit, sentence=sentence, clue=clue,
        functional=True, complete="complete" in is_, dated="dated" in is_,
    )  # fmt: skip


# fmt: off
_COUNTRY = (
    _names("continent", "country -> continent", "{s} is in {o}.", "is in {o}", shared="is on the same continent as {s}"),
    _names("region", "country -> region", "{s} lies in the region of {o}.", "lies in {o}",
           shared="lies in the same region as {s}"),
    _names("capital", "country -> capital city", "the capital of {s} is {o}.", "has {o} as its capital"),
    _names("borders", "country -> country", "{s} borders {o}.", "borders {o}", is_="complete"),
    _names("official_language", "country -> language", "the official [language|languages] of {s} [is|are] {o}.",
           "has {o} as an official language", "is an official language of {s}", "complete dated",
           shared="shares an official language with {s}"),
    _names("main_language", "country -> language", "the most widely spoken language of {s} is {o}.",
           "has {o} as its most widely spoken language", "is the most widely spoken language of {s}", "functional dated",
           shared="has the same most widely spoken language as {s}"),
    _names("currency", "country -> currency", "the currency of {s} is {o}.", "has {o} as its currency", "is the currency of {s}",
           "functional dated", shared="has the same currency as {s}"),
    _names("government", "country -> form of government", "the form of government of {s} is {o}.",
           "has {o} as its form of government", is_="functional dated", shared="has the same form of government as {s}"),
    _names("legislature", "country -> kind of legislature", "{s} has {o}.", "has {o}", is_="functional dated",
           shared="has the same kind of legislature as {s}"),
    _names("legal_system", "country -> legal system", "the legal system of {s} is {o}.", "has {o} as its legal system",
           shared="has the same kind of legal system as {s}"),
    _names("majority_religion", "country -> religion", "most people in {s} follow {o}.",
           "has {o} as the religion of most of its people", is_="functional dated", shared="has the same majority religion as {s}"),
    _names("utc_offset", "country -> UTC offset", "the standard time in the capital of {s} is {o}.",
           "has a capital whose standard time is {o}", shared="has a capital whose standard time is that of the capital of {s}"),
    _names("member_of", "country -> organization", "{s} is a member of {o}.",
           "is a member of {o}", is_="complete dated"),
    _names("national_color", "country -> color", "the national [color|colors] of {s} [is|are] {o}.",
           "has {o} among its national colors", is_="complete", shared="shares a national color with {s}"),
    _names("main_export", "country -> commodity", "the main exports of {s} include {o}.",
           "has {o} among its five main exports", "is among the five main exports of {s}", "complete dated",
           shared="shares one of its five main exports with {s}"),
    _names("farm_product", "country -> commodity", "the main agricultural products of {s} include {o}.",
           "has {o} among its ten main agricultural products", "is among the ten main agricultural products of {s}", "complete dated",
           shared="shares one of its ten main agricultural products with {s}"),
    _names("export_partner", "country -> country", "the largest export partner of {s} is {o}.",
           "has {o} as its largest export partner", "is the largest export partner of {s}", "functional dated",
           shared="has the same largest export partner as {s}"),
    _names("import_partner", "country -> country", "the largest import partner of {s} is {o}.",
           "has {o} as its largest import partner", "is the largest import partner of {s}", "functional dated",
           shared="has the same largest import partner as {s}"),
    _names("highest_point", "country -> summit", "the highest point of {s} is {o}.",
           "has {o} as its highest point", "is the highest point of {s}"),
    _number("highest_elevation", "country", "m", "the highest point of {s} is {o} above sea level.",
            "has its highest point {o} above sea level"),
    _number("independence_year", "country", "year", "{s} became independent in {o}.", "became independent in {o}"),
    _number("population", "country", "people", "{s} has a population of {o}.", "has a population of {o}", "dated"),
    _number("area", "country", "km²", "{s} has an area of {o}.", "has an area of {o}"),
    _number("coastline", "country", "km", "{s} has a coastline of {o}.", "has a coastline of {o}"),
    _number("median_age", "country", "years", "the median age in {s} is {o}.", "has a median age of {o}", "dated"),
    _number("life_expectancy", "country", "years", "the life expectancy at birth in {s} is {o}.",
            "has a life expectancy at birth of {o}", "dated"),
    _number("urban_share", "country", "%", "in {s}, {o} of the people live in cities.",
            "has {o} of its people living in cities", "dated"),
    _number("heritage_sites", "country", None, "the number of World Heritage Sites in {s} is {o}.",
            "has {o} World Heritage Sites", "dated"),
    _number("voting_age", "country", "years", "the voting age in {s} is {o}.", "has a voting age of {o}", "dated"),
)

_TERRITORY = (
    _names("territory_continent", "territory -> continent", "{s} is in {o}.", "is in {o}"),
    _names("territory_currency", "territory -> currency", "the currency of {s} is {o}.", "has {o} as its currency",
           is_="functional dated"),
    _number("territory_population", "territory", "people", "{s} has a population of {o}.", "has a population of {o}", "dated"),
    _number("territory_area", "territory", "km²", "{s} has an area of {o}.", "has an area of {o}"),
)

_MONEY_AND_TONGUES = (
    _names("currency_unit", "currency -> currency unit", "{s} is a kind of {o}.", "is a kind of {o}", is_="functional complete"),
    _number("decimals", "currency", None, "amounts of {s} are written with {o} decimal digits.",
            "is written with {o} decimal digits", "complete"),
    _names("script", "language -> script", "{s} is usually written in {o}.", "is usually written in {o}",
           shared="is usually written in the same script as {s}"),
    _names("direction", "language -> writing direction", "{s} is written {o}.", "is written {o}",
           shared="is written in the same direction as {s}"),
    _names("decimal_mark", "language -> decimal mark", "in {s}, decimals are set off by {o}.",
           "sets off decimals by {o}", shared="sets off decimals as {s} does"),
    _number("plural_forms", "language", None, "the number of plural categories in {s} is {o}.", "has {o} plural categories"),
)

_PLACES = tuple(
    relation
    for type, short in (("capital city", "capital"), ("city", "city"), ("state capital", "state_capital"))
    for relation in (
        _names(f"{short}_time_zone", f"{type} -> time zone", "{s} keeps the time zone {o}.", "keeps the time zone {o}",
               shared="keeps the same time zone as {s}"),
        _number(f"{short}_population", type, "people", "{s} has a population of {o}.", "has a population of {o}", "dated"),
        _number(f"{short}_latitude", type, "°", "{s} lies at a latitude of {o}.", "lies at a latitude of {o}"),
    )
)

_CITIES = (
    _names("capital_of", "capital city -> country", "{s} is the capital of {o}.", "is the capital of {o}"),
    _names("city_country", "city -> country", "{s} is a city in {o}.", "is in {o}", is_="functional complete"),
    _names("city_territory", "city -> territory", "{s} is a city in {o}.", "is in {o}", is_="functional complete"),
    _names("city_state", "city -> US state", "{s} is in the state of {o}.", "is in the state of {o}", is_="functional complete"),
    _names("airport_country", "airport -> country", "{s} is an airport in {o}.", "is in {o}", is_="functional complete"),
    _names("airport_territory", "airport -> territory", "{s} is an airport in {o}.", "is in {o}", is_="functional complete"),
    _names("airport_city", "airport -> city", "{s} serves the city of {o}.", "serves {o}", "is served by {s}"),
    _names("airport_capital", "airport -> capital city", "{s} serves the capital {o}.", "serves {o}", "is served by {s}"),
    _names("airport_time_zone", "airport -> time zone", "{s} keeps the time zone {o}.", "keeps the time zone {o}"),
    _number("airport_elevation", "airport", "feet", "{s} lies {o} above sea level.", "lies {o} above sea level"),
    _number("airport_latitude", "airport", "°", "{s} lies at a latitude of {o}.", "lies at a latitude of {o}"),
    _number("summit_elevation", "summit", "m", "{s} rises {o} above sea level.", "rises {o} above sea level"),
)

_STATE = (
    _names("state_capital", "US state -> state capital", "the capital of {s} is {o}.", "has {o} as its capital"),
    _names("capital_of_state", "state capital -> US state", "{s} is the capital of {o}.", "is the capital of {o}"),
    _names("state_borders", "US state -> US state", "{s} borders {o}.", "borders {o}", is_="complete"),
    _names("state_time_zone", "US state -> US time zone", "the time [zone|zones] of {s} [is|are] {o}.",
           "keeps, at least in part, {o}", is_="complete", shared="shares a time zone with {s}"),
    _names("division", "US state -> census division", "{s} belongs to {o}.", "belongs to {o}", is_="functional complete",
           shared="belongs to the same census division as {s}"),
    _number("admission_year", "US state", "year", "{s} was admitted to the Union in {o}.",
            "was admitted to the Union in {o}", "complete"),
    _number("counties", "US state", None, "{s} has {o} counties or their equivalents.",
            "has {o} counties or their equivalents", "complete"),
)

_ELEMENT = (
    _names("group", "element -> element group", "{s} belongs to {o} of the periodic table.", "belongs to {o}",
           shared="belongs to the same group of the periodic table as {s}"),
    _names("period", "element -> period", "{s} belongs to {o} of the periodic table.", "belongs to {o}",
           is_="functional complete", shared="belongs to the same period of the periodic table as {s}"),
    _names("block", "element -> block", "{s} belongs to {o} of the periodic table.", "belongs to {o}",
           is_="functional complete", shared="belongs to the same block of the periodic table as {s}"),
    _names("series", "element -> element series", "{s} is one of {o}.", "is one of {o}",
           is_="functional complete", shared="belongs to the same series of elements as {s}"),
    _names("state_of_matter", "element -> state of matter", "at 25 °C, {s} is {o}.", "is {o} at 25 °C",
           shared="has the same state of matter at 25 °C as {s}"),
    _names("lattice", "element -> crystal structure", "{s} crystallizes in {o}.", "crystallizes in {o}",
           shared="crystallizes in the same structure as {s}"),
    _names("goldschmidt", "element -> Goldschmidt class", "in the Goldschmidt classification, {s} is one of {o}.",
           "is classified by Goldschmidt as one of {o}", shared="belongs to the same Goldschmidt class as {s}"),
    _names("discovered_in", "element -> country", "{s} was discovered in {o}.", "was discovered in {o}", "saw the discovery of {s}",
           "complete", shared="was discovered in the same country as {s}"),
    _number("discovery_year", "element", "year", "{s} was discovered in the year {o}.", "was discovered in {o}"),
    _number("atomic_number", "element", None, "the atomic number of {s} is {o}.", "has an atomic number of {o}", "complete"),
    _number("melting_point", "element", "K", "{s} melts at {o}.", "melts at {o}"),
    _number("boiling_point", "element", "K", "{s} boils at {o}.", "boils at {o}"),
    _number("electronegativity", "element", None, "{s} has a Pauling electronegativity of {o}.",
            "has a Pauling electronegativity of {o}"),
)
# fmt: on

RELATIONS = (*_COUNTRY, *_TERRITORY, *_MONEY_AND_TONGUES, *_CITIES, *_PLACES, *_STATE, *_ELEMENT)
