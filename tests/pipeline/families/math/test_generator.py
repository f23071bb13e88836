import json
import subprocess
import sys
from collections import Counter
from random import Random

import pytest

from pipeline.families.math import TEMPLATES, Math
from pipeline.families.math.generator import UnknownTemplate, resolve, solve
from pipeline.families.math.prompts import SHOTS, example_parameters, messages
from schemas.config import MathConfig
from schemas.query import Problem
from schemas.task import Task

ALL = Math(MathConfig())


def task(seed: int, index: int, math: Math = ALL) -> Task:
    return math(seed, index)


def test_a_candidate_is_the_same_alone_and_in_a_batch() -> None:
    batch = [ALL(7, i) for i in range(60)]
    assert Math(MathConfig())(7, 41) == batch[41]
    assert len({t.task_id for t in batch}) > 50


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


def test_every_template_comes_as_often_in_a_round_as_its_share() -> None:
    n = sum(t.share for t in TEMPLATES.values())
    for turn in range(2):
        made = [task(5, turn * n + i) for i in range(n)]
        drawn = Counter(t.constraints.template for t in made if isinstance(t.constraints, Problem))
        assert drawn == {name: t.share for name, t in TEMPLATES.items()}


def test_a_stored_problem_gives_its_gold_back_by_both_solvers() -> None:
    for i in range(len(TEMPLATES)):
        made = task(1, i)
        problem = Problem.model_validate_json(made.constraints.model_dump_json())
        assert solve(problem) == made.answer
        assert resolve(problem).kind == made.answer.kind


def test_no_candidate_repeats_a_worked_example() -> None:
    choices = TEMPLATES["choices"]
    shown = [example_parameters(choices, i) for i in range(SHOTS)]
    one = Math(MathConfig(templates=("choices",)))
    rng_draws = [choices.draw(Random(f"2/{i}/draw")) for i in range(400)]
    assert any(drawn in shown for drawn in rng_draws)
    asked = [task(2, i, one).constraints for i in range(400)]
    assert not any(isinstance(p, Problem) and p.parameters in shown for p in asked)


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
