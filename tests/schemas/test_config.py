"""A config is read whole or refused."""

import pytest
from pydantic import ValidationError

from schemas.config import CurateConfig, HardSearchConfig, Served, describe_errors
from schemas.episode import ToolOptions, ToolServer
from schemas.task import FAMILIES


def refusal(**given: object) -> str:
    with pytest.raises(ValidationError) as error:
        CurateConfig.model_validate(given)
    return describe_errors(error.value)


@pytest.mark.parametrize(
    ("family", "other", "given"),
    [
        ("math", "hard_search", {"hard_search": {"min_clues": 4}}),
        ("math", "hard_search", {"world": "atlantis"}),
        ("hard_search", "math", {"math": {"templates": ["sum"]}}),
    ],
)
def test_a_setting_that_the_family_does_not_read_is_refused(family: str, other: str, given: dict[str, object]) -> None:
    (name,) = given
    said = f"config: {name}: the family {family} does not read it; leave it out, or curate {other}"
    assert refusal(family=family, **given) == said
    assert CurateConfig.model_validate({"family": other, **given})


@pytest.mark.parametrize("family", FAMILIES)
def test_a_config_written_out_whole_is_the_config(family: str) -> None:
    """As run folders, manifests and deployments hold it."""
    config = CurateConfig.model_validate({"family": family, "candidates": 5})
    assert CurateConfig.model_validate(config.model_dump(mode="json")) == config
    assert CurateConfig.model_validate(config) == config


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ({"candidats": 5}, "config: candidats: is no setting here; the settings are family, candidates, accept"),
        (
            {"hard_search": {"min_clue": 3}},
            "hard_search: min_clue: is no setting here; the settings are types, min_clues",
        ),
        ({"solver": {"modle": "x"}}, "solver: modle: is no setting here; the settings are model, url, temperature"),
    ],
)
def test_an_unknown_key_is_answered_with_the_known_ones(given: dict[str, object], known: str) -> None:
    assert refusal(family="hard_search", **given).startswith(known)
    assert len(HardSearchConfig.model_fields) == 4 and len(Served.model_fields) == 3


def test_a_value_where_settings_belong_is_told_so() -> None:
    said = "limits.management='drop': must be an object of settings"
    assert refusal(family="math", limits={"management": "drop"}) == said


def test_long_values_and_long_lists_of_errors_are_cut() -> None:
    said = refusal(family="x" * 1000, seed=-1, batch=0, tries=0, concurrency=0, test_share=2, candidates=0)
    assert len(said.splitlines()) == 6 and said.endswith("and 2 more")
    assert max(map(len, said.splitlines())) < 200


@pytest.mark.parametrize("field", ["candidates", "accept", "batch", "concurrency", "seed", "tries"])
def test_no_number_is_without_an_end(field: str) -> None:
    """A seed goes into a 64-bit column, a concurrency into a server's memory."""
    with pytest.raises(ValidationError, match=field):
        CurateConfig.model_validate({"family": "math", field: 10**30})


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "urls and command: neither given"),
        ({"urls": ["http://a/mcp"], "command": ["b"]}, "urls and command: both given"),
        (
            {"urls": ["http://a/mcp"], "replicas": 2},
            "replicas=2: is for command; replicas at addresses are listed in urls",
        ),
    ],
)
def test_a_tool_server_is_reached_in_one_way(given: dict[str, object], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        ToolServer.model_validate({"name": "mine", **given})


def test_one_try_of_a_call_fits_into_the_whole() -> None:
    with pytest.raises(ValidationError, match="call_seconds=9 is above total_seconds=8"):
        ToolOptions(call_seconds=9, total_seconds=8)
