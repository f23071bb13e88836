from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.tables import Tables
from schemas.query import Band, Clue, EntityRef, Query
from tests.worlds import toy_world

WORLD = toy_world()
TABLES = Tables(WORLD)


def queries(type: str, depth: int) -> st.SearchStrategy[Query]:
    return st.lists(clues(type, depth), min_size=1, max_size=3).map(lambda found: Query(type=type, clues=tuple(found)))


def clues(type: str, depth: int) -> st.SearchStrategy[Clue]:
    """Any clue about the type: forward and inverse, to an entity, a band or a nested query."""
    choices = []
    for relation in WORLD.relations.values():
        ends = [
            (False, relation.subject_type, relation.object_type),
            (True, relation.object_type, relation.subject_type),
        ]
        for inverse, here, there in ends:
            if here != type:
                continue
            targets: list[st.SearchStrategy[Band | EntityRef | Query]] = []
            if there is None:
                bounds = st.tuples(st.floats(0, 2e6), st.floats(0, 2e6)).map(sorted)
                targets.append(bounds.map(lambda b: Band(low=b[0], high=b[1])))
                targets.append(st.floats(0, 2e6).map(lambda low: Band(low=low)))
            else:
                targets.append(st.sampled_from(WORLD.of_type(there)).map(lambda e: EntityRef(entity=e)))
                if depth > 1:
                    targets.append(queries(there, depth - 1))
            choices.append(
                st.one_of(targets).map(
                    lambda target, name=relation.name, inverse=inverse: Clue(
                        relation=name, inverse=inverse, target=target
                    )
                )
            )
    return st.one_of(choices)


@given(st.sampled_from(["country", "currency", "language", "capital city"]).flatmap(lambda type: queries(type, 3)))
@settings(max_examples=60, deadline=None)
def test_joins_and_sets_read_the_world_alike(query: Query) -> None:
    assert TABLES.certain(query) == WORLD.certain(query)
    assert TABLES.possible(query) == WORLD.possible(query)


def test_unknown_languages_leave_mali_possible() -> None:
    french = Query(
        type="country", clues=(Clue(relation="official_language", target=EntityRef(entity="language/french")),)
    )
    assert TABLES.possible(french) - TABLES.certain(french) == {"country/mali", "country/burkina-faso"}


def test_a_relation_without_facts_proves_nothing() -> None:
    query = Query(type="country", clues=(Clue(relation="borders", target=EntityRef(entity="country/nowhere")),))
    assert TABLES.certain(query) == TABLES.possible(query) == frozenset()
