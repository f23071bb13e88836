"""What a trainer writes, and what it goes on from."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoTokenizer

from infra.store import KeyMissing
from infra.weights import digest
from rl.learn.checkpoint import MANIFEST_FILE, OPTIMISER_FILE, WEIGHTS_FILE, TrainerError, whole_folder
from rl.learn.learner import Learner
from tests.rl.learn.small import apart, mixed, read, setup, weights, write_policy


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_policy(tmp_path_factory.mktemp("policies") / "small")


@pytest.fixture
def learner(policy: Path, tmp_path: Path) -> Learner:
    return Learner(setup(policy, tmp_path / "weights", warmup=3))


def test_published_weights_are_a_model_folder_like_the_policy_s(learner: Learner, policy: Path) -> None:
    learner.step(mixed())
    published = learner.publish(1)
    folder = Path(published.folder)
    tensors = load_file(folder / WEIGHTS_FILE)
    assert published.version == 1
    assert published.sha256 == digest(tensors)
    assert tensors.keys() == load_file(policy / WEIGHTS_FILE).keys()
    assert apart(read(folder), weights(learner)) == 0
    assert {path.name for path in folder.iterdir()} == {path.name for path in policy.iterdir()}
    assert AutoTokenizer.from_pretrained(folder).get_vocab() == AutoTokenizer.from_pretrained(policy).get_vocab()


def test_a_tied_model_learns_tied_and_is_published_with_a_head_of_its_own(tmp_path: Path) -> None:
    tied = write_policy(tmp_path / "tied", tied=True)
    learner = Learner(setup(tied, tmp_path / "weights"))
    learner.step(mixed())
    folder = Path(learner.publish(1).folder)
    tensors = load_file(folder / WEIGHTS_FILE)
    assert torch.equal(tensors["lm_head.weight"], tensors["model.embed_tokens.weight"])
    assert json.loads((folder / "config.json").read_text("utf-8"))["tie_word_embeddings"] is False
    learner.save(str(tmp_path / "saved"))
    learner.step(mixed(1))
    resumed = Learner(setup(tied, tmp_path / "weights"))
    resumed.load(str(tmp_path / "saved"))
    resumed.step(mixed(1))
    assert apart(weights(learner), weights(resumed)) == 0


def test_the_last_two_versions_stay_and_those_of_a_future_that_did_not_happen_go(learner: Learner) -> None:
    parent = Path(learner.publish(0).folder).parent
    for version in (1, 2, 3):
        learner.publish(version)
    assert sorted(path.name for path in parent.iterdir()) == ["v2", "v3"]
    again = learner.publish(2)
    assert sorted(path.name for path in parent.iterdir()) == ["v2"]
    assert again.sha256 == digest(load_file(Path(again.folder) / WEIGHTS_FILE))


def test_a_folder_that_could_not_be_finished_is_not_there_and_the_old_one_stays(tmp_path: Path) -> None:
    folder = tmp_path / "out" / "v1"
    with whole_folder(folder) as partial:
        (partial / "file").write_text("old", "utf-8")
    with pytest.raises(KeyMissing), whole_folder(folder) as partial:
        shutil.copyfile(tmp_path / "absent", partial / "file")
    assert (folder / "file").read_text("utf-8") == "old"
    assert [path.name for path in folder.parent.iterdir()] == ["v1"]
    with whole_folder(folder) as partial:
        (partial / "file").write_text("new", "utf-8")
    assert (folder / "file").read_text("utf-8") == "new"


@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_resumed_trainer_goes_on_bit_for_bit(learner: Learner, policy: Path, tmp_path: Path, before: int) -> None:
    for seed in range(before):
        learner.step(mixed(seed))
    learner.save(str(tmp_path / "saved"))
    resumed = Learner(setup(policy, tmp_path / "weights", warmup=3))
    resumed.step(mixed(99))  # what it had learned meanwhile is gone
    resumed.load(str(tmp_path / "saved"))
    assert resumed.version == before
    seen = [each.step(mixed(before)) for each in (learner, resumed)]
    assert seen[0]["rate/step"] == seen[1]["rate/step"] == pytest.approx(1e-3 * (before + 1) / 3)
    assert apart(weights(learner), weights(resumed)) == 0
    assert learner.publish(9).sha256 == resumed.publish(9).sha256


def test_a_checkpoint_is_a_policy_to_begin_from(learner: Learner, policy: Path, tmp_path: Path) -> None:
    learner.step(mixed())
    learner.save(str(tmp_path / "saved"))
    assert (tmp_path / "saved" / "build.json").read_bytes() == (policy / "build.json").read_bytes()
    fresh = Learner(setup(tmp_path / "saved", tmp_path / "weights"))
    assert apart(weights(fresh), weights(learner)) == 0
    published = {path.name for path in Path(fresh.publish(0).folder).iterdir()}
    assert not published & {MANIFEST_FILE, OPTIMISER_FILE}


@pytest.mark.parametrize("name", [WEIGHTS_FILE, OPTIMISER_FILE, MANIFEST_FILE])
def test_a_truncated_checkpoint_is_refused_and_nothing_is_loaded(learner: Learner, tmp_path: Path, name: str) -> None:
    learner.step(mixed())
    learner.save(str(tmp_path / "saved"))
    before = weights(learner)
    file = tmp_path / "saved" / name
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(TrainerError, match=f"{name}: .*go on from an earlier checkpoint"):
        learner.load(str(tmp_path / "saved"))
    assert apart(before, weights(learner)) == 0


def test_one_changed_byte_and_a_missing_file_are_found(learner: Learner, tmp_path: Path) -> None:
    learner.save(str(tmp_path / "saved"))
    file = tmp_path / "saved" / WEIGHTS_FILE
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(TrainerError, match="other bytes than were written"):
        learner.load(str(tmp_path / "saved"))
    file.unlink()
    with pytest.raises(TrainerError, match="cannot be read"):
        learner.load(str(tmp_path / "saved"))


def test_what_is_no_checkpoint_or_another_model_s_is_refused(learner: Learner, policy: Path, tmp_path: Path) -> None:
    with pytest.raises(TrainerError, match=r"has no manifest\.json; remove the checkpoint"):
        learner.load(str(policy))
    wide = Learner(setup(write_policy(tmp_path / "wide", hidden=64), tmp_path / "weights"))
    wide.save(str(tmp_path / "saved"))
    with pytest.raises(TrainerError, match=r"holds another model \(model.embed_tokens.weight is \(\d+, 64\), here"):
        learner.load(str(tmp_path / "saved"))
    foreign = {"version": 1, "updates": 1, "files": {"note": [2, hashlib.sha256(b"hi").hexdigest()]}}
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / MANIFEST_FILE).write_text(json.dumps(foreign), "utf-8")
    with pytest.raises(TrainerError, match=r"names no model\.safetensors"):
        learner.load(str(tmp_path / "foreign"))


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainerError, match="is no model folder"):
        Learner(setup(tmp_path, tmp_path))
    (tmp_path / "config.json").write_text('{"model_type": "bert"}', "utf-8")
    with pytest.raises(TrainerError, match="cannot be trained"):
        Learner(setup(tmp_path, tmp_path))
