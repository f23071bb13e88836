"""What every turn format shares: a tokenizer that keeps data apart from structure, and the steps that turns are read as.

Structure is read from ids: text that spells a control token is text, on its way in (questions, pages) and on its way out
(what a policy writes). What a policy wrote is called as written or not at all.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import JsonValue
from tokenizers import Tokenizer

from infra.tools.base import Schema
from infra.tools.schema import MOST_CHARS, satisfies
from schemas.base import unique_keys
from schemas.errors import TouchstoneError
from schemas.trajectory import ToolCall

_CONTROL_LIKE = re.compile(r"<\S+>|\[/?[A-Z_]+\]")
"""`<|im_end|>`, `</think>`, `[INST]`: added tokens that are spelled so are control tokens, whatever they are called."""


class TokenizerError(TouchstoneError):
    """A tokenizer that cannot carry a turn format."""


class FormatKind(StrEnum):
    """Why a sampled turn is no step. Nothing of such a turn is executed."""

    TRUNCATED = "truncated"
    """Cut by the token limit: it does not end in a token that ends turns, whatever it holds."""
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
    """JSON, but not an object of exactly a name and an object of arguments, or one too large or too deep to call."""
    UNKNOWN_TOOL = "unknown_tool"
    WRONG_ARGUMENTS = "wrong_arguments"
    UNKNOWN_TOKEN = "unknown_token"  # noqa: S105 - no secret
    """An id that is no token of the tokenizer's: the sampler's fault."""


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


class BrokenFormat(Exception):
    """Raised while a turn is read; `parse` gives it as a `FormatError`."""

    def __init__(self, kind: FormatKind) -> None:
        super().__init__(kind)
        self.kind = kind


class Markup(str):
    """Text of a format itself: the control tokens it spells are control tokens. In any other text they are text."""


class Codec:
    """A copy of a tokenizer in which no text becomes a control token.

    Control tokens are those the format names and all added tokens that look like some, whether or not the tokenizer calls
    them special; `control` has them by id. Other added tokens, such as names, stay what they are.
    """

    def __init__(self, tokenizer: Tokenizer, named: Sequence[str]) -> None:
        """Raises `TokenizerError` if a token of `named` is missing, or if a text could still become a control token."""
        plain = json.loads(tokenizer.to_str()) | {"truncation": None, "padding": None}
        self.control: dict[int, str] = {}
        for token in plain["added_tokens"]:
            if token["special"] or token["content"] in named or _CONTROL_LIKE.fullmatch(token["content"]):
                token["special"] = True
                self.control[token["id"]] = token["content"]
        self.id = {token: id for id, token in self.control.items()}
        for token in named:
            if token not in self.id:
                raise TokenizerError(f"{token}: not among the tokenizer's added tokens; add it as a special token")
        self._tokenizer = Tokenizer.from_str(json.dumps(plain))
        self._known = frozenset(self._tokenizer.get_vocab().values())
        # Only this keeps a special token's spelling in a text from becoming the token; `add_special_tokens` does not.
        self._tokenizer.encode_special_tokens = True
        for token in self.id:
            if not self.control.keys().isdisjoint(self.encode(token)):
                raise TokenizerError(
                    f"{token}: a text that spells it becomes it; take it out of the vocabulary but for the added tokens"
                )
        self._spelled = re.compile("|".join(map(re.escape, sorted(self.id, key=len, reverse=True))))

    def encode(self, text: str) -> tuple[int, ...]:
        """Ids of plain text; never a control token, whatever the text spells."""
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids, control tokens spelled out. An id that is no token has none."""
        return str(self._tokenizer.decode([id for id in ids if id in self._known], skip_special_tokens=False))

    def knows(self, ids: Iterable[int]) -> bool:
        """Whether each of the ids is a token."""
        return self._known.issuperset(ids)

    def join(self, *parts: str) -> tuple[int, ...]:
        """Ids of the parts as one text: what stands between two control tokens is encoded together, whoever wrote it."""
        ids: list[int] = []
        text = ""
        for part in parts:
            if not isinstance(part, Markup):
                text += part
                continue
            last = 0
            for found in self._spelled.finditer(part):
                ids += (*self.encode(text + part[last : found.start()]), self.id[found[0]])
                text, last = "", found.end()
            text += part[last:]
        return (*ids, *self.encode(text))

    def split(self, ids: Sequence[int]) -> list[str]:
        """The inverse of `join`: control tokens as `Markup`, the text between them; no part is empty."""
        parts: list[str] = []
        start = 0
        for i, id in enumerate([*ids, None]):
            if id is not None and id not in self.control:
                continue
            if start < i:
                parts.append(self.decode(ids[start:i]))
            if id is not None:
                parts.append(Markup(self.control[id]))
            start = i + 1
        return parts


def mark(part: str) -> str:
    """The control token that a part is; "" for text."""
    return str(part) if isinstance(part, Markup) else ""


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a model folder (`tokenizer.json`)."""
    path = folder / "tokenizer.json"
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise TokenizerError(f"{path}: cannot be read ({error}); give a model folder with its tokenizer") from error


def read_json(text: str) -> JsonValue:
    """Strict JSON; anything else is `INVALID_JSON`."""
    try:
        value: JsonValue = json.loads(text, object_pairs_hook=unique_keys)
        # Infinities and lone surrogates pass the line above, but no JSON or UTF-8 writer takes them back.
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise BrokenFormat(FormatKind.INVALID_JSON) from error
    return value


def read_call(value: JsonValue, tools: Mapping[str, Schema], arguments_key: str = "arguments") -> ToolCall:
    """The call that JSON describes, of one of the tools and with the arguments its schema asks for."""
    if not isinstance(value, dict) or value.keys() != {"name", arguments_key}:
        raise BrokenFormat(FormatKind.INVALID_CALL)
    name, arguments = value["name"], value[arguments_key]
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise BrokenFormat(FormatKind.INVALID_CALL)
    if name not in tools:
        raise BrokenFormat(FormatKind.UNKNOWN_TOOL)
    try:
        call, size = ToolCall(name=name, arguments=arguments), len(json.dumps(arguments, ensure_ascii=False))
    except (ValueError, RecursionError) as error:
        raise BrokenFormat(FormatKind.INVALID_CALL) from error
    if size > MOST_CHARS:
        raise BrokenFormat(FormatKind.INVALID_CALL)
    if not satisfies(name, tools[name], arguments):
        raise BrokenFormat(FormatKind.WRONG_ARGUMENTS)
    return call


def write_call(call: ToolCall, arguments_key: str = "arguments") -> str:
    return json.dumps({"name": call.name, arguments_key: call.arguments}, ensure_ascii=False)
