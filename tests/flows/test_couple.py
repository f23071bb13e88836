"""Rounds and steering as flows on a real Prefect server, the trigger between them, and the command line.

Curation is real on models that toss coins, training is over at once.
"""

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from prefect.events import DeploymentEventTrigger
from prefect.exceptions import ParameterTypeError
from typer.testing import CliRunner, Result

from flows.cli import app
from infra.settings import Settings
from infra.store import Store
from pipeline import plans
from rl.rounds import Rounds, opened
from rl.train import coach
from rl.train.progress import Watch
from rl.train.run import TrainRun, find
from schemas.config import CurateConfig
from schemas.errors import TouchstoneError
from schemas.rounds import RoundsConfig
from schemas.steering import SteeringOptions
from tests.rl.couples import CONFIG, Parts, played, trained

ROOT = Path(__file__).resolve().parents[2]
ONE = CONFIG.model_copy(update={"rounds": 1})
Command = Callable[..., Result]
Event = dict[str, Any]


class CoinFlow:
    """Stands in for the flow `curate`; `origins` are those that it was given."""

    def __init__(self, settings: Settings) -> None:
        self.parts, self.origins = Parts(settings), list[str]()

    async def __call__(self, config: CurateConfig, origin: str) -> str:
        self.origins.append(origin)
        return await self.parts.curate(config)


async def train_at_once(run: TrainRun, *, settings: Settings, watch: Watch) -> None:
    await trained(run)


async def artifact(key: str) -> str:
    from prefect.artifacts import Artifact

    found = await Artifact.aget(key=key)
    assert found is not None
    return str(found.data)


def triggered(event: Event) -> bool:
    """Whether the deployment `plan` is started by an event."""
    from prefect.server.events.schemas.automations import EventTrigger
    from prefect.server.events.schemas.events import ReceivedEvent
    from prefect.types._datetime import now

    [trigger] = triggers()
    served = EventTrigger.model_validate(trigger.model_dump(mode="json", include=set(EventTrigger.model_fields)))
    id = "7d1c6a5e-9b0d-4b47-a25c-4c0c8f6f4f11"
    return served.covers(ReceivedEvent(occurred=now(), event=event["event"], resource=event["resource"], id=id))


def triggers() -> list[DeploymentEventTrigger]:
    deployments = yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]
    [plan] = [each for each in deployments if each["name"] == "plan"]
    return [DeploymentEventTrigger.model_validate(trigger) for trigger in plan["triggers"]]


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    """Those of all flows, which work in `tmp_path` and train at once."""
    found: list[Event] = []
    for name in ("couple", "train", "steer"):
        module = importlib.import_module(f"flows.{name}")
        monkeypatch.setattr(module, "SETTINGS", Settings(store=str(tmp_path), cache=tmp_path))
        if name != "couple":
            monkeypatch.setattr(module, "emit_event", lambda event, **rest: found.append({"event": event, **rest}))
    monkeypatch.setattr(coach, "train", train_at_once)
    return found


@pytest.mark.prefect
async def test_rounds_as_a_flow_report_and_start_no_deployment_and_a_plan_is_drawn_from_their_runs(
    events: list[Event], prefect_server: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows import couple, steer, train

    settings, store = Settings(store=str(tmp_path), cache=tmp_path), Store(str(tmp_path))
    curate = CoinFlow(settings)
    monkeypatch.setattr(couple, "curate", curate)
    rounds = opened(await couple.couple(CONFIG, rounds=1), settings)
    [ended] = rounds.rounds
    assert (rounds.config, ended.plan is None, curate.origins) == (ONE, False, ["couple", "couple"])
    [event] = events
    assert event["resource"]["touchstone.origin"] == "couple" and not triggered(event)
    told = await artifact("rounds-report")
    assert f"Held out: {rounds.held_out}" in told
    assert f"0.580 (0.540 to 0.620) | {ended.release} | {ended.run} |" in told and f"# Plan {ended.plan}" in told
    assert plans.latest(store, "math") is None

    run = find(str(ended.run), settings)
    await train.train(run.config)
    event = events[-1]
    assert triggered(event) and event["payload"]["run"] == run.id
    id = await steer.steer(event["payload"]["run"])
    assert id == ended.plan
    drawn = plans.latest(store, "math")
    assert drawn is not None and drawn.id == id
    assert f"# Plan {id} of math" in await artifact("steering-plan")
    assert events[-1] == {
        "event": "touchstone.plan.drawn",
        "resource": {"prefect.resource.id": f"touchstone.plan.{id}", "touchstone.family": "math"},
        "payload": {"plan": id, "url": f"{tmp_path}/plans/{id}.json", "run": run.id, "release": ended.release},
    }
    assert await steer.steer(run.id, SteeringOptions(seed=1)) != id


@pytest.mark.parametrize(
    ("origin", "name", "starts"),
    [
        ("deployment", "touchstone.policy.trained", True),
        ("couple", "touchstone.policy.trained", False),
        ("deployment", "touchstone.release.published", False),
        ("deployment", "touchstone.plan.drawn", False),
    ],
)
def test_a_plan_is_drawn_after_a_training_of_a_deployment(origin: str, name: str, starts: bool) -> None:
    resource = {
        "prefect.resource.id": "touchstone.policy.train-0123456789ab",
        "touchstone.origin": origin,
        "touchstone.family": "hard_search",
    }
    assert triggered({"event": name, "resource": resource}) == starts


def test_a_run_is_what_the_trigger_hands_on() -> None:
    from flows.steer import steer

    [trigger] = triggers()
    assert trigger.parameters == {"run": "{{ event.payload.run }}"}
    steer.validate_parameters({"run": "train-0123456789ab"})


def test_a_number_of_rounds_that_is_none_is_refused() -> None:
    from flows.couple import couple

    couple.validate_parameters({"config": {}, "rounds": 3})
    for rounds in (0, -1, "x"):
        with pytest.raises(ParameterTypeError, match="rounds"):
            couple.validate_parameters({"config": {}, "rounds": rounds})


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One round was played here."""
    folder = tmp_path_factory.mktemp("home")
    played(folder, ONE)
    return folder


@pytest.fixture
def touchstone(home: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("TOUCHSTONE_STORE", str(home))
    monkeypatch.setattr(importlib.import_module("flows.cli.couple"), "Here", Parts)
    return lambda *arguments: CliRunner().invoke(app, [*map(str, arguments)])


def at(home: Path) -> Settings:
    return Settings(store=str(home), cache=home)


def of(home: Path) -> Rounds:
    return opened("latest", at(home))


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(ONE.model_dump_json(exclude_unset=True))
    return path


def test_the_command_does_the_rounds_and_says_where_everything_is(
    touchstone: Command, home: Path, tmp_path: Path
) -> None:
    path = tmp_path / "config.json"
    path.write_text(CONFIG.model_dump_json(exclude_unset=True, exclude={"rounds"}))
    result = touchstone("couple", "--config", path, "--rounds", 2, "--seed", CONFIG.seed)
    assert result.exit_code == 0, result.output
    rounds = of(home)
    assert f"rounds:   {rounds.path}" in result.stdout
    assert [each.number for each in rounds.rounds] == [1, 2]
    for each in rounds.rounds:
        assert f"round {each.number}:  {each.release}, {home}/training/{each.run}/report.html" in result.stdout
    assert f"touchstone lineage {rounds.round(2).policy}" in result.stdout
    assert f"plan {rounds.round(2).plan}" in result.stdout


def test_for_machines_rounds_are_one_document(touchstone: Command, home: Path, config: Path) -> None:
    value = json.loads(touchstone("couple", "--config", config, "--json").stdout)
    rounds = of(home)
    first, last = rounds.round(1), rounds.rounds[-1]
    assert (value["rounds"], value["held_out"], value["plan"]["id"]) == (rounds.path.name, rounds.held_out, last.plan)
    row = value["table"][0]
    assert (row["round"], row["release"], row["run"]) == (1, first.release, first.run)
    assert row["candidates"] == 24 and 0 < row["kept"] < 24 and row["after"] == "0.580 (0.540 to 0.620)"


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_plan_is_shown_without_being_written_and_then_is_the_latest(touchstone: Command, home: Path) -> None:
    run, before = str(of(home).round(1).run), files(home)
    shown = json.loads(touchstone("steer", run, "--dry-run", "--json").stdout)
    printed = touchstone("steer", run, "--dry-run").stdout
    assert files(home) == before
    assert shown["url"] is None and shown["run"] == run
    assert f"plan {shown['id']}" in printed and "nothing was written" in printed
    assert "format: " in printed  # attempts that no plan is moved by
    written = touchstone("steer", run).stdout
    drawn = plans.latest(Store(str(home)), "math")
    assert drawn is not None and drawn.id == shown["id"]
    assert f'curate with {{"plan": "latest"}}: {home}/plans/{drawn.id}.json' in written


def test_steering_takes_settings(touchstone: Command, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "options.json"
    file.write_text('{"floor": 0.5, "draws": 50}')
    run = str(of(home).round(1).run)
    drawn = [touchstone("steer", run, "--dry-run", "--json", *more) for more in ((), ("--config", file))]
    assert len({json.loads(each.stdout)["id"] for each in drawn}) == 2
    file.write_text('{"flor": 0.5}')
    assert "flor: is no setting here" in str(touchstone("steer", run, "--config", file).exception)


def test_where_a_policy_comes_from_is_told_to_people_and_machines(touchstone: Command, home: Path) -> None:
    first = of(home).round(1)
    text = touchstone("lineage", first.policy).stdout.splitlines()
    value = json.loads(touchstone("lineage", first.policy, "--json").stdout)
    assert text[0] == f"policy {first.policy}  (after step 1)"
    assert [line.split()[:2] for line in text] == [[each["kind"], each["name"]] for each in value]
    assert value[2] == {"depth": 1, "kind": "run", "name": first.run, "said": "held-out pass@1 0.200 -> 0.580"}
    assert text[2].startswith("  run ")
    refused = touchstone("lineage", home).exception
    assert isinstance(refused, TouchstoneError) and "is no checkpoint or run of training" in str(refused)


def test_what_the_demo_plays_is_a_config_of_rounds() -> None:
    config = RoundsConfig.model_validate(importlib.import_module("flows.cli.demo").ROUNDS)
    assert config.rounds == 2 and config.curate.family == config.train.family == "hard_search"
