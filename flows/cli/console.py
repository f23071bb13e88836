"""How every command speaks: results on stdout, progress and errors on stderr, an error in one line, exit code 0 only on success."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.segment import Segment

from schemas.base import canonical_json, unique_keys
from schemas.config import describe_errors
from schemas.errors import TouchstoneError

_OBEYED = {code: "\ufffd" for code in (*range(32), *range(127, 160), 0x2028, 0x2029) if chr(code) not in "\n\t"}


class _Screen(Console):
    """Prints text as text: no markup, no emoji codes (`s3:x: ...` is none), no escape sequence that a terminal would obey."""

    def __init__(self, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, soft_wrap=True, markup=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=segment.text.translate(_OBEYED))


out = _Screen()
err = _Screen(stderr=True)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document for machines instead of text.")]

INTERRUPTED = 130
"""The shell's code for a command ended by Ctrl-C: 128 + SIGINT."""


def draw(drawn: RenderableType) -> None:
    """A table or panel, as wide as the terminal; plain lines are not broken, so that they can be copied."""
    out.print(drawn, soft_wrap=False)


def emit(value: Any, as_json: bool, render: Callable[[], None]) -> None:
    """The result of a command: `value` as JSON, or what `render` prints."""
    if as_json:
        print(json.dumps(value, ensure_ascii=False, indent=2), flush=True)
    else:
        render()


@contextmanager
def progress_bars() -> Iterator[Callable[[str, int, int], None]]:
    """Yields `report(stage, done, total)`, one bar a stage. Safe to call from several threads."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=err) as progress:
        bars: dict[str, Any] = {}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in bars:
                bars[stage] = progress.add_task(stage, total=total)
            progress.update(bars[stage], completed=done, total=total)

        yield report


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file a user names. Raises `TouchstoneError` where there is none."""
    try:
        value = json.loads(path.read_text("utf-8-sig"), object_pairs_hook=unique_keys)
        canonical_json(value).encode()  # refuses NaN and half a surrogate pair, which Python's reader lets through
    except FileNotFoundError as error:
        raise TouchstoneError(f"{path}: no such file; correct its name") from error
    except (OSError, ValueError, RecursionError) as error:
        raise TouchstoneError(f"{path}: cannot be read as JSON ({error}); correct the file or its name") from error
    if not isinstance(value, dict):
        raise TouchstoneError(f"{path}: holds {type(value).__name__}; it must be one JSON object of settings")
    return value


def merged(file: dict[str, Any], flags: dict[str, Any]) -> dict[str, Any]:
    """Settings of a file and of the command line. Raises `TouchstoneError` where both name one and differ."""
    given = {name: value for name, value in flags.items() if value is not None}
    for name, value in given.items():
        if name in file and file[name] != value:
            raise TouchstoneError(f"{name}={value!r}: the config file says {file[name]!r}; give it in one place")
    return file | given


def run(command: Callable[[], None]) -> None:
    """Run the command line; what a user can do something about ends in one line, not in a traceback."""
    try:
        command()
    except TouchstoneError as error:
        _fail(str(error))
    except ValidationError as error:
        _fail(describe_errors(error))
    except OSError as error:
        _fail(f"{error}; correct that, then run the same command again")
    except (KeyboardInterrupt, SystemExit) as end:
        # Typer makes the one into the other.
        if isinstance(end, SystemExit) and end.code != INTERRUPTED:
            raise
        err.print("interrupted; what is done is kept, and the same command goes on from there")
        sys.exit(INTERRUPTED)


def _fail(message: str) -> None:
    err.print(f"error: {message}", style="red", highlight=False)
    sys.exit(1)
