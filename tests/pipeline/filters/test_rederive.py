import pytest

from pipeline.families import generator
from pipeline.filters.rederive import rederive_by_joins, rederive_by_solver
from pipeline.tables import Tables
from schemas.answer import NumberAnswer
from schemas.certificate import Outcome
from schemas.config import CurateConfig
from schemas.task import Task
from tests.pipeline.tasks import math_task, search_task
from tests.worlds import toy_world

TABLES = Tables(toy_world())
MADE = [generator(CurateConfig(family="math"), None)(5, index) for index in range(80)]
TASKS = [task for task in MADE if isinstance(task, Task)]


def test_the_second_solver_agrees_with_the_first() -> None:
    assert len(TASKS) > 70
    assert {rederive_by_solver(task).outcome for task in TASKS} == {Outcome.KEEP}


def test_a_gold_off_by_one_is_found() -> None:
    plain = [t for t in TASKS if isinstance(t.answer, NumberAnswer) and "/" not in t.answer.value]
    assert len(plain) > 30
    for task in plain:
        assert isinstance(task.answer, NumberAnswer)
        value = f"{float(task.answer.value) + 1:g}" if "." in task.answer.value else str(int(task.answer.value) + 1)
        fields = dict(task) | {"answer": task.answer.model_copy(update={"value": value})}
        fields.pop("task_id")
        certificate = rederive_by_solver(Task.create(**fields))
        assert certificate.reason == "other_answer"
        assert str(certificate.detail["found"]).startswith(task.answer.value)


def test_an_entity_that_almost_fits_is_found() -> None:
    for wrong in ("algeria", "guinea", "senegal", "niger"):
        certificate = rederive_by_joins(search_task(answer=f"country/{wrong}"), TABLES)
        assert certificate.reason == "other_answer"
        assert certificate.detail["certain"] == certificate.detail["possible"] == ["country/mali"]


def test_each_way_refuses_the_other_kind_of_task() -> None:
    with pytest.raises(TypeError, match="not rederived by joins"):
        rederive_by_joins(math_task(), TABLES)
    with pytest.raises(TypeError, match="not rederived by a solver"):
        rederive_by_solver(search_task())
