import pytest

from pipeline.corpora.world import World
from pipeline.filters.evidence import evidence
from schemas.certificate import Outcome
from schemas.query import Band, Clue, EntityRef, Query
from schemas.task import Evidence
from schemas.world import Document, Entity, Fact, Relation, Source
from tests.pipeline.tasks import MALI, quotes, search_task
from tests.worlds import toy_world

WORLD = toy_world()


def test_quotes_that_state_every_clue_are_kept() -> None:
    assert evidence(search_task(), WORLD).outcome is Outcome.KEEP


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"document": "country/atlantis"}, "document_missing"),
        ({"document_hash": "0" * 16}, "document_changed"),
        ({"start": 1}, "misquoted"),
        ({"quote": "Mali borders everything."}, "misquoted"),
    ],
)
def test_a_quote_is_word_for_word_in_the_text_it_names(change: dict[str, object], reason: str) -> None:
    good = quotes(MALI, "country/mali", WORLD)
    bad = good[0].model_copy(update=change)
    assert evidence(search_task(evidence=[*good, bad]), WORLD).reason == reason


def test_a_clue_that_no_quote_states_is_named() -> None:
    capital = Clue(relation="capital", target=EntityRef(entity="capital-city/bamako"))
    query = Query(type="country", clues=(*MALI.clues, capital))
    task = search_task(query, evidence=quotes(MALI, "country/mali", WORLD))
    certificate = evidence(task, WORLD)
    assert certificate.reason == "clue_without_evidence"
    assert certificate.detail["clue"] == capital.model_dump(mode="json")


def test_another_sentence_that_names_both_is_no_evidence_for_the_relation() -> None:
    """The sentence must be the one that states this fact: "Mali borders Niger" says nothing of capitals."""
    page = WORLD.documents["country/mali"]
    first = page.text.index("\n")
    opening = Evidence(document=page.id, document_hash=page.hash, start=0, end=first, quote=page.text[:first])
    assert evidence(search_task(evidence=[opening]), WORLD).reason == "clue_without_evidence"


def test_bands_need_the_number_and_nested_clues_one_entity_that_is_said_to_fit_all() -> None:
    area = Clue(relation="area", target=Band(low=1_200_000, high=1_250_000))
    inner = Query(type="country", clues=(area, MALI.clues[0]))
    query = Query(type="capital city", clues=(Clue(relation="capital", inverse=True, target=inner),))
    complete = quotes(inner, "country/mali", WORLD) + quotes(
        Query(
            type="capital city",
            clues=(Clue(relation="capital", inverse=True, target=EntityRef(entity="country/mali")),),
        ),
        "capital-city/bamako",
        WORLD,
    )
    task = search_task(query, "capital-city/bamako", "Which city is it?", evidence=complete)
    assert evidence(task, WORLD).outcome is Outcome.KEEP
    for left_out in range(len(complete)):
        short = complete[:left_out] + complete[left_out + 1 :]
        assert evidence(search_task(query, "capital-city/bamako", "Which city is it?", evidence=short), WORLD).reason


@pytest.mark.parametrize(
    ("said", "reason"),
    [("Mali borders Niger since last year.", "relative_time"), ("As of May 2019, Mali now borders Niger.", "")],
)
def test_a_quote_that_moves_with_its_page_s_date_is_no_evidence(said: str, reason: str) -> None:
    world = World(
        "dated",
        entities=WORLD.entities.values(),
        relations=WORLD.relations.values(),
        facts=[Fact("country/mali", "borders", "country/niger", 0, 0, len(said))],
        documents=[Document(id="country/mali", title="Mali", text=said, hash="1")],
        sources=WORLD.sources,
    )
    quote = Evidence(document="country/mali", document_hash="1", start=0, end=len(said), quote=said)
    query = Query(type="country", clues=MALI.clues[:1])
    assert evidence(search_task(query, evidence=[quote], world=world), world).reason == reason


def test_a_span_about_somebody_else_is_not_evidence() -> None:
    """The passage tells what matters to Ben; a question about Ann cannot rest on it, nor on a symbol it does not name."""
    text = "Ann met Ben.\nThe rainbow mural matters to me, said Ben; the eagle stands for freedom."
    span = text.index("The"), len(text)
    names = {"ann": "Ann", "ben": "Ben", "rainbow": "rainbow", "phoenix": "phoenix"}
    type_of = {"ann": "person", "ben": "person", "rainbow": "symbol", "phoenix": "symbol"}
    world = World(
        "friends",
        entities=[Entity(id=i, type=type_of[i], title=name, name=name) for i, name in names.items()],
        relations=[
            Relation(
                name="values", subject_type="person", object_type="symbol", functional=False, complete=True,
                sentence="{s} values {o}.", clue="values {o}", inverse_clue="matters to {s}",
            )
        ],
        facts=[Fact(s, "values", o, 0, *span) for s, o in [("ann", "phoenix"), ("ann", "rainbow"), ("ben", "rainbow")]],
        documents=[Document(id=i, title=name, text=text, hash="1") for i, name in names.items()],
        sources=[Source(package="chat", version="1", licence="MIT")],
    )  # fmt: skip

    def judged(person: str, symbol: str) -> str:
        query = Query(type="symbol", clues=(Clue(relation="values", inverse=True, target=EntityRef(entity=person)),))
        quote = Evidence(document=person, document_hash="1", start=span[0], end=span[1], quote=text[slice(*span)])
        return evidence(search_task(query, symbol, "Which symbol is it?", evidence=[quote], world=world), world).reason

    assert judged("ben", "rainbow") == ""
    assert judged("ben", "phoenix") == "clue_without_evidence"
    assert judged("ann", "phoenix") == "clue_without_evidence", "unsupported: the passage names no phoenix"
    assert judged("ann", "rainbow") == "clue_without_evidence", "wrong subject: the passage is about Ben"
