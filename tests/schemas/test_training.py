"""The config tree of training refuses what does not go together, and what would change what is sampled."""

import pytest
from pydantic import ValidationError

from schemas.config import describe_errors
from schemas.training import TrainConfig


def refused(**settings: object) -> str:
    with pytest.raises(ValidationError) as caught:
        TrainConfig.model_validate(settings)
    return describe_errors(caught.value)


@pytest.mark.parametrize(
    "name", ["top_p", "top_k", "min_p", "guided_json", "structured_outputs", "repair", "repetition_penalty"]
)
def test_samplers_that_truncate_and_enforcers_are_refused_with_the_reason(name):
    said = refused(rollout={name: 1})
    assert f"{name}:" in said and "leave it out" in said


def test_a_group_of_one_has_no_baseline():
    assert "group=1: the baseline is the mean of the other members; use at least 2" in refused(rollout={"group": 1})


def test_sync_begins_nothing_ahead():
    assert "ahead=3: mode=sync begins no batch beyond the next" in refused(rollout={"mode": "sync", "ahead": 3})


@pytest.mark.parametrize("mode", ["partial", "async"])
def test_one_version_a_batch_needs_sync(mode):
    assert f"rollout.mode={mode} mixes versions" in refused(on_policy={"level": "batch"}, rollout={"mode": mode})


def test_one_version_a_batch_goes_with_sync():
    assert TrainConfig(on_policy={"level": "batch"}, rollout={"mode": "sync"}).on_policy.level == "batch"


def test_what_is_begun_too_far_ahead_would_be_too_old():
    said = refused(on_policy={"level": "bounded", "staleness": 1}, rollout={"ahead": 3})
    assert "rollout.ahead=3" in said and "on_policy.staleness=1" in said


def test_settings_of_another_level_are_refused():
    assert "level turn does not read it" in refused(on_policy={"level": "turn", "staleness": 2})
    assert "level bounded does not read it" in refused(on_policy={"mask_older": True})


def test_without_any_limit_it_is_one_pass():
    assert TrainConfig().epochs == 1
    assert TrainConfig(minutes=3).epochs is None


@pytest.mark.parametrize("minutes", [0, -1, float("nan"), float("inf")])
def test_minutes_are_a_time(minutes):
    assert refused(minutes=minutes).startswith("minutes=")


def test_an_unknown_setting_is_answered_with_the_known_ones():
    assert "the settings are rate, warmup" in refused(optimiser={"lr": 1e-3})
