from pipeline.filters.top1 import GUESS, top1
from schemas.certificate import Certificate, Outcome
from schemas.query import Clue, EntityRef, Query
from schemas.task import Evidence
from tests.pipeline.tasks import quotes, search_task
from tests.worlds import toy_world

WORLD = toy_world()


def judged(query: Query, answer: str, question: str, evidence: list[Evidence] | None = None) -> Certificate:
    return top1(search_task(query, answer, question, evidence=evidence or []), WORLD, WORLD.index)


def country(relation: str, target: str) -> Query:
    return Query(type="country", clues=(Clue(relation=relation, target=EntityRef(entity=target)),))


def test_a_question_whose_best_page_is_the_answer_is_trivial() -> None:
    query = country("capital", "capital-city/bamako")
    question = "Which country has Bamako as its capital and has an area of 1,240,192 km²?"
    certificate = judged(query, "country/mali", question)
    assert (certificate.reason, certificate.score) == ("single_search", 1.0)
    assert certificate.detail["page"] == "country/mali"


def test_a_snippet_that_names_only_the_answer_beside_what_the_question_names_is_trivial() -> None:
    """The page of Spain has "borders Andorra, France, Morocco and Portugal"; with three of them asked about, one is left."""
    query = country("borders", "country/spain")
    question = "Which country borders Spain as Andorra, France and Morocco border Spain?"
    assert WORLD.index.search(question, k=1)[0].id == "country/spain"
    certificate = judged(query, "country/portugal", question)
    assert (certificate.reason, certificate.score) == ("single_search", 1.0)
    assert certificate.detail["choices"] == ["country/portugal"]


def test_a_snippet_with_many_candidates_gives_nothing_away_and_the_chance_is_kept() -> None:
    """Niger borders seven countries: picking one of them is right one time in seven."""
    query = country("borders", "country/niger")
    question = "Which country borders Niger?"
    assert WORLD.index.search(question, k=1)[0].id == "country/niger"
    certificate = judged(query, "country/libya", question)
    assert certificate.outcome is Outcome.KEEP
    assert certificate.score == 1 / 7 < GUESS


def test_every_page_of_the_evidence_is_found_by_a_query_made_of_clue_names() -> None:
    inner = country("borders", "country/niger").clues + country("borders", "country/senegal").clues
    capital = Clue(relation="capital", inverse=True, target=Query(type="country", clues=inner))
    evidence = quotes(Query(type="country", clues=inner), "country/mali", WORLD)
    query = Query(type="capital city", clues=(capital,))
    certificate = judged(query, "capital-city/bamako", "Which city is the seat there?", evidence)
    assert certificate.outcome is Outcome.KEEP
    assert certificate.detail["pages"] == 1


def test_evidence_that_no_query_finds_is_out_of_reach() -> None:
    """A page that is not indexed is found by no query: 26 countries are too few to hide one behind 100 results."""
    lost = Evidence(document="country/atlantis", document_hash="", start=0, end=0, quote="")
    certificate = judged(country("borders", "country/niger"), "country/libya", "Which country is meant?", [lost])
    assert certificate.reason == "unreachable"
    assert certificate.detail["pages"] == ["country/atlantis"]
