"""The command line: what a user types wrong ends in one line that says what to do, and exit code 0 means success."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli import app
from flows.cli.console import run
from tests.infra.servers import down

COMMANDS = [
    ["world", "build"],
    ["world", "show"],
    ["policy", "build"],
    ["curate"],
    ["solve"],
    ["evaluate"],
    ["train"],
    ["couple"],
    ["steer"],
    ["lineage"],
    ["tools"],
    ["show"],
    ["replay"],
    ["grade"],
    ["demo"],
]


def touchstone(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", "from flows.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(command: list[str]) -> None:
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert "Example:" in result.output
    assert f"touchstone {' '.join(command)}" in result.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["curate", "poetry"], "family='poetry'"),
        (["curate", "math", "--candidates", "0"], "candidates=0"),
        (["curate", "math", "--candidates", "-3"], "candidates=-3"),
        (["curate", "math", "--candidates", "5", "--accept", "5"], "exclude each other"),
        (["show", "abc", "--release", "no-such-release"], "no-such-release"),
        (["show", "abc", "--release", "~nouser/x"], "has no home folder here"),
        (["show", "abc", "--release", "x" * 300], "no release of"),
        (["show", "abc", "--release", "s3://bucket/x"], "AWS_ENDPOINT_URL=notaurl: is no URL of a server"),
        (["curate", "math", "--out", ""], "--out='': is empty; give a path"),
        (["curate", "math", "--out", "gs://bucket"], "--out=gs://bucket: addresses other than s3:// are not supported"),
        (["curate", "math", "--out", "s3:/bucket"], "--out=s3:/bucket: addresses other than s3:// are not supported"),
        (["curate", "math", "--out", "~nouser/x"], "--out=~nouser/x: has no home folder here"),
        (["curate", "math", "--out", "x" * 300], "is too long"),
        (["curate", "math", "--out", __file__], "is a file; give a folder"),
        (["curate", "math", "--out", "s3://bucket/x"], "AWS_ENDPOINT_URL=notaurl: is no URL of a server"),
        (["policy", "build", "--out", "s3://bucket/x"], "--out=s3://bucket/x: is an address"),
        (["solve", "abc", "--release", "no-such-release"], "no-such-release"),
        (["solve", "abc", "--seed", "-1"], "seed=-1"),
        (["evaluate", "starter", "--attempts", "0"], "attempts=0"),
        (["evaluate", "starter", "--release", "no-such-release"], "no-such-release"),
        (["evaluate", "starter", "--on", "no-such-file.csv"], "no-such-file.csv: cannot be read"),
        (["evaluate", "starter", "--on", "no-such-file.csv", "--format", "quiz"], "format=quiz: is unknown"),
        (["evaluate", "starter", "--against", "no-such-file.json"], "no-such-file.json: no such file"),
        (["couple", "--rounds", "0"], "rounds=0"),
        (["couple", "--config", "no-such-file.json"], "no-such-file.json: no such file"),
        (["steer"], "holds no training run; begin one with `touchstone train`"),
        (["steer", "no-such-run", "--dry-run"], "no-such-run: is no training run"),
        (["lineage", "latest"], "holds no training run; begin one with `touchstone train`"),
        (["lineage", "starter"], "starter: is no checkpoint or run of training"),
        (["tools", "--only", "telepathy"], "tools=telepathy: no such toolset"),
        (["tools", "--pages", "no-such-folder"], "no-such-folder: no pages here"),
        (["policy", "build", "--out", ""], "--out='': is empty; give a path"),
        (["world", "show", "--world", "x" * 300], "no such file"),
        (["grade", "x" * 300], "cannot be read as text"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_bad_setting_is_one_line_that_names_it(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOUCHSTONE_STORE", str(tmp_path))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "notaurl")
    with pytest.raises(SystemExit) as stopped:
        run(lambda: app(arguments, standalone_mode=False))
    assert stopped.value.code == 1
    message = capsys.readouterr().err
    assert says in message
    assert "Traceback" not in message
    assert len(message.strip().splitlines()) == 1


def test_an_unknown_config_key_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "c.json"
    config.write_text('{"candidats": 5}')
    with pytest.raises(SystemExit):
        run(lambda: app(["curate", "math", "--config", str(config)], standalone_mode=False))
    assert "candidats: is no setting here; the settings are family, candidates, accept" in capsys.readouterr().err


def refusal_of_config(text: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    config = tmp_path / "c.json"
    config.write_bytes(text)
    with pytest.raises(SystemExit):
        run(lambda: app(["curate", "math", "--config", str(config)], standalone_mode=False))
    return capsys.readouterr().err


def test_a_config_key_that_is_written_twice_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal_of_config(b'{"seed": 1, "keep": {"n": 4, "n": 8}}', tmp_path, capsys)
    assert "the key 'n' is written twice" in said


@pytest.mark.parametrize("text", [b'{"\\ud800": 1}', b'{"test_share": NaN}'])
def test_a_config_that_is_no_json_to_others_is_refused(
    text: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "c.json: cannot be read as JSON" in refusal_of_config(text, tmp_path, capsys)


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The config is read as far as its bad value, the cases to their verdict."""
    assert "seed='x'" in refusal_of_config(b'\xef\xbb\xbf{"seed": "x"}', tmp_path, capsys)
    cases = tmp_path / "cases.jsonl"
    cases.write_bytes(b'\xef\xbb\xbf{"spec": {"kind": "number", "value": "1"}, "text": "1"}')
    assert CliRunner().invoke(app, ["grade", str(cases)]).exit_code == 0


def test_grade_prints_verdicts_and_fails_on_a_wrong_one(tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    gold = {"kind": "number", "value": "42"}
    cases.write_text(
        "\n".join(
            json.dumps({"spec": gold, "text": text, "verdict": verdict})
            for text, verdict in [("<answer>42</answer>", "right"), ("<answer>41</answer>", "wrong")]
        )
    )
    good = CliRunner().invoke(app, ["grade", str(cases), "--json"])
    assert good.exit_code == 0
    assert [case["verdict"] for case in json.loads(good.stdout)] == ["right", "wrong"]
    cases.write_text(json.dumps({"spec": gold, "text": "<answer>41</answer>", "verdict": "right"}))
    assert CliRunner().invoke(app, ["grade", str(cases)]).exit_code == 1


def test_a_bad_case_names_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = tmp_path / "cases.jsonl"
    cases.write_text('{"spec": {"kind": "number", "value": "1"}, "text": "1"}\n{"text": "1"}\n')
    with pytest.raises(SystemExit):
        run(lambda: app(["grade", str(cases)], standalone_mode=False))
    assert f"{cases}:2: is no case: spec" in capsys.readouterr().err


def test_the_installed_command_exits_nonzero_with_one_line() -> None:
    done = touchstone("curate", "poetry")
    assert done.returncode == 1
    assert "family='poetry'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_users_documents_are_shown_by_page_and_as_a_whole(tmp_path: Path) -> None:
    documents = tmp_path / "docs.jsonl"
    documents.write_text(json.dumps({"id": "a", "title": "[red]Ann[/x]", "text": "Ann met Ben."}) + "\n")
    whole = CliRunner().invoke(app, ["world", "show", "--world", str(documents), "--json"])
    assert (whole.exit_code, json.loads(whole.stdout)["pages"]) == (0, 1)
    page = CliRunner().invoke(app, ["world", "show", "[red]Ann[/x]", "--world", str(documents)])
    assert page.exit_code == 0
    assert "[red]Ann[/x]" in page.stdout
    assert "Ann met Ben." in page.stdout
    table = CliRunner().invoke(app, ["world", "show", "--world", str(documents)])
    assert table.exit_code == 0


def test_a_setting_given_twice_differently_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "c.json"
    config.write_text('{"seed": 5}')
    with pytest.raises(SystemExit):
        run(lambda: app(["curate", "math", "--seed", "6", "--config", str(config)], standalone_mode=False))
    assert "seed=6: the config file says 5" in capsys.readouterr().err


def test_a_solver_that_does_not_answer_is_told_before_anything_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, made = tmp_path / "c.json", tmp_path / "made"
    with down() as url:
        config.write_text(json.dumps({"solver": {"model": "mine", "url": url}}))
        with pytest.raises(SystemExit):
            run(lambda: app(["curate", "math", "--config", str(config), "--out", str(made)], standalone_mode=False))
    assert f"{url}: no server answers" in capsys.readouterr().err
    assert not (made / "runs").exists()


def test_a_bad_seed_in_the_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "c.json"
    config.write_text('{"seed": "x"}')
    with pytest.raises(SystemExit):
        run(lambda: app(["curate", "math", "--config", str(config)], standalone_mode=False))
    assert "seed='x'" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["1/0", "1e999999999", "9" * 9_000])
def test_a_gold_that_cannot_be_a_number_names_its_line(
    value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = tmp_path / "cases.jsonl"
    cases.write_text(json.dumps({"spec": {"kind": "number", "value": value}, "text": "1"}))
    with pytest.raises(SystemExit):
        run(lambda: app(["grade", str(cases)], standalone_mode=False))
    assert f"{cases}:1: is no case" in capsys.readouterr().err


def test_what_a_terminal_would_obey_is_not_printed(tmp_path: Path) -> None:
    documents = tmp_path / "docs.jsonl"
    documents.write_text(json.dumps({"id": "a", "title": "Ann", "text": "x\x1b[2Jy"}) + "\n")
    page = CliRunner().invoke(app, ["world", "show", "a", "--world", str(documents)])
    assert "x\ufffd[2Jy" in page.stdout
