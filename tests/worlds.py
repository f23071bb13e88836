"""Worlds for tests: a small one of real facts, written by hand, and the atlas, loaded once a session."""

from functools import cache

from infra.settings import Settings
from pipeline.corpora import load_world
from pipeline.corpora.pages import render
from pipeline.corpora.world import World
from schemas.world import Entity, Fact, Relation, Source

_BORDERS = {
    "Niger": "Algeria Benin Burkina_Faso Chad Libya Mali Nigeria",
    "Mali": "Algeria Burkina_Faso Guinea Ivory_Coast Mauritania Niger Senegal",
    "Algeria": "Libya Mali Mauritania Morocco Niger Tunisia",
    "Libya": "Algeria Chad Egypt Niger Sudan Tunisia",
    "Chad": "Libya Niger Nigeria Sudan",
    "Burkina_Faso": "Benin Ghana Ivory_Coast Mali Niger Togo",
    "Benin": "Burkina_Faso Niger Nigeria Togo",
    "Togo": "Benin Burkina_Faso Ghana",
    "Ghana": "Burkina_Faso Ivory_Coast Togo",
    "Ivory_Coast": "Burkina_Faso Ghana Guinea Liberia Mali",
    "Guinea": "Guinea-Bissau Ivory_Coast Liberia Mali Senegal Sierra_Leone",
    "Guinea-Bissau": "Guinea Senegal",
    "Senegal": "Gambia Guinea Guinea-Bissau Mali Mauritania",
    "Gambia": "Senegal",
    "Mauritania": "Algeria Mali Senegal",
    "Morocco": "Algeria Spain",
    "Tunisia": "Algeria Libya",
    "Egypt": "Libya Sudan",
    "Sudan": "Chad Egypt Libya",
    "Nigeria": "Benin Chad Niger",
    "Liberia": "Guinea Ivory_Coast Sierra_Leone",
    "Sierra_Leone": "Guinea Liberia",
    "Spain": "Andorra France Morocco Portugal",
    "Portugal": "Spain",
    "France": "Andorra Spain",
    "Andorra": "France Spain",
}
"""Among the countries listed."""

_COUNTRIES = """
Niger|Niamey|West African CFA franc|Hausa|1267000|1960
Mali|Bamako|West African CFA franc||1240192|1960
Algeria|Algiers|Algerian dinar|Arabic Tamazight|2381740|1962
Libya|Tripoli|Libyan dinar|Arabic|1759540|1951
Chad|N'Djamena|Central African CFA franc|Arabic French|1284000|1960
Burkina Faso|Ouagadougou|West African CFA franc||274200|1960
Benin|Porto-Novo|West African CFA franc|French|112622|1960
Togo|Lomé|West African CFA franc|French|56785|1960
Ghana|Accra|Ghanaian cedi|English|238533|1957
Ivory Coast|Yamoussoukro|West African CFA franc|French|322463|1960
Guinea|Conakry|Guinean franc|French|245857|1958
Guinea-Bissau|Bissau|West African CFA franc|Portuguese|36125|1974
Senegal|Dakar|West African CFA franc|French|196722|1960
Gambia|Banjul|Gambian dalasi|English|11300|1965
Mauritania|Nouakchott|Mauritanian ouguiya|Arabic|1030700|1960
Morocco|Rabat|Moroccan dirham|Arabic Tamazight|446550|1956
Tunisia|Tunis|Tunisian dinar|Arabic|163610|1956
Egypt|Cairo|Egyptian pound|Arabic|1001450|
Sudan|Khartoum|Sudanese pound|Arabic English|1861484|1956
Nigeria|Abuja|Nigerian naira|English|923768|1960
Liberia|Monrovia|Liberian dollar|English|111369|
Sierra Leone|Freetown|Sierra Leonean leone|English|71740|1961
Spain|Madrid|euro|Spanish|505370|
Portugal|Lisbon|euro|Portuguese|92090|
France|Paris|euro|French|643801|
Andorra|Andorra la Vella|euro|Catalan|468|
"""

RELATIONS = (
    Relation(
        name="capital",
        subject_type="country",
        object_type="capital city",
        functional=True,
        complete=True,
        sentence="the capital of {s} is {o}.",
        clue="has {o} as its capital",
        inverse_clue="is the capital of {s}",
    ),
    Relation(
        name="borders",
        subject_type="country",
        object_type="country",
        functional=False,
        complete=True,
        sentence="{s} borders {o}.",
        clue="borders {o}",
        inverse_clue="borders {s}",
    ),
    Relation(
        name="official_language",
        subject_type="country",
        object_type="language",
        functional=False,
        complete=True,
        sentence="the official [language|languages] of {s} [is|are] {o}.",
        clue="has {o} as an official language",
        inverse_clue="is an official language of {s}",
        shared_clue="shares an official language with {s}",
    ),
    Relation(
        name="currency",
        subject_type="country",
        object_type="currency",
        functional=True,
        complete=True,
        sentence="the currency of {s} is {o}.",
        clue="uses {o} as its currency",
        inverse_clue="is the currency of {s}",
        shared_clue="has the same currency as {s}",
    ),
    Relation(
        name="area",
        subject_type="country",
        unit="km²",
        functional=True,
        complete=True,
        sentence="{s} has an area of {o}.",
        clue="has an area of {o}",
    ),
    Relation(
        name="independence_year",
        subject_type="country",
        unit="year",
        functional=True,
        complete=False,
        sentence="{s} became independent in {o}.",
        clue="became independent in {o}",
    ),
    Relation(
        name="unit_name",
        subject_type="currency",
        object_type="currency unit",
        functional=True,
        complete=True,
        sentence="{s} is a kind of {o}.",
        clue="is a kind of {o}",
    ),
)


@cache
def atlas() -> World:
    """The atlas from the local store, where the first test ever builds it. Never changed by a test."""
    return load_world("atlas", Settings.from_env().cache)


@cache
def toy_world() -> World:
    """26 countries of west and north Africa and south-west Europe with their capitals, currencies and languages.

    Borders are complete among the countries listed. The languages of Mali and Burkina Faso are a gap: unknown. Years of independence are
    missing for Egypt, Liberia and the European ones.
    """
    entities: dict[str, Entity] = {}
    facts: list[Fact] = []

    def entity(type: str, title: str, article: str = "") -> str:
        id = f"{type.replace(' ', '-')}/{title.lower().replace(' ', '-')}"
        entities.setdefault(id, Entity(id=id, type=type, title=title, name=article + title))
        return id

    for line in _COUNTRIES.strip().splitlines():
        name, capital, currency, languages, area, year = line.split("|")
        country = entity("country", name, "the " if name == "Gambia" else "")
        money = entity("currency", currency, "the ")
        facts.append(Fact(country, "capital", entity("capital city", capital), 0))
        facts += [
            Fact(country, "borders", entity("country", other.replace("_", " "), "the " if other == "Gambia" else ""), 0)
            for other in _BORDERS[name.replace(" ", "_")].split()
        ]
        facts += [Fact(country, "official_language", entity("language", word), 0) for word in languages.split()]
        facts.append(Fact(country, "currency", money, 0))
        facts.append(Fact(country, "area", float(area), 0))
        facts += [Fact(country, "independence_year", float(year), 0)] if year else []
        unit = Fact(money, "unit_name", entity("currency unit", currency.split()[-1]), 0)
        facts += [unit] if unit not in facts else []
    sources = (Source(package="touchstone", version="1", licence="Apache-2.0"),)
    documents, placed = render(entities.values(), RELATIONS, facts, sources)
    gaps = [(f"country/{c}", "official_language") for c in ("mali", "burkina-faso")]
    return World(
        "toy",
        entities=entities.values(),
        relations=RELATIONS,
        facts=placed,
        documents=documents,
        sources=sources,
        gaps=gaps,
    )
