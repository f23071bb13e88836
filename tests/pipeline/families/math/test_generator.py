import json
import subprocess
import sys

import pytest

from pipeline.families.base import Miss
from pipeline.families.math import TEMPLATES, Math
from pipeline.families.math.generator import UnknownTemplate, resolve, solve
from pipeline.families.math.prompts import SHOTS, messages
from schemas.config import MathConfig
from schemas.query import Problem
from schemas.task import Task

ALL = Math(MathConfig())


def task(seed: int, index: int, math: Math = ALL) -> Task:
    made = math(seed, index)
    assert isinstance(made, Task)
    return made


def test_a_candidate_is_the_same_alone_and_in_a_batch() -> None:
    batch = [ALL(7, i) for i in range(60)]
    assert Math(MathConfig())(7, 41) == batch[41]
    assert len({t.task_id for t in batch if isinstance(t, Task)}) == sum(isinstance(t, Task) for t in batch)


def test_a_candidate_is_the_same_in_another_process() -> None:
    script = (
        "from pipeline.families.math import Math\nfrom schemas.config import MathConfig\nimport json\n"
        "print(json.dumps([Math(MathConfig())(3, i).model_dump(mode='json') for i in range(30)], sort_keys=True))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
        ).stdout
        for seed in ("0", "1")
    }
    here = json.dumps([task(3, i).model_dump(mode="json") for i in range(30)], sort_keys=True)
    assert outputs == {here + "\n"}


def test_every_template_comes_once_a_round() -> None:
    n = len(TEMPLATES)
    for turn in range(3):
        made = [ALL(5, turn * n + i) for i in range(n)]
        templates = [t.constraints.template for t in made if isinstance(t, Task) and isinstance(t.constraints, Problem)]
        assert len(set(templates)) == len(templates) == sum(isinstance(t, Task) for t in made)


def test_a_stored_problem_gives_its_gold_back_by_both_solvers() -> None:
    for i in range(len(TEMPLATES)):
        made = task(1, i)
        problem = Problem.model_validate_json(made.constraints.model_dump_json())
        assert solve(problem) == made.answer
        assert resolve(problem).kind == made.answer.kind


def test_a_draw_that_repeats_a_worked_example_is_a_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Math(MathConfig(templates=("ages",)))
    repeated = task(2, 0, one).constraints
    assert isinstance(repeated, Problem)
    monkeypatch.setattr("pipeline.families.math.generator.example_parameters", lambda template, i: repeated.parameters)
    assert one(2, 0) == Miss(reason="worked_example")


def test_both_arms_show_the_same_examples_and_only_one_shows_steps() -> None:
    asked = task(1, 0, Math(MathConfig(templates=("running_total",))))
    reasoned, direct = messages(asked, reasoning=True), messages(asked, reasoning=False)
    assert [m["content"] for m in reasoned if m["role"] == "user"] == [
        m["content"] for m in direct if m["role"] == "user"
    ]
    assert len(direct) == 1 + 2 * SHOTS + 1
    assert all(m["content"].startswith("Answer: ") for m in direct if m["role"] == "assistant")
    assert all(m["content"].count("\n") >= 3 for m in reasoned if m["role"] == "assistant")


def test_a_prompt_does_not_depend_on_the_gold() -> None:
    asked = task(1, 0, Math(MathConfig(templates=("ages",))))
    other = asked.model_copy(update={"answer": asked.answer.model_copy(update={"value": "999983"})})
    assert messages(other, reasoning=True) == messages(asked, reasoning=True)


def test_a_dataset_template_records_its_source() -> None:
    knobs = task(1, 0, Math(MathConfig(templates=("gym_chain_sum",)))).lineage.knobs
    assert (
        knobs["source"] == 'reasoning_gym 0.1.25 chain_sum {"max_digits":2,"max_terms":4,"min_digits":1,"min_terms":4}'
    )


def test_an_unknown_template_is_refused_by_name() -> None:
    with pytest.raises(UnknownTemplate, match="template=sudoku: not registered"):
        Math(MathConfig(templates=("sudoku",)))
