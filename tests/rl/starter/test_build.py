"""The recipe from end to end, with so few steps that the policy learns nothing."""

from pathlib import Path

import pytest

from infra.settings import ASSETS, Settings
from rl.policy import Policy
from rl.starter.build import BuildConfig, build

FEW = BuildConfig.model_validate(
    {
        "worlds": 1,
        "tasks": 24,
        "lookups": 24,
        "distractors": 50,
        "drill_steps": 1,
        "lesson_steps": 2,
        "validation": 2,
        "check_every": 1,
        "sft": {"steps": 3, "warmup": 1, "decay": 1, "batch_tokens": 1500},
    }
)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_build_replaces_a_policy_only_when_it_is_whole(tmp_path: Path) -> None:
    out = tmp_path / "mine"
    out.mkdir()
    (out / "model.safetensors").write_bytes(b"an older one")
    with pytest.raises(ZeroDivisionError):
        build(FEW, out, Settings.from_env().cache, lambda what, share: 1 // int(what != "episodes"))
    assert [file.name for file in out.iterdir()] == ["model.safetensors"]
    assert (out / "model.safetensors").read_bytes() == b"an older one"
    score = build(FEW, out, Settings.from_env().cache)
    assert score.n == 2
    policy = Policy.load(out)
    assert {file.name for file in out.iterdir()} == {f.name for f in (ASSETS / "starter").iterdir()} - {"README.md"}
    assert policy.limits == FEW.limits
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]
