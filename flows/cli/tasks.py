"""Looking at tasks: `show`, `replay`, `grade`."""

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.console import Json, draw, emit, err, out
from flows.cli.render import table, task_panel
from infra.settings import Settings
from infra.store import Store
from pipeline import release as releases
from pipeline import replay as replays
from pipeline.curate import corpus
from pipeline.grading import Grade, grade
from pipeline.grading.cases import Case, read_cases
from schemas.answer import canonical_answer

TaskId = Annotated[str, typer.Argument(help="A task id, as in a release's `task_id` column.", show_default=False)]
Where = Annotated[
    str,
    typer.Option(
        "--release", help="A release or what `curate --out` named: folder, s3:// address; or a version, `latest`."
    ),
]


def open_release(name: str) -> releases.Release:
    return releases.load(releases.resolve(Store(Settings.from_env().store), name))


def show(task_id: TaskId, release: Where = "latest", as_json: Json = False) -> None:
    """One task, kept or rejected, with its evidence, difficulty and every filter's certificate.

    Example: `touchstone show 0f3a9c1d2b4e5f60 --release latest`
    """
    opened = open_release(release)
    row = opened.find(task_id)
    certificates = releases.own(row, opened.certificates(task_id))
    value = {**row.model_dump(mode="json"), "certificates": [c.model_dump(mode="json") for c in certificates]}
    emit(value, as_json, lambda: draw(task_panel(row, certificates)))


def replay(task_id: TaskId, release: Where = "latest", as_json: Json = False) -> None:
    """Make a task again from its lineage and compare it with the stored one, byte for byte.

    Example: `touchstone replay 0f3a9c1d2b4e5f60`
    """
    opened = open_release(release)
    config = replays.config_of(opened.find(task_id).task, opened)
    made = replays.replay(task_id, opened, corpus(config, Settings.from_env().cache))
    emit(made.model_dump(mode="json"), as_json, lambda: out.print(f"{task_id}: made again, the same byte for byte"))


def grade_cases(
    cases: Annotated[
        Path, typer.Argument(help='JSONL of {"spec": {...}, "text": "...", "verdict"?: "...", "why"?: "..."}.')
    ],
    as_json: Json = False,
) -> None:
    """Grade answers with the one grader that curation, reward and evaluation use. Exit code 1 if a stated verdict differs.

    Example: `touchstone grade cases.jsonl`
    """
    graded = [(case, grade(case.spec, case.text)) for case in read_cases(cases)]
    wrong = [case for case, found in graded if case.verdict not in (None, found.verdict)]

    def row(case: Case, found: Grade) -> tuple[str, ...]:
        return (
            _one_line(canonical_answer(case.spec)),
            _one_line(case.text),
            found.verdict,
            case.verdict or "",
            found.reason,
        )

    value = [
        {
            "line": number,
            "text": case.text,
            "verdict": found.verdict,
            "reason": found.reason,
            "expected": case.verdict,
            "why": case.why,
        }
        for number, (case, found) in enumerate(graded, 1)
    ]
    columns = ("gold", "text", "verdict", "expected", "reason")
    emit(value, as_json, lambda: draw(table(str(cases), columns, [row(c, f) for c, f in graded])))
    if wrong:
        err.print(f"{len(wrong)} of {len(graded)} verdicts are not the expected ones")
        raise typer.Exit(1)


def _one_line(text: str, most: int = 60) -> str:
    """The first line of an answer, which may be a whole program."""
    first = text.strip().split("\n")[0]
    return first if first == text.strip() and len(first) <= most else f"{first[:most]}…"
