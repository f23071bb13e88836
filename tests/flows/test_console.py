"""How every command speaks."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from flows.cli import app
from flows.cli.console import INTERRUPTED, draw, emit, read_json, run
from flows.cli.render import table
from schemas.errors import TouchstoneError


def ended(command: typer.Typer) -> int | str | None:
    with pytest.raises(SystemExit) as stopped:
        run(lambda: command([], standalone_mode=True))
    return stopped.value.code


def test_an_interrupted_command_says_that_nothing_is_lost() -> None:
    code = (
        "import os, signal, typer\n"
        "from flows.cli.console import run\n"
        "app = typer.Typer()\n"
        "app.command()(lambda: os.kill(os.getpid(), signal.SIGINT))\n"
        "run(app)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert (done.returncode, done.stdout) == (INTERRUPTED, "")
    assert done.stderr == "interrupted; what is done is kept, and the same command goes on from there\n"


def test_an_error_of_the_machine_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    command = typer.Typer()
    command.command()(lambda: emit(Path("/nowhere/at/all").read_text(), True, lambda: None))
    assert ended(command) == 1
    assert capsys.readouterr().err == (
        "error: [Errno 2] No such file or directory: '/nowhere/at/all'; correct that, then run the same command again\n"
    )


def test_a_file_that_is_not_there_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(TouchstoneError) as raised:
        read_json(tmp_path / "none.json")
    assert str(raised.value) == f"{tmp_path}/none.json: no such file; correct its name"
    with pytest.raises(TouchstoneError, match="cannot be read as JSON"):
        read_json(tmp_path)


def test_a_result_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    cases.write_text(json.dumps({"spec": {"kind": "number", "value": "1"}, "text": "1"}))
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", "from flows.cli import main; main()", "grade", str(cases), "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
        )
    assert done.returncode != 0
    assert "error: [Errno 28] No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_error_that_quotes_a_file_cannot_drive_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = tmp_path / "docs.jsonl"
    documents.write_text(json.dumps({"id": "a", "title": "Ann\x1b]0;x\x07 \x9b2J", "text": "x"}) + "\n")
    with pytest.raises(SystemExit):
        run(lambda: app(["world", "show", "ann", "--world", str(documents)], standalone_mode=False))
    said = capsys.readouterr().err
    assert "Ann\ufffd]0;x" in said
    assert not {"\x1b", "\x07", "\x9b"} & set(said)


def test_a_title_is_neither_markup_nor_emoji(capsys: pytest.CaptureFixture[str]) -> None:
    draw(table("cases[/b] [red]s3:x:.jsonl", ("a",), [("[/c]" + "." * 40,)]))
    printed = capsys.readouterr().out
    assert "cases[/b] [red]s3:x:.jsonl" in printed and "[/c]" in printed
