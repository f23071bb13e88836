import random

from pipeline.census import Census
from pipeline.filters.duplicates import duplicates
from schemas.answer import NumberAnswer
from schemas.certificate import Outcome
from schemas.query import Clue, EntityRef, Query
from tests.pipeline.tasks import MALI, math_task, search_task

FLIPPED = Query(type="country", clues=MALI.clues[::-1])


def test_the_same_clues_in_another_order_are_the_same_question() -> None:
    first = search_task(index=4)
    again = search_task(FLIPPED, question="Which country borders Senegal and Niger?", index=9)
    census = Census.of([again, first])
    assert duplicates(first, census).outcome is Outcome.KEEP
    second = duplicates(again, census)
    assert second.reason == "duplicate"
    assert second.detail == {"same": "signature", "of": first.task_id, "index": 4}


def test_the_same_words_in_other_case_accents_and_marks_are_the_same_question() -> None:
    texts = ["What is the capital of Côte d'Ivoire?", "what is  the capital of cote d’ivoire ?"]
    tasks = [math_task(text, index=i) for i, text in enumerate(texts)]
    census = Census.of(tasks)
    assert [duplicates(task, census).reason for task in tasks] == ["", "duplicate"]


def test_signs_are_part_of_a_formula() -> None:
    tasks = [math_task(f"What is 7 {sign} 5?", index=i) for i, sign in enumerate("+-*/")]
    census = Census.of(tasks)
    assert {duplicates(task, census).outcome for task in tasks} == {Outcome.KEEP}


def test_one_question_with_two_answers_has_no_winner() -> None:
    tasks = [math_task("What is 7 + 5?", NumberAnswer(value=value), index=int(value)) for value in ("12", "11")]
    census = Census.of(tasks)
    for task in tasks:
        certificate = duplicates(task, census)
        assert certificate.reason == "conflicting_answers"
        assert certificate.detail["answers"] == ["11", "12"]


def test_the_same_task_made_twice_is_kept_once() -> None:
    tasks = [search_task(index=index) for index in (3, 8)]
    assert tasks[0].task_id == tasks[1].task_id
    census = Census.of(tasks)
    assert [duplicates(task, census).outcome for task in tasks] == [Outcome.KEEP, Outcome.REJECT]


def test_the_order_of_batches_changes_nothing() -> None:
    tasks = [
        search_task(
            Query(type="country", clues=(Clue(relation="borders", target=EntityRef(entity=f"country/{name}")),)),
            question=f"Which country borders {name}?",
            evidence=(),
            index=index,
        )
        for index, name in enumerate(["niger", "mali", "chad", "mali", "niger", "togo"] * 3)
    ]
    expected = [c.outcome for c in (duplicates(t, Census.of(tasks)) for t in tasks)]
    assert expected.count(Outcome.KEEP) == 4
    for seed in range(5):
        shuffled = random.Random(seed).sample(tasks, len(tasks))
        census = Census.of(shuffled)
        assert [duplicates(t, census).outcome for t in tasks] == expected
