"""The compiled world: size, joins, spans, and what it must not get wrong."""

import os
import subprocess
import sys
from collections import Counter

import pytest

from pipeline.corpora import describe, page
from pipeline.corpora.atlas import CORE_TYPES
from pipeline.corpora.atlas.countries import government, legal_system, majority_religion
from pipeline.corpora.atlas.draft import COVERAGE_FLOOR
from pipeline.corpora.atlas.offsets import standard_offset, utc_offset
from pipeline.corpora.describe import PageError, relation_rows
from schemas.errors import TouchstoneError
from tests.worlds import atlas


def _named(subject: str, relation: str) -> set[str]:
    world = atlas()
    return {world.entities[o].title for o in world.objects(subject, relation) if isinstance(o, str)}


@pytest.mark.timeout(900)  # builds the atlas where the store has none yet
def test_it_has_25000_pages_40_relations_and_100000_facts() -> None:
    world = atlas()
    assert len(world.documents) >= 25_000
    assert len(world.relations) >= 40
    assert len(world.facts) >= 100_000
    assert 800 <= sum(len(world.of_type(type)) for type in CORE_TYPES) <= 1_500


def test_every_join_covers_95_percent() -> None:
    report = atlas().report
    joins = [key.removesuffix(": total") for key in report if key.startswith("join ") and key.endswith(": total")]
    assert len(joins) == 6
    for join in joins:
        assert report[f"{join}: matched"] >= COVERAGE_FLOOR * report[f"{join}: total"], join


def test_sources_are_named_with_version_licence_and_no_share_alike() -> None:
    for source in atlas().sources:
        assert source.version and source.licence
        assert not any(word in source.licence.upper() for word in ("SA", "GPL", "ODBL")), source


@pytest.mark.parametrize(
    ("country", "capital", "borders"),
    [
        ("country/democratic-republic-of-the-congo", "Kinshasa", "Uganda"),
        ("country/republic-of-the-congo", "Brazzaville", "Gabon"),
        ("country/united-arab-emirates", "Abu Dhabi", "Oman"),
        ("country/niger", "Niamey", "Algeria"),
        ("country/nigeria", "Abuja", "Cameroon"),
        ("country/north-korea", "Pyongyang", "China"),
        ("country/australia", "Canberra", None),
        ("country/austria", "Vienna", "Liechtenstein"),
    ],
)
def test_fips_and_iso_codes_are_not_mixed_up(country: str, capital: str, borders: str | None) -> None:
    # by ISO code NG is Nigeria, by FIPS code it is Niger; by name the Congos and the Emirates find nothing.
    assert _named(country, "capital") == {capital}
    assert borders in _named(country, "borders") if borders else not _named(country, "borders")


def test_seats_that_sources_disagree_on_have_no_capital_and_stay_open() -> None:
    world = atlas()
    for country in ("country/south-africa", "country/bolivia", "country/sri-lanka"):
        assert not world.objects(country, "capital")
        assert not world.closed(country, "capital")


def test_borders_are_symmetric_also_where_they_are_gaps() -> None:
    world = atlas()
    for relation in ("borders", "state_borders"):
        pairs = {(f.subject, f.object) for f in world.facts if f.relation == relation}
        assert pairs and pairs == {(b, a) for a, b in pairs}
    # The Factbook draws Denmark a border with Canada on Hans Island, GeoNames none.
    assert {("country/denmark", "borders"), ("country/canada", "borders")} <= world.gaps


def test_a_functional_relation_has_one_object_a_subject_at_most() -> None:
    world = atlas()
    seen = Counter((f.subject, f.relation) for f in world.facts if world.relations[f.relation].functional)
    assert [key for key, n in seen.items() if n > 1] == []


def test_every_fact_is_typed_as_declared() -> None:
    world = atlas()
    for fact in world.facts:
        declared = world.relations[fact.relation]
        assert world.entities[fact.subject].type == declared.subject_type
        if isinstance(fact.object, str):
            assert world.entities[fact.object].type == declared.object_type
        else:
            assert declared.object_type is None


def test_every_span_is_a_whole_sentence_that_names_both_ends() -> None:
    world = atlas()
    for fact in world.facts:
        text = world.documents[fact.subject].text
        quote = text[fact.start : fact.end]
        assert quote in text.split("\n")
        assert quote.endswith(".")
        said = quote.lower()
        assert world.entities[fact.subject].name.lower().rstrip(".") in said
        if isinstance(fact.object, str):
            assert world.entities[fact.object].name.lower().rstrip(".") in said


def test_titles_are_unique_and_every_link_has_a_page() -> None:
    world = atlas()
    assert len({d.title for d in world.documents.values()}) == len(world.documents)
    for document in world.documents.values():
        assert all(link in world.documents for link in document.links)


def test_dated_sentences_say_the_year_of_their_source() -> None:
    world = atlas()
    dated = [f for f in world.facts if world.relations[f.relation].dated]
    assert dated
    for fact in dated:
        year = (world.sources[fact.source].as_of or "")[:4]
        assert world.documents[fact.subject].text[fact.start :].startswith(f"As of {year}, ")


def test_the_page_of_niger_reads_as_english() -> None:
    lines = atlas().documents["country/niger"].text.split("\n")
    assert lines[0] == "Niger is a country."
    assert "The capital of Niger is Niamey." in lines
    assert "Niger borders Burkina Faso, Benin, Algeria, Libya, Mali, Nigeria and Chad." in lines
    assert "As of 2025, the currency of Niger is the West African CFA Franc." in lines
    assert "Niger has an area of 1,267,000 km²." in lines


@pytest.mark.timeout(900)
def test_equal_packages_give_an_equal_hash_in_a_fresh_process() -> None:
    code = "from pipeline.corpora.atlas import compile_atlas; print(compile_atlas().hash)"
    fresh = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "4711"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert fresh.stdout.strip() == atlas().hash


def test_a_description_counts_what_is_there() -> None:
    world = atlas()
    about = describe(world)
    assert about["pages"] == len(world.documents)
    assert sum(row["facts"] for row in relation_rows(world)) == len(world.facts)
    assert about["relations"] == relation_rows(world)
    assert about["hash"] == world.hash


def test_a_page_is_found_by_id_or_title_and_a_wrong_title_names_near_ones() -> None:
    world = atlas()
    assert page(world, "country/niger") is page(world, "niger")
    with pytest.raises(PageError, match="Timbuktu Town: no such page; near it are "):
        page(world, "Timbuktu Town")
    assert issubclass(PageError, TouchstoneError)


def test_forms_of_government_are_read_only_where_they_are_plain() -> None:
    assert government("federal parliamentary republic") == "parliamentary republic"
    assert (
        government("parliamentary democracy under a constitutional monarchy; a Commonwealth realm")
        == "constitutional monarchy"
    )
    assert government("presidential republic in name, although in fact a dictatorship") is None


def test_legal_systems_are_civil_common_or_mixed_or_left_open() -> None:
    assert legal_system("English common law") == "common law"
    assert legal_system("civil law system based on the French model") == "civil law"
    assert legal_system("mixed system of English common law and customary law") == "mixed law"
    assert (
        legal_system("civil law system except in the northern rural areas where customary law is still present") is None
    )


def test_a_majority_religion_needs_a_clear_majority_of_the_first_entry() -> None:
    assert majority_religion("Muslim (official; predominantly Sunni) 99%, other 1%") == "Islam"
    assert majority_religion("Roman Catholic 56.8%, Evangelical 26.9%") == "Christianity"
    assert majority_religion("Evangelical 50.2%, Roman Catholic 30.1%") is None
    assert majority_religion("none 72%, Christian 9%") is None


def test_names_with_an_article_have_the_right_one() -> None:
    articled = [e.name for e in atlas().entities.values() if e.name.startswith(("a ", "an "))]
    assert {"an orthorhombic lattice", "a hexagonal lattice"} <= set(articled)
    assert [name for name in articled if name.startswith("an ") != (name.split()[1][0] in "aeio")] == []


def test_summer_time_is_not_taken_for_standard_time() -> None:
    """The Factbook gives Canberra UTC+11 and Santiago UTC-3, both "during summer", and Khartoum the offset it left in 2017."""
    assert (standard_offset("Australia/Sydney"), standard_offset("America/Santiago")) == (10.0, -4.0)
    assert standard_offset("Asia/Kathmandu") == 5.75
    for country in ("australia", "chile", "sudan"):
        assert _named(f"country/{country}", "utc_offset") == set()
    assert atlas().report["sources disagree: utc_offset"] == 4
    assert _named("country/new-zealand", "utc_offset") == {"UTC+12"}


def test_utc_offsets_are_written_with_minutes_only_where_there_are_any() -> None:
    assert [utc_offset(h) for h in (0, 1, -3.5, 5.75)] == ["UTC+0", "UTC+1", "UTC-3:30", "UTC+5:45"]
