"""A file of grading cases: one JSON object a line, with a gold, a text, and perhaps the verdict that is expected."""

from pathlib import Path

from pydantic import ValidationError

from pipeline.grading.grader import Verdict
from schemas.answer import AnswerSpec
from schemas.base import Record
from schemas.config import describe_errors
from schemas.errors import TouchstoneError


class Case(Record):
    """`verdict` is what the text deserves, where that is known; `why` says in a few words what the case is there for."""

    spec: AnswerSpec
    text: str
    verdict: Verdict | None = None
    why: str = ""


class CaseError(TouchstoneError):
    """A case file that cannot be read, with the line."""


def read_cases(path: Path) -> list[Case]:
    """Every case of a file. Raises `CaseError` naming the line; a file without cases is an error too."""
    try:
        lines = path.read_text("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise CaseError(f"{path}: cannot be read as text ({error}); correct the file or its name") from error
    cases = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                cases.append(Case.model_validate_json(line))
            except ValidationError as error:
                raise CaseError(f"{path}:{number}: is no case: {describe_errors(error, '; ')}") from error
    if not cases:
        raise CaseError(f"{path}: holds no case; give one JSON object a line")
    return cases
