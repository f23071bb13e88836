"""What holds for every family, those that come later included."""

from functools import cache
from pathlib import Path
from typing import get_args

import pytest

import pipeline.families
from pipeline.families import FAMILIES, FamilyError, Miss, generator
from pipeline.families.base import Generator
from pipeline.grading import Verdict, grade
from schemas.answer import canonical_answer
from schemas.config import CurateConfig, HardSearchConfig
from schemas.task import Family, Task
from tests.worlds import toy_world

SEED, CANDIDATES = 3, 60


def config(family: Family) -> CurateConfig:
    """The small world is asked about two of its types; without their names they are too small."""
    small = {"hard_search": HardSearchConfig(types=("country", "capital city"))} if family == "hard_search" else {}
    return CurateConfig.model_validate({"family": family, **small})


@cache
def made_by(family: Family) -> tuple[Generator, list[Task]]:
    make = generator(config(family), toy_world())
    return make, [task for index in range(CANDIDATES) if isinstance(task := make(SEED, index), Task)]


def test_every_package_of_families_is_registered() -> None:
    here = Path(pipeline.families.__file__).parent
    packages = {path.parent.name for path in here.glob("*/__init__.py")}
    assert packages == set(FAMILIES) == set(get_args(Family))


@pytest.mark.parametrize("family", FAMILIES)
class TestEveryFamily:
    def test_names_itself(self, family: Family) -> None:
        make, tasks = made_by(family)
        assert make.family == family
        assert {(t.family, t.lineage.generator, t.lineage.version) for t in tasks} == {(family, family, make.version)}

    def test_yields_tasks_most_of_the_time(self, family: Family) -> None:
        assert len(made_by(family)[1]) > 0.8 * CANDIDATES

    def test_stored_answers_grade_right(self, family: Family) -> None:
        for task in made_by(family)[1]:
            said = canonical_answer(task.answer)
            assert grade(task.answer, f"<answer>{said}</answer>").verdict == Verdict.RIGHT, (said, task.answer)

    def test_near_misses_grade_wrong(self, family: Family) -> None:
        for task in made_by(family)[1]:
            assert task.near_misses, task.question
            for near in task.near_misses:
                verdict = grade(task.answer, f"<answer>{near.answer}</answer>").verdict
                assert verdict == Verdict.WRONG, (near, task.answer)

    def test_a_candidate_alone_is_the_candidate_of_the_batch(self, family: Family) -> None:
        for task in made_by(family)[1][::20]:
            alone = generator(config(family), toy_world())
            assert alone(task.lineage.seed, task.lineage.index) == task

    def test_signatures_tell_questions_apart(self, family: Family) -> None:
        tasks = made_by(family)[1]
        assert len({t.constraints.signature for t in tasks}) > 0.7 * len(tasks)


def test_a_family_that_is_not_registered_is_refused_by_name() -> None:
    unknown = CurateConfig.model_construct(family="riddles")
    with pytest.raises(FamilyError, match="family=riddles: not registered; one of hard_search, math"):
        generator(unknown, None)


def test_hard_search_without_a_world_is_refused() -> None:
    with pytest.raises(FamilyError, match="family=hard_search: asks about a world and got none"):
        generator(CurateConfig(family="hard_search"), None)


def test_math_needs_no_world() -> None:
    assert not isinstance(generator(CurateConfig(family="math"), None)(0, 0), Miss)
