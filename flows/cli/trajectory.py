"""How an attempt looks in a terminal, turn by turn as it happens."""

import json
import re
from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from pipeline.grading import Grade
from schemas.episode import ToolServer
from schemas.task import Task
from schemas.trajectory import ToolCall, Trajectory, Turn

LINES = 4
"""Lines of a tool's answer that are shown, and of a thought."""
_MARK = re.compile(r"<[|/]?[\w|]+>")
_ACTION = re.compile(r"<tool_call>|<answer>|<\|python_tag\|>|\{\"name\"")


class TurnLog:
    """Writes to a console as turns come in. What a model or a page wrote is text."""

    def __init__(self, console: Console, *, full: bool = False) -> None:
        """`full` shows every line whole; else the first ones, each cut at the terminal's edge."""
        self._console = console
        self._full = full
        self._number = 0
        self._segment = 0

    def begin(self, task: Task, servers: Sequence[ToolServer] = ()) -> None:
        offered = [*task.tools, *(f"those of {server.name}" for server in servers)]
        self._say(task.question, "bold")
        self._say(f"tools: {', '.join(offered) or 'none'}\n", "dim")

    def turn(self, turn: Turn) -> None:
        """A `Watch`."""
        self._number += 1
        if turn.segment != self._segment:
            self._segment = turn.segment
            self._say(f"-- context written anew: {turn.prompt_tokens:,} tokens --", "magenta")
        self._say(f"{self._number:>3}  {turn.prompt_tokens:,} tokens seen, {len(turn.output_ids)} written", "dim")
        acts = bool(turn.tool_calls or turn.fault)
        said = _thought(turn.text) if acts else _MARK.sub("", turn.text).strip()
        self._lines(said, 5, "italic" if acts else "bold")
        for call in turn.tool_calls:
            self._lines(_call(call), 5, "cyan")
        if turn.fault:
            self._lines(f"no step: {turn.fault.replace('_', ' ')}", 5, "red")
        self._lines(turn.observation or "", 7, "")

    def end(self, done: Trajectory, gold: str, grade: Grade | None) -> None:
        """The outcome, after the last turn."""
        ended = f"{done.stop.value.replace('_', ' ')} after {len(done.turns)} turns, {done.tokens:,} tokens"
        if grade is None:
            self._say(f"{ended}{f': {done.error}' if done.error else ''}; the answer is {gold}", "yellow")
            return
        colour = {"right": "green", "wrong": "red"}.get(grade.verdict.value, "yellow")
        why = f" ({grade.reason})" if grade.reason else ""
        self._say(f"{ended}: {done.answer}  {grade.verdict.value}{why}; the answer is {gold}", colour)

    def _say(self, text: str, style: str) -> None:
        self._console.print(Text(text, style=style), soft_wrap=False)

    def _lines(self, text: str, indent: int, style: str) -> None:
        lines = text.splitlines()
        if self._full:
            for line in lines:
                self._console.print(Padding(Text(line, style=style), (0, 0, 0, indent)), soft_wrap=False)
            return
        more = [f"... {len(lines) - LINES} lines more"] if len(lines) > LINES else []
        for line in [*lines[:LINES], *more]:
            shown = Text(" " * indent + line, style=style)
            self._console.print(shown, no_wrap=True, overflow="ellipsis", soft_wrap=False)


def _thought(text: str) -> str:
    """What a turn says before it acts."""
    return _MARK.sub("", _ACTION.split(text, maxsplit=1)[0]).strip()


def _call(call: ToolCall) -> str:
    given = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in call.arguments.items())
    return f"{call.name}({given})"
