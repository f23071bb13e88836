"""How an attempt looks in a terminal, turn by turn as it happens."""

import re

from rich.console import Console
from rich.text import Text

from pipeline.grading import Grade
from schemas.task import Task
from schemas.trajectory import ToolCall, Trajectory, Turn

LINES = 4
"""Lines of a tool's answer that are shown, and of a thought."""
_MARK = re.compile(r"<[|/]?[\w|]+>")
_ACTION = re.compile(r"<tool_call>|<answer>|<\|python_tag\|>|\{\"name\"")


class TurnLog:
    """Writes to a console as turns come in. What a model or a page wrote is text."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._number = 0
        self._segment = 0

    def begin(self, task: Task) -> None:
        self._say(task.question, "bold")
        self._say(f"tools: {', '.join(task.tools) or 'none'}\n", "dim")

    def turn(self, turn: Turn) -> None:
        """A `Watch`."""
        self._number += 1
        if turn.segment != self._segment:
            self._segment = turn.segment
            self._say(f"-- context written anew, {turn.prompt_tokens:,} tokens: older pages are dropped --", "magenta")
        self._say(f"{self._number:>3}  {turn.prompt_tokens:,} tokens seen, {len(turn.output_ids)} written", "dim")
        if thought := _thought(turn.text):
            self._say(_first_lines(thought, "     "), "italic")
        for call in turn.tool_calls:
            self._say(f"     {_call(call)}", "cyan")
        if turn.fault:
            self._say(f"     no step: {turn.fault.replace('_', ' ')}", "red")
        if turn.observation:
            self._say(_first_lines(turn.observation, "       "), "")

    def end(self, done: Trajectory, gold: str, grade: Grade | None) -> None:
        """The outcome, after the last turn."""
        ended = f"{done.stop.value} after {len(done.turns)} turns, {done.tokens:,} tokens"
        if grade is None:
            self._say(f"{ended}{f': {done.error}' if done.error else ''}; the answer is {gold}", "yellow")
            return
        colour = {"right": "green", "wrong": "red"}.get(grade.verdict.value, "yellow")
        why = f" ({grade.reason})" if grade.reason else ""
        self._say(f"{ended}: {done.answer}  {grade.verdict.value}{why}; the answer is {gold}", colour)

    def _say(self, text: str, style: str) -> None:
        self._console.print(Text(text, style=style), soft_wrap=False)


def _thought(text: str) -> str:
    """What a turn says before it acts."""
    return _MARK.sub("", _ACTION.split(text, maxsplit=1)[0]).strip()


def _call(call: ToolCall) -> str:
    given = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    return f"{call.name}({given})"


def _first_lines(text: str, indent: str) -> str:
    lines = [line if len(line) <= 160 else f"{line[:157]}..." for line in text.splitlines()]
    more = [f"... {len(lines) - LINES} lines more"] if len(lines) > LINES else []
    return "\n".join(f"{indent}{line}" for line in [*lines[:LINES], *more])
