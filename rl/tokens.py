"""The turn format, token in and token out.

    prompt        <|bos|><|user|>question<|end|><|assistant|>
    sampled       <think>reason</think><tool_call>{"name": "open", "arguments": {"id": "Niger"}}</tool_call><|end|>
               or <think>reason</think><answer>Niger</answer><|end|>
    observation   <|tool|><tool_response>text</tool_response><|end|><|assistant|>

History only ever grows: the next prompt is the last prompt, the sampled ids and the observation's ids. Sampled ids are
never encoded again, and structure is read from ids: text that spells a control token is text, on its way in
(questions, pages) and on its way out (what a policy writes). What a policy wrote is called as written or not at all.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from tokenizers import Tokenizer

from schemas.base import unique_keys
from schemas.errors import TouchstoneError
from schemas.trajectory import ToolCall, Turn

BLOCKS = ("think", "tool_call", "tool_response", "answer")
CONTROL_TOKENS = (
    *("<|bos|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|end|>"),
    *(token for block in BLOCKS for token in (f"<{block}>", f"</{block}>")),
)

Schema = Mapping[str, Any]
"""A JSON schema of a tool's arguments."""


class TokenizerError(TouchstoneError):
    """A tokenizer that cannot carry the turn format."""


class FormatKind(StrEnum):
    """Why a sampled turn is no step. Nothing of such a turn is executed."""

    TRUNCATED = "truncated"
    """Cut by the token limit: it does not end in `<|end|>`, whatever it holds."""
    NO_ACTION = "no_action"
    TEXT_OUTSIDE = "text_outside"
    UNCLOSED = "unclosed"
    MISPLACED = "misplaced"
    """A control token where none may stand: a role, a second thought, a thought after the action."""
    SELF_WRITTEN_RESPONSE = "self_written_response"
    SEVERAL_ANSWERS = "several_answers"
    CALL_AND_ANSWER = "call_and_answer"
    EMPTY_ANSWER = "empty_answer"
    INVALID_JSON = "invalid_json"
    INVALID_CALL = "invalid_call"
    """JSON, but not an object of exactly a `name` and an object of `arguments`."""
    UNKNOWN_TOOL = "unknown_tool"
    WRONG_ARGUMENTS = "wrong_arguments"


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """One or more calls, to be made in this order."""

    calls: tuple[ToolCall, ...]
    thought: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The final answer, without surrounding space."""

    text: str
    thought: str = ""


@dataclass(frozen=True, slots=True)
class FormatError:
    """A turn that breaks the format. `str` of it is what the policy is told."""

    kind: FormatKind

    def __str__(self) -> str:
        return f"error: {self.kind.replace('_', ' ')}"


Step = ToolCalls | Answer | FormatError


class TurnFormat:
    """The format over one tokenizer, which must hold every control token as one special id and give text back as it was."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        # A copy of our own, as the flag below is state of the tokenizer, and others may want it otherwise.
        self._tokenizer = Tokenizer.from_str(tokenizer.to_str())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        # Only this keeps a special token's spelling in a text from becoming the token; `add_special_tokens` does not.
        self._tokenizer.encode_special_tokens = True
        self._id = {token: self._control_id(token) for token in CONTROL_TOKENS}
        self._control = {id: token for token, id in self._id.items()}
        self.end: int = self._id["<|end|>"]

    @classmethod
    def load(cls, folder: Path) -> "TurnFormat":
        """The format of a model folder (`tokenizer.json`)."""
        path = folder / "tokenizer.json"
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises nothing narrower
            raise TokenizerError(f"{path}: cannot be read ({error}); give a model folder with its tokenizer") from error
        return cls(tokenizer)

    def _control_id(self, token: str) -> int:
        id = self._tokenizer.token_to_id(token)
        if id is None:
            raise TokenizerError(f"{token}: not in the tokenizer; add it as a special token")
        if id in self.encode(token):
            raise TokenizerError(f"{token}: not a special token, so a page could write it; add it as a special token")
        return int(id)

    def encode(self, text: str) -> tuple[int, ...]:
        """Ids of plain text; never a control token, whatever the text spells."""
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids, control tokens spelled out."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))

    def prompt(self, question: str) -> tuple[int, ...]:
        """Ids of an episode's first prompt; it holds the only BOS."""
        control = self._id
        opening = (control["<|bos|>"], control["<|user|>"])
        return (*opening, *self.encode(question), control["<|end|>"], control["<|assistant|>"])

    def observation(self, text: str) -> tuple[int, ...]:
        """Ids that tell the policy a tool result and hand it the next turn."""
        control = self._id
        return (control["<|tool|>"], *self._block("tool_response", text), control["<|end|>"], control["<|assistant|>"])

    def turn(self, step: ToolCalls | Answer) -> tuple[int, ...]:
        """Ids of a turn that takes this step, as a perfect policy would sample them."""
        ids = self._block("think", step.thought) if step.thought else ()
        if isinstance(step, Answer):
            return (*ids, *self._block("answer", step.text), self.end)
        for call in step.calls:
            body = json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False)
            ids += self._block("tool_call", body)
        return (*ids, self.end)

    def _block(self, name: str, text: str) -> tuple[int, ...]:
        return (self._id[f"<{name}>"], *self.encode(text), self._id[f"</{name}>"])

    def render(self, question: str, turns: Sequence[Turn]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Ids of a whole episode and its loss mask: 1 on sampled tokens, 0 on everything the policy was shown."""
        ids = list(self.prompt(question))
        mask = [0] * len(ids)
        for turn in turns:
            shown = () if turn.observation is None else self.observation(turn.observation)
            ids += (*turn.output_ids, *shown)
            mask += [1] * len(turn.output_ids) + [0] * len(shown)
        return tuple(ids), tuple(mask)

    def parse(self, ids: Sequence[int], tools: Mapping[str, Schema]) -> Step:
        """The step that one sampled turn takes, with `tools` by name."""
        if not ids or ids[-1] != self.end:
            return FormatError(FormatKind.TRUNCATED)
        blocks = self._blocks(ids[:-1])
        if isinstance(blocks, FormatError):
            return blocks
        thought = blocks.pop(0)[1] if blocks and blocks[0][0] == "think" else ""
        answers = [text.strip() for name, text in blocks if name == "answer"]
        calls = [text for name, text in blocks if name == "tool_call"]
        if kind := _misuse(blocks, answers, calls):
            return FormatError(kind)
        if answers:
            return Answer(answers[0], thought)
        read = [_call(text, tools) for text in calls]
        for call in read:
            if isinstance(call, FormatError):
                return call
        return ToolCalls(tuple(call for call in read if isinstance(call, ToolCall)), thought)

    def _blocks(self, ids: Sequence[int]) -> list[tuple[str, str]] | FormatError:
        """The blocks of a turn as (name, text), or what is wrong with their nesting."""
        spelled = {self._control.get(id, "") for id in ids}
        if spelled & {"<tool_response>", "</tool_response>", "<|tool|>"}:
            return FormatError(FormatKind.SELF_WRITTEN_RESPONSE)
        if spelled & {"<|bos|>", "<|user|>", "<|assistant|>", "<|end|>"}:
            return FormatError(FormatKind.MISPLACED)
        blocks, opened, start = [], "", 0
        for i, id in enumerate([*ids, self.end]):
            if id not in self._control:
                continue
            token, text = self._control[id], self.decode(ids[start:i])
            if not opened and text.strip():
                return FormatError(FormatKind.TEXT_OUTSIDE)
            if opened and token != f"</{opened}>":
                return FormatError(FormatKind.UNCLOSED)
            if not opened and token.startswith("</"):
                return FormatError(FormatKind.MISPLACED)
            if opened:
                blocks.append((opened, text))
            opened = "" if opened else token.strip("<>")
            start = i + 1
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


def _call(text: str, tools: Mapping[str, Schema]) -> ToolCall | FormatError:
    try:
        call = json.loads(text, object_pairs_hook=unique_keys)
        # Infinities and lone surrogates pass the line above, but no JSON or UTF-8 writer takes them back.
        json.dumps(call, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return FormatError(FormatKind.INVALID_JSON)
    match call:
        case {"name": str(name), "arguments": dict(arguments), **rest} if not rest:
            pass
        case _:
            return FormatError(FormatKind.INVALID_CALL)
    if name not in tools:
        return FormatError(FormatKind.UNKNOWN_TOOL)
    if not Draft202012Validator(tools[name]).is_valid(arguments):
        return FormatError(FormatKind.WRONG_ARGUMENTS)
    return ToolCall(name=name, arguments=arguments)
