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
from rl.formats.base import BlockStyle, Ids, asked, pairs
from rl.tokens import (
    Answer,
    BrokenFormat,
    Codec,
    FormatKind,
    Markup,
    ToolCalls,
    read_call,
    read_json,
    write_call,
)

CONTROL_TOKENS = (
    *("<|bos|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|end|>"),
    *pairs(("think", "tool_call", "tool_response", "answer")),
)


class Ours(BlockStyle):
    """The format over one tokenizer, which must hold every control token as one id and give text back as it was."""

    known_by = ("<|bos|>",)
    blocks = ("think", "tool_call", "answer")
    results = ("<|tool|>", "<tool_response>", "</tool_response>")

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__(Codec(tokenizer, CONTROL_TOKENS), ("<|end|>",))

    def opening(self, question: str, tools: Sequence[ToolSpec], memory: str = "") -> Ids:
        return self.codec.join(Markup("<|bos|>"), *_message("user", asked(question, memory)), Markup("<|assistant|>"))

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
        thought, blocks = self._read(parts)
        if any(not name for name, _ in blocks):
            raise BrokenFormat(FormatKind.TEXT_OUTSIDE)
        answers = [text.strip() for name, text in blocks if name == "answer"]
        calls = [text for name, text in blocks if name == "tool_call"]
        if len(answers) > 1:
            raise BrokenFormat(FormatKind.SEVERAL_ANSWERS)
        if answers and calls:
            raise BrokenFormat(FormatKind.CALL_AND_ANSWER)
        if not blocks:
            raise BrokenFormat(FormatKind.NO_ACTION)
        if answers == [""]:
            raise BrokenFormat(FormatKind.EMPTY_ANSWER)
        if answers:
            return Answer(answers[0], thought)
        return ToolCalls(tuple(read_call(read_json(text), tools) for text in calls), thought)


def _message(role: str, *parts: str) -> list[str]:
    return [Markup(f"<|{role}|>"), *parts, Markup("<|end|>")]


def _block(name: str, text: str) -> list[str]:
    return [Markup(f"<{name}>"), text, Markup(f"</{name}>")]


def _shown(results: Sequence[str]) -> list[str]:
    if not results:
        return []
    return _message("tool", *(part for result in results for part in _block("tool_response", result)))
