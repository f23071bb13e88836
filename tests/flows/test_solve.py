"""`touchstone solve` on a released task: every turn as it happens, and whether the answer is right."""

import asyncio
import json

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from flows.cli import app
from flows.cli.trajectory import TurnLog
from infra.settings import Settings
from infra.store import Store
from pipeline.curate import Here, curate, publish
from pipeline.release import Release
from schemas.config import CurateConfig
from schemas.row import Kept
from schemas.trajectory import ToolCall, Turn
from tests.pipeline.runs import coins
from tests.pipeline.tasks import math_task
from tests.worlds import atlas

CONFIG = CurateConfig(family="hard_search", candidates=16, seed=3, batch=16)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Tasks of the atlas, kept by models that toss coins."""
    folder, world = tmp_path_factory.mktemp("solve"), atlas()
    store = Store(str(folder / "store"))
    work = Here(world, coins(folder / "log"))
    run = asyncio.run(curate(CONFIG, world=world, runs=folder / "runs", store=store, work=work))
    return publish([run], store).release


@pytest.fixture
def kept(release: Release) -> Kept:
    return max(release.rows("hard_search"), key=lambda row: row.task.stratum)


def solve(release: Release, kept: Kept, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["solve", kept.task.task_id, "--release", release.url, *arguments])


def test_the_oracle_is_watched_to_the_right_answer(
    release: Release, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOUCHSTONE_CACHE", str(Settings.from_env().cache))
    monkeypatch.setenv("COLUMNS", "100")
    result = solve(release, kept, "--policy", "oracle", "--watch")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert " ".join(lines[:6]).startswith(kept.task.question[:60])
    assert any(line.strip().startswith('search(queries=["') for line in lines)
    assert any(line.strip().startswith('open(id="') for line in lines)
    assert "right; the answer is" in " ".join(lines[-2:])
    assert max(map(len, lines)) <= 100


def test_for_machines_it_is_one_document(release: Release, kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_CACHE", str(Settings.from_env().cache))
    result = solve(release, kept, "--json", "--watch")
    value = json.loads(result.stdout)
    assert (value["verdict"], value["stop"], value["solver"]) == ("right", "answered", "oracle")
    assert len(value["turns"]) > 1
    assert 'search(queries=["' in result.stderr


def test_what_a_model_or_a_page_wrote_is_shown_as_text() -> None:
    console = Console(width=60, record=True)
    log = TurnLog(console)
    log.begin(math_task("[bold]What[/bold] is it?"))
    call = ToolCall(name="search", arguments={"queries": ["[red]x[/red]"]})
    turn = Turn(
        prompt_tokens=1234,
        output_ids=(1, 2),
        text="<think>look [link=x]here[/link]</think><tool_call>{}</tool_call>",
        version="1",
        call_id="",
        tool_calls=(call,),
        observation="\n".join(f"line {i} " + "word " * 30 for i in range(6)),
        segment=1,
    )
    log.turn(turn)
    log.turn(turn.model_copy(update={"text": "<answer>42</answer><|end|>", "tool_calls": (), "observation": None}))
    log.turn(turn.model_copy(update={"tool_calls": (), "fault": "invalid_json", "observation": "error: invalid json"}))
    text = console.export_text()
    assert "[bold]What[/bold] is it?" in text
    assert "look [link=x]here[/link]" in text
    assert 'search(queries=["[red]x[/red]"])' in text
    assert "context written anew: 1,234 tokens" in text and text.count("written anew") == 1
    assert "line 3" in text and "line 4" not in text and "... 2 lines more" in text
    assert "no step: invalid json" in text and "     42\n" in text
    whole = Console(width=60, record=True)
    TurnLog(whole, full=True).turn(turn)
    assert whole.export_text().count("word") == 6 * 30
