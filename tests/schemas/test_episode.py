import pytest
from pydantic import ValidationError

from schemas.episode import ContextOptions, Limits


def test_limits_that_are_not_set_stay_as_the_policy_was_built() -> None:
    built = Limits(max_turns=6, max_tokens=48, context=1280)
    given = Limits.model_validate({"management": {"mode": "drop"}})
    assert given.over(built) == built.model_copy(update={"management": ContextOptions(mode="drop")})
    managed = Limits(max_turns=100, max_tokens=64, context=8192, management=ContextOptions(mode="drop", keep=0.5))
    assert Limits.model_validate({"management": {"memory": 0.2}}).over(managed).management == ContextOptions(
        mode="drop", keep=0.5, memory=0.2
    )


def test_what_does_not_fit_together_is_refused_once_all_is_known() -> None:
    given, whole = (
        Limits.model_validate({"management": {"mode": "drop", "keep": 0.99}}),
        Limits(max_tokens=48, context=1280),
    )
    with pytest.raises(ValidationError, match="max_tokens=48: a window of 1280 is too small"):
        given.over(whole)
    with pytest.raises(ValidationError, match="max_tokens=48: a window of 40 is too small for it; raise context"):
        Limits(context=40).over(whole)
