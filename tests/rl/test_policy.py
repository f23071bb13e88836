import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from rl.policy import UNBUILT, Policy, PolicyError
from schemas.episode import Limits
from schemas.query import Clue, EntityRef, Query
from schemas.task import Task
from tests.rl.test_env import task
from tests.rl.tiny import FORMAT, byte_tokenizer
from tests.worlds import toy_world


def asked_about(*named: str) -> Task:
    """A task with the answer Niger whose question names these entities, the last one inside a description."""
    inner = Query(type="city", clues=(Clue(relation="capital", inverse=True, target=EntityRef(entity=named[-1])),))
    clues = tuple(Clue(relation="borders", target=EntityRef(entity=id)) for id in named[:-1])
    query = Query(type="country", clues=(*clues, Clue(relation="capital", target=inner)))
    fields = {name: getattr(task("search"), name) for name in Task.model_fields if name != "task_id"}
    return Task.create(**{**fields, "constraints": query})


def policy_folder(path: Path, covers: list[str]) -> Path:
    """As much of a model as its caller reads: tokenizer and build file, and files that make it a model folder."""
    path.mkdir(parents=True)
    byte_tokenizer().save(str(path / "tokenizer.json"))
    (path / "config.json").write_text("{}")
    save_file({"weight": np.zeros(1)}, path / "model.safetensors")
    about = {"config": {"limits": {"max_tokens": 64}, "seed": 0}, "world": {"name": "toy"}, "covers": covers}
    (path / "build.json").write_text(json.dumps(about))
    return path


def test_a_task_is_out_of_reach_by_its_first_unknown_name() -> None:
    world = toy_world()
    known = Policy(FORMAT, covers=frozenset({"Niger", "Mali", "Chad"}))
    assert known.unknown_name(asked_about("country/mali", "country/chad"), world) is None
    assert known.unknown_name(asked_about("country/togo", "country/chad"), world) == "Togo"
    assert known.unknown_name(asked_about("country/mali", "country/togo"), world) == "Togo"
    without_answer = Policy(FORMAT, covers=frozenset({"Mali", "Chad"}))
    assert without_answer.unknown_name(asked_about("country/mali", "country/chad"), world) == "Niger"


def test_a_policy_that_declares_no_names_knows_them_all() -> None:
    assert Policy(FORMAT).unknown_name(asked_about("country/mali"), toy_world()) is None


def test_a_folder_says_what_its_policy_was_built_with(tmp_path: Path) -> None:
    folder = policy_folder(tmp_path / "policy", ["Niger"])
    policy = Policy.load(folder)
    assert (policy.covers, policy.limits) == (frozenset({"Niger"}), Limits(max_tokens=64))
    (folder / "build.json").unlink()
    assert (Policy.load(folder).covers, Policy.load(folder).limits) == (None, UNBUILT)
    assert Policy.load(folder, Limits(max_turns=3)).limits == UNBUILT.model_copy(update={"max_turns": 3})


@pytest.mark.parametrize("text", ["", "[]", '{"covers": 3}', '{"config": {"limits": {"max_turns": 0}}}'])
def test_a_build_file_that_no_build_wrote_is_refused_by_path(tmp_path: Path, text: str) -> None:
    folder = policy_folder(tmp_path / "policy", [])
    (folder / "build.json").write_text(text)
    with pytest.raises(PolicyError, match=r"build\.json: is not what a build writes"):
        Policy.load(folder)
