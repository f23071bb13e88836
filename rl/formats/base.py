"""The turn format of a model, token in and token out.

History only ever grows: the next prompt is the last prompt, the sampled ids and the ids of what is shown next. Sampled ids
are never encoded again. Where a family's own template rewrites earlier turns (it drops old thoughts), ours keeps them.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Protocol

from infra.tools.base import Schema, ToolSpec
from rl.tokens import Answer, BrokenFormat, Codec, FormatError, FormatKind, Step, ToolCalls, mark

Ids = tuple[int, ...]


class TurnFormat(Protocol):
    """How an episode is written for one tokenizer."""

    @property
    def ends(self) -> Ids:
        """The ids that end a sampled turn; the first is the one that `turn` writes."""
        ...

    @property
    def end(self) -> int:
        """The first of `ends`."""
        ...

    def opening(self, question: str, tools: Sequence[ToolSpec], memory: str = "") -> Ids:
        """What an episode begins with, up to where the policy's first turn begins; it holds the only BOS.

        `memory` (plan and notes) is shown after the question.
        """
        ...

    def observation(self, results: Sequence[str]) -> Ids:
        """What follows a sampled turn, up to where the next begins: each result in a tool span of its own."""
        ...

    def request(self, results: Sequence[str], text: str) -> Ids:
        """As `observation`, and after the results (there may be none) a message of the user's. Follows a sampled turn."""
        ...

    def turn(self, step: ToolCalls | Answer) -> Ids:
        """Ids of a turn that takes this step, as a perfect policy would sample them.

        A thought is left out where the family has no place for one.
        """
        ...

    def parse(self, ids: Sequence[int], tools: Mapping[str, Schema]) -> Step:
        """The step that one sampled turn takes, with the schemas of `tools` by name."""
        ...

    def text(self, ids: Sequence[int]) -> str | None:
        """What a turn says that was asked for by `request`, without a thought before it and surrounding space.

        `None` if it is cut, calls a tool or holds a control token. A perfect policy writes the encoded text and `end`.
        """
        ...

    def encode(self, text: str) -> Ids:
        """Ids of plain text; never a control token, whatever the text spells."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids, control tokens spelled out. An id that is no token has none."""
        ...

    def knows(self, ids: Iterable[int]) -> bool:
        """Whether each of the ids is a token."""
        ...


class Style(ABC):
    """What the formats have in common. A style reads the parts of a whole turn; why it is none, it raises."""

    def __init__(self, codec: Codec, ends: Sequence[str]) -> None:
        self.codec = codec
        self.ends: Ids = tuple(codec.id[token] for token in ends)

    @property
    def end(self) -> int:
        return self.ends[0]

    def encode(self, text: str) -> Ids:
        return self.codec.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        return self.codec.decode(ids)

    def knows(self, ids: Iterable[int]) -> bool:
        return self.codec.knows(ids)

    def parse(self, ids: Sequence[int], tools: Mapping[str, Schema]) -> Step:
        try:
            return self._step(self._whole(ids), tools)
        except BrokenFormat as broken:
            return FormatError(broken.kind)

    def text(self, ids: Sequence[int]) -> str | None:
        try:
            return self._said(self._whole(ids))
        except BrokenFormat:
            return None

    def _whole(self, ids: Sequence[int]) -> list[str]:
        """The parts of a turn without its end. Whatever a turn says of itself, without its end it was cut."""
        if not ids or ids[-1] not in self.ends:
            raise BrokenFormat(FormatKind.TRUNCATED)
        if not self.codec.knows(ids):
            raise BrokenFormat(FormatKind.UNKNOWN_TOKEN)
        return self.codec.split(ids[:-1])

    @abstractmethod
    def _step(self, parts: list[str], tools: Mapping[str, Schema]) -> ToolCalls | Answer: ...

    @abstractmethod
    def _said(self, parts: list[str]) -> str:
        """The plain text of the parts."""
        ...


class BlockStyle(Style):
    """A style whose control tokens come in pairs around blocks, `<name>text</name>`."""

    blocks: tuple[str, ...]
    """What a turn may hold."""
    results: tuple[str, ...] = ("<tool_response>", "</tool_response>")
    """Control tokens of what only tools say."""

    def _read(self, parts: Sequence[str]) -> tuple[str, list[tuple[str, str]]]:
        """The thought that a turn begins with, and its blocks as (name, text); text between them has no name."""
        marks = set(map(mark, parts)) - {""}
        if marks.intersection(self.results):
            raise BrokenFormat(FormatKind.SELF_WRITTEN_RESPONSE)
        if marks - set(pairs(self.blocks)):
            raise BrokenFormat(FormatKind.MISPLACED)
        found: list[tuple[str, str]] = []
        opened, text = "", ""
        for part in parts:
            token = mark(part)
            if not token:
                text = part
            elif not opened and token.startswith("</"):
                raise BrokenFormat(FormatKind.MISPLACED)
            elif opened and token != f"</{opened}>":
                raise BrokenFormat(FormatKind.UNCLOSED)
            else:
                found.append((opened, text))
                opened, text = "" if opened else token.strip("<>"), ""
        if opened:
            raise BrokenFormat(FormatKind.UNCLOSED)
        found = [(name, text) for name, text in (*found, ("", text)) if name or text.strip()]
        thought = found.pop(0)[1] if found and found[0][0] == "think" else ""
        if any(name == "think" for name, _ in found):
            raise BrokenFormat(FormatKind.MISPLACED)
        return thought, found

    def _said(self, parts: list[str]) -> str:
        blocks = self._read(parts)[1]
        if any(name for name, _ in blocks):
            raise BrokenFormat(FormatKind.MISPLACED)
        return "".join(text for _, text in blocks).strip()


def pairs(blocks: Sequence[str]) -> tuple[str, ...]:
    """The control tokens around blocks of these names."""
    return tuple(f"<{slash}{block}>" for block in blocks for slash in ("", "/"))


def asked(question: str, memory: str) -> str:
    """What the user says first."""
    return f"{question}\n\n{memory}" if memory else question


def described(tool: ToolSpec) -> Mapping[str, object]:
    """A tool as chat templates are given it."""
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)}
    return {"type": "function", "function": function}


def self_written(parts: Sequence[str], header: str, role: str) -> bool:
    """Whether a message of a role that only tools have begins among the parts."""
    return any(mark(one) == header and not mark(two) and two.startswith(role) for one, two in pairwise(parts))
