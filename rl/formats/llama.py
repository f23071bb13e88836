r"""Llama 3.1 and later.

    opening       <|begin_of_text|>, system and user message as below, <|start_header_id|>assistant<|end_header_id|>\n\n
    sampled       {"name": "open", "parameters": {"id": "Niger"}}<|eot_id|>
               or reason<|python_tag|>{"name": ...}; {"name": ...}<|eot_id|>, or <|eom_id|> at the end
               or Niger<|eot_id|>
    observation   <|start_header_id|>ipython<|end_header_id|>\n\n"text"<|eot_id|> for each result, and the assistant's header

Tools are described in the user's first message, and results are JSON strings, as the family's template has it. The template
writes a single call without a thought; the tag is what a thought needs, and several calls are separated as the models do.
Where no tag says so, a turn is a call exactly if it begins like a JSON object, `{"`; so no answer can begin like that.
Messages lose the space around them. An answer has no thought, as all of its text is the answer.
"""

import json
import re
from collections.abc import Mapping, Sequence

from pydantic import JsonValue
from tokenizers import Tokenizer

from infra.tools.base import Schema, ToolSpec
from rl.formats.base import Ids, Style, asked, described, self_written
from rl.tokens import Answer, BrokenFormat, Codec, FormatKind, Markup, ToolCalls, mark, read_call, read_json, write_call

CONTROL_TOKENS = (
    *("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>"),
    "<|python_tag|>",
)
DATES = "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"
"""The template's own default; a real date would make the same task another prompt each day."""
_TOOLS = (
    "Given the following functions, please respond with a JSON for a function call with its proper arguments that best "
    'answers the given prompt.\n\nRespond in the format {"name": function name, "parameters": dictionary of argument name '
    "and its value}.Do not use variables.\n\n"
)
_CALL = re.compile(r'\s*\{\s*"')
_NEXT = re.compile(r"\s*(;\s*)?")


class Llama(Style):
    known_by = ("<|start_header_id|>",)

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__(Codec(tokenizer, CONTROL_TOKENS), ("<|eot_id|>", "<|eom_id|>"))

    def opening(self, question: str, tools: Sequence[ToolSpec], memory: str = "") -> Ids:
        guide = [f"{json.dumps(described(tool), ensure_ascii=False, indent=4)}\n\n" for tool in tools]
        environment = "Environment: ipython\n" if tools else ""
        system = _message("system", f"{environment}{DATES}")
        user = _message("user", *([_TOOLS, *guide] if tools else []), asked(question, memory).strip())
        return self.codec.join(Markup("<|begin_of_text|>"), *system, *user, _header("assistant"))

    def observation(self, results: Sequence[str]) -> Ids:
        return self.codec.join(*_shown(results), _header("assistant"))

    def request(self, results: Sequence[str], text: str) -> Ids:
        return self.codec.join(*_shown(results), *_message("user", text.strip()), _header("assistant"))

    def turn(self, step: ToolCalls | Answer) -> Ids:
        if isinstance(step, Answer):
            return self.codec.join(step.text, Markup("<|eot_id|>"))
        thought = [step.thought, Markup("<|python_tag|>")] if step.thought else []
        calls = "; ".join(write_call(call, "parameters") for call in step.calls)
        return self.codec.join(*thought, calls, Markup("<|eot_id|>"))

    def _step(self, parts: list[str], tools: Mapping[str, Schema]) -> ToolCalls | Answer:
        said, calls = _divided(parts)
        if calls is not None:
            found = tuple(read_call(value, tools, "parameters") for value in _values(calls))
            return ToolCalls(found, said)
        if not said:
            raise BrokenFormat(FormatKind.EMPTY_ANSWER)
        return Answer(said)

    def _said(self, parts: list[str]) -> str:
        said, calls = _divided(parts)
        if calls is not None:
            raise BrokenFormat(FormatKind.MISPLACED)
        return said


def _divided(parts: list[str]) -> tuple[str, str | None]:
    """What a turn says, and the text of its calls where it makes some."""
    if self_written(parts, "<|start_header_id|>", "ipython"):
        raise BrokenFormat(FormatKind.SELF_WRITTEN_RESPONSE)
    marks = [token for token in map(mark, parts) if token]
    text = "".join(part for part in parts if not mark(part))
    if marks == ["<|python_tag|>"]:
        at = next(i for i, part in enumerate(parts) if mark(part))
        return "".join(parts[:at]).strip(), "".join(parts[at + 1 :])
    if marks:
        raise BrokenFormat(FormatKind.MISPLACED)
    return ("", text) if _CALL.match(text) else (text.strip(), None)


def _values(text: str) -> list[JsonValue]:
    """The JSON values that semicolons separate."""
    values, at = [], len(text) - len(text.lstrip())
    while True:
        try:
            end = json.JSONDecoder().raw_decode(text, at)[1]
        except (ValueError, RecursionError) as error:
            raise BrokenFormat(FormatKind.INVALID_JSON) from error
        values.append(read_json(text[at:end]))
        between = _NEXT.match(text, end)
        assert between is not None  # it matches nothing too
        at = between.end()
        if not between[1] and at == len(text):
            return values
        if not between[1]:
            raise BrokenFormat(FormatKind.TEXT_OUTSIDE)


def _header(role: str) -> Markup:
    return Markup(f"<|start_header_id|>{role}<|end_header_id|>\n\n")


def _message(role: str, *text: str) -> list[str]:
    return [_header(role), *text, Markup("<|eot_id|>")]


def _shown(results: Sequence[str]) -> list[str]:
    return [part for result in results for part in _message("ipython", json.dumps(result, ensure_ascii=False))]
