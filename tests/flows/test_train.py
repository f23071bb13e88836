"""Training as a flow on a real Prefect server, its trigger, and the command line; what trains is a stand-in."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from prefect.events import DeploymentEventTrigger
from pydantic import ValidationError
from typer.testing import CliRunner, Result

from flows.cli import app
from infra.settings import Settings
from pipeline.release import Release
from rl.train import coach
from rl.train.run import find
from schemas.errors import TouchstoneError
from schemas.training import TrainConfig
from tests.rl.train.finished import FinishedTraining, released

ROOT = Path(__file__).resolve().parents[2]
Command = Callable[..., Result]


@pytest.fixture
def release(tmp_path: Path) -> Release:
    return released(tmp_path)


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> FinishedTraining:
    finished = FinishedTraining()
    monkeypatch.setattr(coach, "train", finished)
    return finished


@pytest.fixture
def touchstone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("TOUCHSTONE_STORE", str(tmp_path))
    return lambda *arguments: CliRunner().invoke(app, [*map(str, arguments)])


@pytest.mark.prefect
async def test_the_flow_trains_reports_and_tells(
    release: Release,
    training: FinishedTraining,
    prefect_server: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from prefect.artifacts import Artifact

    from flows import train as flow

    events: list[dict[str, Any]] = []
    settings = Settings(store=str(tmp_path), cache=tmp_path)
    monkeypatch.setattr(flow, "SETTINGS", settings)
    monkeypatch.setattr(flow, "emit_event", lambda event, **rest: events.append({"event": event, **rest}))
    name = await flow.train(TrainConfig(steps=1), release=release.version, origin="a test")
    run = find(name, settings)
    assert [(each.id, each.config.release) for each in training.runs] == [(name, release.version)]
    [event] = events
    assert event["event"] == "touchstone.policy.trained"
    assert event["resource"] == {
        "prefect.resource.id": f"touchstone.policy.{name}",
        "touchstone.origin": "a test",
        "touchstone.family": "hard_search",
    }
    assert json.dumps(event["payload"]) and event["payload"]["after"]["all, sampled"]["value"] == 0.58
    artifact = await Artifact.aget(key="train-report")
    assert artifact is not None
    assert "went from 0.200" in str(artifact.data) and f"{run.path}/report.html" in str(artifact.data)
    assert (run.path / "report.html").read_text().startswith("<!doctype html>")


def triggers() -> list[DeploymentEventTrigger]:
    deployments = yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]
    [coupled] = [each for each in deployments if each["name"] == "coupled"]
    return [DeploymentEventTrigger.model_validate(trigger) for trigger in coupled["triggers"]]


@pytest.mark.parametrize(
    ("origin", "family", "event", "starts"),
    [
        ("deployment", "hard_search", "touchstone.release.published", True),
        ("couple", "hard_search", "touchstone.release.published", False),
        ("deployment", "math", "touchstone.release.published", False),
        ("deployment", "hard_search", "touchstone.policy.trained", False),
    ],
)
def test_training_starts_on_a_release_of_a_deployment_that_can_be_trained_on(
    origin: str, family: str, event: str, starts: bool
) -> None:
    from prefect.server.events.schemas.automations import EventTrigger
    from prefect.server.events.schemas.events import ReceivedEvent
    from prefect.types._datetime import now

    [trigger] = triggers()
    served = EventTrigger.model_validate(trigger.model_dump(mode="json", include=set(EventTrigger.model_fields)))
    resource = {
        "prefect.resource.id": "touchstone.release.r-0123456789ab",
        "touchstone.origin": origin,
        "touchstone.family": family,
    }
    said = ReceivedEvent(occurred=now(), event=event, resource=resource, id="7d1c6a5e-9b0d-4b47-a25c-4c0c8f6f4f11")
    assert served.covers(said) == starts


def test_a_release_is_what_the_trigger_hands_on() -> None:
    from flows.train import train

    [trigger] = triggers()
    assert trigger.parameters == {"release": "{{ event.payload.version }}"}
    train.validate_parameters({"config": {"minutes": 8}, "release": "r-0123456789ab"})


def test_the_command_trains_and_says_where_everything_is(
    release: Release, training: FinishedTraining, touchstone: Command
) -> None:
    result = touchstone("train", release.version, "--steps", 1, "--seed", 3)
    assert result.exit_code == 0, result.output
    [run] = training.runs
    assert (run.config.steps, run.config.minutes, run.config.epochs, run.config.seed) == (1, None, None, 3)
    assert "held-out pass@1 went from 0.200 (0.160 to 0.240) to 0.580 (0.540 to 0.620)" in result.output
    assert f"report:    {run.path}/report.html" in result.output
    assert "train  step 1 of 1  0.1 min  pass rate 0.50" in result.output


def test_for_machines_it_is_one_document(release: Release, training: FinishedTraining, touchstone: Command) -> None:
    value = json.loads(touchstone("train", "--steps", 1, "--json").stdout)
    assert (value["run"], value["admitted"], value["suspended"]) == (training.runs[0].id, 2, 2)
    assert json.loads(touchstone("report", "latest", "--json").stdout) == value


def test_a_run_is_resumed_with_its_own_settings_and_other_limits(
    release: Release, training: FinishedTraining, touchstone: Command
) -> None:
    touchstone("train", release.version, "--steps", 1, "--seed", 3)
    assert touchstone("train", "--resume", "latest", "--steps", 5).exit_code == 0
    first, second = training.runs
    assert (second.path, second.config) == (first.path, first.config.model_copy(update={"steps": 5}))
    refused = touchstone("train", "--resume", "latest", "--seed", 4)
    assert isinstance(refused.exception, TouchstoneError)
    assert "--seed=4: a run goes on with the settings that it began with" in str(refused.exception)


def test_minutes_that_are_no_number_are_refused(release: Release, touchstone: Command) -> None:
    ended = touchstone("train", release.url, "--minutes", "nan")
    assert isinstance(ended.exception, ValidationError) and "minutes" in str(ended.exception)


def test_a_run_goes_where_it_is_told_to(
    release: Release, training: FinishedTraining, touchstone: Command, tmp_path: Path
) -> None:
    assert touchstone("train", "--steps", 1, "--out", tmp_path / "elsewhere").exit_code == 0
    [run] = training.runs
    assert run.path.parent == tmp_path / "elsewhere" / "training"
    assert touchstone("report", run.path).exit_code == 0


def test_a_release_has_a_card_for_a_report(release: Release, touchstone: Command) -> None:
    assert f"Touchstone release {release.version}" in touchstone("report", release.version).output


def test_a_release_that_cannot_be_trained_on_is_told_so(release: Release, touchstone: Command, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"family": "math"}))
    error = touchstone("train", release.version, "--config", config).exception
    assert isinstance(error, TouchstoneError) and "has no rows of math/train" in str(error)
