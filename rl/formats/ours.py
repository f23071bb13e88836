"""The format of this project's own policies.

    opening       <|bos|><|user|>question<|end|><|assistant|>
    sampled       <think>reason</think><tool_call>{"name": "open", "arguments": {"id": "Niger"}}</tool_call><|end|>
               or <think>reason</think><answer>Niger</answer><|end|>
    observation   <|tool|><tool_response>text</tool_response><|end|><|assistant|>

Tools are not described: a policy of this format was trained with those it has.
"""

from collections.abc import Mapping, Sequence

from tokenizers import Tokenizer

from infra.tools.base import Schema, ToolSpec
from rl.formats.base import Ids, Style, opening_thought
from rl.tokens import (
    Answer,
    BrokenFormat,
    Codec,
    FormatKind,
    Markup,
    ToolCalls,
    mark,
    read_call,
    read_json,
    write_call,
)

CONTROL_TOKENS = (
    *("<|bos|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|end|>"),
    *(f"<{slash}{block}>" for block in ("think", "tool_call", "tool_response", "answer") for slash in ("", "/")),
)
_RESULTS = {"<tool_response>", "</tool_response>", "<|tool|>"}
_BLOCKS = {f"<{slash}{block}>" for block in ("think", "tool_call", "answer") for slash in ("", "/")}


class Ours(Style):
    """The format over one tokenizer, which must hold every control token as one id and give text back as it was."""

    known_by = ("<|bos|>",)

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__(Codec(tokenizer, CONTROL_TOKENS), ("<|end|>",))

    def opening(self, question: str, tools: Sequence[ToolSpec], memory: str = "") -> Ids:
        asked = f"{question}\n\n{memory}" if memory else question
        return self.codec.join(Markup("<|bos|>"), *_message("user", asked), Markup("<|assistant|>"))

    def observation(self, results: Sequence[str]) -> Ids:
        return self.codec.join(*_shown(results), Markup("<|assistant|>"))

    def request(self, results: Sequence[str], text: str) -> Ids:
        return self.codec.join(*_shown(results), *_message("user", text), Markup("<|assistant|>"))

    def turn(self, step: ToolCalls | Answer) -> Ids:
        parts = _block("think", step.thought) if step.thought else []
        if isinstance(step, Answer):
            parts += _block("answer", step.text)
        else:
            for call in step.calls:
                parts += _block("tool_call", write_call(call))
        return self.codec.join(*parts, Markup("<|end|>"))

    def _step(self, parts: list[str], tools: Mapping[str, Schema]) -> ToolCalls | Answer:
        blocks = _blocks(parts)
        thought = blocks.pop(0)[1] if blocks and blocks[0][0] == "think" else ""
        answers = [text.strip() for name, text in blocks if name == "answer"]
        calls = [text for name, text in blocks if name == "tool_call"]
        if kind := _misuse(blocks, answers, calls):
            raise BrokenFormat(kind)
        if answers:
            return Answer(answers[0], thought)
        return ToolCalls(tuple(read_call(read_json(text), tools) for text in calls), thought)

    def _said(self, parts: list[str]) -> str:
        parts = opening_thought(parts)[1]
        if any(map(mark, parts)):
            raise BrokenFormat(FormatKind.MISPLACED)
        return "".join(parts).strip()


def _message(role: str, *parts: str) -> list[str]:
    return [Markup(f"<|{role}|>"), *parts, Markup("<|end|>")]


def _block(name: str, text: str) -> list[str]:
    return [Markup(f"<{name}>"), text, Markup(f"</{name}>")]


def _shown(results: Sequence[str]) -> list[str]:
    if not results:
        return []
    return _message("tool", *(part for result in results for part in _block("tool_response", result)))


def _blocks(parts: Sequence[str]) -> list[tuple[str, str]]:
    """The blocks of a turn as (name, text); raises what is wrong with their nesting."""
    marks = set(map(mark, parts)) - {""}
    if marks & _RESULTS:
        raise BrokenFormat(FormatKind.SELF_WRITTEN_RESPONSE)
    if marks - _BLOCKS:
        raise BrokenFormat(FormatKind.MISPLACED)
    blocks, opened, text = [], "", ""
    for part in parts:
        token = mark(part)
        if not token and not opened and part.strip():
            raise BrokenFormat(FormatKind.TEXT_OUTSIDE)
        if token and opened and token != f"</{opened}>":
            raise BrokenFormat(FormatKind.UNCLOSED)
        if token and not opened and token.startswith("</"):
            raise BrokenFormat(FormatKind.MISPLACED)
        if not token:
            text = part
        elif opened:
            blocks.append((opened, text))
            opened = ""
        else:
            opened, text = token.strip("<>"), ""
    if opened:
        raise BrokenFormat(FormatKind.UNCLOSED)
    return blocks


def _misuse(blocks: Sequence[tuple[str, str]], answers: Sequence[str], calls: Sequence[str]) -> FormatKind | None:
    """What is wrong with the blocks that follow the opening thought, taken as a whole."""
    if any(name == "think" for name, _ in blocks):
        return FormatKind.MISPLACED
    if len(answers) > 1:
        return FormatKind.SEVERAL_ANSWERS
    if answers and calls:
        return FormatKind.CALL_AND_ANSWER
    if not answers and not calls:
        return FormatKind.NO_ACTION
    return FormatKind.EMPTY_ANSWER if answers == [""] else None
