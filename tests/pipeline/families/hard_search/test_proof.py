"""Every task of the small world proved again by brute force."""

from pipeline.corpora.world import World
from pipeline.families.hard_search.proof import Names, normal, unique
from schemas.answer import EntityAnswer
from schemas.query import Clue, EntityRef, Query
from schemas.task import Task
from tests.pipeline.families.hard_search.brute import satisfy


def asked(task: Task) -> Query:
    assert isinstance(task.constraints, Query)
    return task.constraints


def gold(task: Task) -> EntityAnswer:
    assert isinstance(task.answer, EntityAnswer)
    return task.answer


def without_each_clue(query: Query) -> list[Query]:
    """The query less one clue, once for every clue on every level."""
    found = []
    for i, clue in enumerate(query.clues):
        rest = query.clues[:i] + query.clues[i + 1 :]
        found += [query.model_copy(update={"clues": rest})] if rest else []
        if isinstance(clue.target, Query):
            for inner in without_each_clue(clue.target):
                weaker = clue.model_copy(update={"target": inner})
                found.append(query.model_copy(update={"clues": (*query.clues[:i], weaker, *query.clues[i + 1 :])}))
    return found


def test_one_entity_is_certain_and_no_other_is_possible(world: World, tasks: list[Task]) -> None:
    for task in tasks[:60]:
        assert satisfy(world, asked(task), maybe=False) == {gold(task).entity}, task.question
        assert satisfy(world, asked(task), maybe=True) == {gold(task).entity}, task.question


def test_every_top_level_clue_is_needed(world: World, tasks: list[Task]) -> None:
    for task in tasks[:60]:
        query = asked(task)
        for i in range(len(query.clues)):
            weaker = Query(type=query.type, clues=query.clues[:i] + query.clues[i + 1 :])
            assert len(satisfy(world, weaker, maybe=False)) >= 2, task.question


def test_a_description_fits_one_entity_and_needs_each_of_its_clues(world: World, tasks: list[Task]) -> None:
    described = [t for t in tasks if "/described" in t.stratum]
    assert len(described) > 10
    for task in described:
        inner = next(c.target for c in asked(task).clues if isinstance(c.target, Query))
        assert len(satisfy(world, inner, maybe=True)) == 1
        for i in range(len(inner.clues) if len(inner.clues) > 1 else 0):
            weaker = Query(type=inner.type, clues=inner.clues[:i] + inner.clues[i + 1 :])
            assert len(satisfy(world, weaker, maybe=False)) >= 2, task.question


def test_a_gap_makes_a_question_about_it_not_unique(world: World) -> None:
    """Mali's languages are unknown, so it may speak French too: two countries are possible though one is certain."""

    def clue(relation: str, end: str) -> Clue:
        return Clue(relation=relation, target=EntityRef(entity=end))

    query = Query(
        type="country",
        clues=(
            clue("borders", "country/senegal"),
            clue("borders", "country/ivory-coast"),
            clue("official_language", "language/french"),
        ),
    )
    assert world.certain(query) == {"country/guinea"}
    assert world.possible(query) == {"country/guinea", "country/mali"}
    assert not unique(world, query, "country/guinea")


def test_evidence_quotes_its_page_and_names_both_ends_of_a_fact(world: World, tasks: list[Task]) -> None:
    for task in tasks:
        assert len(task.evidence) == asked(task).hops
        for item in task.evidence:
            page = world.documents[item.document]
            assert page.hash == item.document_hash
            assert page.text[item.start : item.end] == item.quote
            assert world.entities[item.document].name.casefold() in item.quote.casefold()


def test_runners_up_fit_all_clues_but_one(world: World, tasks: list[Task]) -> None:
    by_name = {(e.type, e.name.removeprefix("the ")): e.id for e in world.entities.values()}
    assert all(t.near_misses for t in tasks)
    for task in tasks[:60]:
        query = asked(task)
        for near in task.near_misses:
            entity = by_name[query.type, near.answer]
            broken = [
                c for c in query.clues if entity not in satisfy(world, Query(type=query.type, clues=(c,)), maybe=False)
            ]
            assert len(broken) == 1, (task.question, near)


def test_no_question_says_its_answer(tasks: list[Task]) -> None:
    for task in tasks:
        words = " ".join(normal(task.question))
        for name in (gold(task).name, *gold(task).aliases):
            assert f" {' '.join(normal(name))} " not in f" {words} ", task.question


def test_a_word_that_only_the_answer_has_is_a_leak_and_a_common_one_is_not(world: World) -> None:
    names = Names(world)
    algeria = names.answer("country/algeria")
    assert names.leaks("Which country uses the Algerian dinar?", algeria)
    assert names.leaks("Which country is ALGÉRIA?", algeria)
    assert not names.leaks("Which country borders Niger?", algeria)
    assert names.leaks("Which country borders Guinea-Bissau?", names.answer("country/guinea"))
    assert not names.leaks("Which country borders Nigeria?", names.answer("country/mali"))


def test_an_answer_goes_without_its_article_and_is_right_with_it(world: World) -> None:
    answer = Names(world).answer("country/gambia")
    assert (answer.name, answer.aliases) == ("Gambia", ("the Gambia",))
