"""The two readings of a query, worked out by hand and recomputed over the fact table."""

import random

import polars as pl
import pytest

from pipeline.corpora.pages import render
from pipeline.corpora.world import World
from schemas.query import Band, Clue, EntityRef, Query
from schemas.world import Entity, Fact, Relation, Source
from tests.worlds import atlas, toy_world


def _relation(name: str, subject: str, object: str | None, functional: bool, complete: bool) -> Relation:
    return Relation(
        name=name,
        subject_type=subject,
        object_type=object,
        functional=functional,
        complete=complete,
        sentence="{s} " + name + " {o}.",
        clue=name + " {o}",
    )


@pytest.fixture(scope="module")
def three() -> World:
    """Countries A, B, C. A and B border each other; what C borders is a gap, and its capital and population are unknown.

    A has the capital a and 10 people, B has b and 20. Only A is in the club O, and the club's list is complete.
    """
    entities = [Entity(id=x, type="country", title=x, name=x) for x in "ABC"]
    entities += [Entity(id=x, type="city", title=f"{x} city", name=x) for x in "ab"]
    entities += [Entity(id="O", type="club", title="O", name="O")]
    relations = [
        _relation("borders", "country", "country", functional=False, complete=True),
        _relation("capital", "country", "city", functional=True, complete=False),
        _relation("population", "country", None, functional=True, complete=False),
        _relation("member_of", "country", "club", functional=False, complete=True),
    ]
    facts = [
        Fact("A", "borders", "B", 0),
        Fact("B", "borders", "A", 0),
        Fact("A", "capital", "a", 0),
        Fact("B", "capital", "b", 0),
        Fact("A", "population", 10.0, 0),
        Fact("B", "population", 20.0, 0),
        Fact("A", "member_of", "O", 0),
    ]
    sources = (Source(package="p", version="1", licence="MIT"),)
    documents, placed = render(entities, relations, facts, sources)
    return World(
        "three",
        entities=entities,
        relations=relations,
        facts=placed,
        documents=documents,
        sources=sources,
        gaps=[("C", "borders")],
    )


def _to(entity: str, relation: str, inverse: bool = False) -> Clue:
    return Clue(relation=relation, inverse=inverse, target=EntityRef(entity=entity))


def _populated(low: float, high: float) -> Query:
    return Query(type="country", clues=(Clue(relation="population", target=Band(low=low, high=high)),))


@pytest.mark.parametrize(
    ("type", "clue", "certain", "possible"),
    [
        ("club", _to("A", "member_of", inverse=True), "O", "O"),
        # A is closed and borders only B; C is a gap, so it may border A.
        ("country", _to("A", "borders"), "B", "BC"),
        # the club's list is complete without gaps: B and C are denied.
        ("country", _to("O", "member_of"), "A", "A"),
        # the population of C is unknown, so it may lie in any band.
        ("country", Clue(relation="population", target=Band(low=15, high=25)), "B", "BC"),
        ("country", Clue(relation="population", target=Band(high=5)), "", "C"),
        ("country", Clue(relation="population", target=Band(low=10, high=10)), "A", "AC"),
        # the capital of A is known and functional; that of C could be any city.
        ("city", _to("A", "capital", inverse=True), "a", "a"),
        ("city", _to("C", "capital", inverse=True), "", "ab"),
        # 5..15 people is surely A and perhaps C. Bordering A: surely B, perhaps C (a gap). A itself borders only B, which has 20.
        ("country", Clue(relation="borders", target=_populated(5, 15)), "B", "BC"),
        # 15..25 people is surely B and perhaps C, whose capital could be any city.
        ("city", Clue(relation="capital", inverse=True, target=_populated(15, 25)), "b", "ab"),
        # nobody surely has 1..2 people; C perhaps. A and B are closed in borders and do not border C; C itself is open.
        ("country", Clue(relation="borders", target=_populated(1, 2)), "", "C"),
    ],
)
def test_certain_is_what_facts_prove_and_possible_what_they_do_not_refute(
    three: World, type: str, clue: Clue, certain: str, possible: str
) -> None:
    query = Query(type=type, clues=(clue,))
    assert three.certain(query) == set(certain)
    assert three.possible(query) == set(possible)


def test_clues_intersect_and_a_complete_one_shuts_out_the_unknown(three: World) -> None:
    query = Query(type="country", clues=(_to("B", "borders"), _to("O", "member_of")))
    assert three.possible(query) == three.certain(query) == {"A"}


def test_a_runner_up_satisfies_all_clues_but_one(three: World) -> None:
    in_club, wealthy = _to("O", "member_of"), Clue(relation="population", target=Band(low=15))
    assert three.runners_up(Query(type="country", clues=(in_club, wealthy))) == {"A": wealthy, "B": in_club}


def test_a_gap_opens_a_complete_relation_but_not_a_known_functional_one(three: World) -> None:
    assert not three.closed("C", "borders")
    assert three.closed("A", "borders") and three.closed("C", "member_of")
    assert three.closed("A", "capital") and not three.closed("C", "capital")


def test_the_hash_ignores_order_and_sees_every_part(three: World) -> None:
    def remade(**changed: object) -> World:
        parts = {
            "entities": three.entities.values(),
            "relations": three.relations.values(),
            "facts": three.facts,
            "documents": three.documents.values(),
            "sources": three.sources,
            "gaps": three.gaps,
        }
        return World("three", **(parts | changed))  # type: ignore[arg-type]

    assert remade(facts=reversed(three.facts), documents=reversed(three.documents.values())).hash == three.hash
    for changed in (
        {"gaps": ()},
        {"facts": three.facts[1:]},
        {"sources": ()},
        {"documents": [*three.documents.values()][1:]},
    ):
        assert remade(**changed).hash != three.hash, changed


def test_mali_could_have_any_official_language_in_the_toy_world() -> None:
    world = toy_world()
    query = Query(type="country", clues=(_to("language/hausa", "official_language"),))
    assert world.certain(query) == {"country/niger"}
    assert world.possible(query) == {"country/niger", "country/mali", "country/burkina-faso"}


def _random_query(world: World, rng: random.Random, type: str, depth: int) -> Query:
    """Up to three random clues that some member of the type satisfies, so that results are not all empty."""
    members = world.of_type(type)
    clues = []
    for _ in range(rng.randint(1, 3)):
        entity = rng.choice(members)
        forward = [
            f for r in world.relations.values() if r.subject_type == type for f in world.facts_of(entity, r.name)
        ]
        inverse = [r for r in world.relations.values() if r.object_type == type]
        if inverse and (not forward or rng.random() < 0.4):
            relation = rng.choice(inverse)
            subjects = sorted(world.subjects(relation.name, entity)) or list(world.of_type(relation.subject_type))
            clues.append(Clue(relation=relation.name, inverse=True, target=EntityRef(entity=rng.choice(subjects))))
        elif forward:
            fact = rng.choice(forward)
            if not isinstance(fact.object, str):
                wide = abs(fact.object) * rng.random()
                target: Band | EntityRef | Query = Band(low=fact.object - wide, high=fact.object + wide)
            elif depth > 1 and rng.random() < 0.5:
                target = _random_query(world, rng, world.entities[fact.object].type, depth - 1)
            else:
                target = EntityRef(entity=fact.object)
            clues.append(Clue(relation=fact.relation, target=target))
    return Query(type=type, clues=tuple(clues) or (_random_query(world, rng, "country", 1).clues[0],))


class _Table:
    """`certain` once more, as joins over one table of facts."""

    def __init__(self, world: World) -> None:
        self.facts = pl.DataFrame(
            [
                (
                    f.subject,
                    f.relation,
                    f.object if isinstance(f.object, str) else None,
                    f.object if not isinstance(f.object, str) else None,
                )
                for f in world.facts
            ],
            schema={"subject": pl.String, "relation": pl.String, "entity": pl.String, "number": pl.Float64},
            orient="row",
        )
        self.entities = pl.DataFrame(
            {"id": [e.id for e in world.entities.values()], "type": [e.type for e in world.entities.values()]}
        )

    def certain(self, query: Query) -> pl.DataFrame:
        found = self.entities.filter(pl.col("type") == query.type).select("id")
        for clue in query.clues:
            found = found.join(self.satisfying(clue), on="id", how="semi")
        return found

    def satisfying(self, clue: Clue) -> pl.DataFrame:
        rows = self.facts.filter(pl.col("relation") == clue.relation)
        near, far = ("entity", "subject") if clue.inverse else ("subject", "entity")
        match clue.target:
            case Band(low=low, high=high):
                rows = rows.filter(
                    (pl.col("number") >= (float("-inf") if low is None else low))
                    & (pl.col("number") <= (float("inf") if high is None else high))
                )
            case EntityRef(entity=entity):
                rows = rows.filter(pl.col(far) == entity)
            case Query() as inner:
                rows = rows.join(self.certain(inner), left_on=far, right_on="id", how="semi")
        return rows.select(pl.col(near).alias("id")).drop_nulls()


@pytest.mark.parametrize(("make", "rounds"), [(toy_world, 300), (atlas, 120)])
def test_joins_over_the_fact_table_find_the_same_certain_entities(make: object, rounds: int) -> None:
    world: World = make()  # type: ignore[operator]
    table = _Table(world)
    rng = random.Random("queries")
    found = 0
    for _ in range(rounds):
        query = _random_query(world, rng, rng.choice(("country", "language", "currency")), depth=3)
        certain = world.certain(query)
        assert certain == set(table.certain(query)["id"]), query
        assert certain <= world.possible(query), query
        found += len(certain)
    assert found > rounds / 2
