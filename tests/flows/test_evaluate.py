"""`touchstone evaluate` on a benchmark's file, with a policy that always gives the same answer."""

import csv
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from flows.cli import app
from flows.cli.console import run
from schemas.evaluation import Evaluation
from tests.infra.servers import ModelServer, completion, running, send
from tests.rl.test_env import ANSWER
from tests.rl.test_policy import policy_folder
from tests.rl.tiny import sampled


class DecidedPolicy(ModelServer):
    """Answers Niger, whatever is asked, and is sure of it."""

    def __init__(self, model: Path) -> None:
        super().__init__()
        self._models = {"data": [{"id": str(model), "owned_by": "vllm", "max_model_len": 4096}]}

    def get(self, http: BaseHTTPRequestHandler) -> None:
        send(http, 200, json.dumps(self._models).encode())

    def reply(self, http: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
        ids = list(sampled(ANSWER))
        body = completion(ids, request["prompt"])
        body["choices"][0]["logprobs"]["token_logprobs"] = [-0.001] * len(ids)
        send(http, 200, json.dumps(body).encode())


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Three rows of a quiz, one without an answer; a policy that is served; a page to search in."""
    monkeypatch.setenv("TOUCHSTONE_STORE", str(tmp_path / "store"))
    model = policy_folder(tmp_path / "model", ["Niger"])
    quiz, documents, config = tmp_path / "quiz.csv", tmp_path / "pages.jsonl", tmp_path / "config.json"
    rows = [("{}", "Which country has the capital Niamey?", "Niger"), ("{}", "And Bamako?", "Mali"), ("{}", "And?", "")]
    with quiz.open("w", newline="") as file:
        csv.writer(file).writerows([("metadata", "problem", "answer"), *rows])
    documents.write_text(json.dumps({"id": "niger", "title": "Niger", "text": "Its capital is Niamey."}))
    config.write_text(json.dumps({"world": str(documents)}))
    with running(DecidedPolicy(model)) as url:
        yield ["evaluate", str(model), "--url", url, "--on", str(quiz), "--config", str(config)]


def evaluate(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_a_benchmark_s_file_is_evaluated_written_down_and_compared(arguments: list[str]) -> None:
    first = evaluate(*arguments, "--attempts", "2", "--json")
    assert first.exit_code == 0, first.output
    said = json.loads(first.stdout)
    folder = Path(said.pop("folder"))
    found = Evaluation.model_validate(said)
    assert found == Evaluation.model_validate_json((folder / "evaluation.json").read_text())
    assert (folder / "attempts.parquet").is_file()
    assert (found.rows, found.tasks, found.skipped) == (3, 2, {"empty_answer": 1})
    assert (found.sampled.counts.right, found.sampled.counts.wrong, found.greedy.counts.right) == (2, 2, 1)
    assert found.sampled.rate is not None and found.sampled.rate.value == 0.5

    again = evaluate(*arguments, "--attempts", "2", "--against", str(folder / "evaluation.json"))
    assert again.exit_code == 0, again.output
    assert "+0.000 (+0.000 to +0.000)" in again.stdout
    assert "3 rows: 2 tasks; skipped: empty_answer 1" in again.stdout
    assert f"next time:   touchstone evaluate <run> --against {folder / 'evaluation.json'}" in again.stdout


def test_an_evaluation_of_other_tasks_is_refused_before_anything_is_asked(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = json.loads(evaluate(*arguments, "--attempts", "1", "--json").stdout)
    other = tmp_path / "other.json"
    del done["folder"]
    other.write_text(json.dumps(done | {"on": "simpleqa/other"}))
    with pytest.raises(SystemExit):
        run(lambda: app([*arguments, "--against", str(other)], standalone_mode=False))
    assert "on=simpleqa/other: is not simpleqa/" in capsys.readouterr().err


def test_a_tool_that_nobody_has_is_one_line(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"offered": ["search", "telescope"]}))
    with pytest.raises(SystemExit):
        run(lambda: app(arguments, standalone_mode=False))
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("error: offered=telescope: no such tools here, there are search;")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--on", "quiz.csv", "--split", "test"), "--split=test: is not read beside --on; leave it out"),
        (("--on", "quiz.csv", "--release", "r-1"), "--release=r-1: is not read beside --on; leave it out"),
        (("--format", "frames"), "--format=frames: is of a file; give one with --on, or leave it out"),
    ],
)
def test_what_would_not_be_read_is_refused(
    given: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run(lambda: app(["evaluate", "starter", *given], standalone_mode=False))
    assert f"error: {said}" in capsys.readouterr().err.replace("\n", " ")
