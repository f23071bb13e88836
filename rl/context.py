"""What of an episode stands in the policy's window.

A context grows by what is sampled and shown. When the next turn would not fit it is written anew, which starts a segment:
the question, the policy's plan and notes and the sources it has read stay; turns stay whole as they were sampled, or go
whole. Which stay is decided by use: a document is used when it is shown and whenever a later turn names its source. Those
used last stay as they were in half of the room, others cut to their first words in the rest, all others go.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

from pydantic import Field, model_validator

from infra.tools.base import Effect, ToolResult, ToolSpec
from rl.formats import TurnFormat
from schemas.base import Record
from schemas.episode import ContextOptions
from schemas.trajectory import ToolCall

Ids = tuple[int, ...]

PLAN = ToolSpec(
    "plan",
    "Replace your plan. It stays in sight when older pages are dropped.",
    {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"], "additionalProperties": False},
    Effect.SESSION,
)
NOTE = ToolSpec(
    "note",
    "Add a line to your notes, or with replace=true write them anew. They stay in sight when older pages are dropped.",
    {
        "type": "object",
        "properties": {"text": {"type": "string"}, "replace": {"type": "boolean"}},
        "required": ["text"],
        "additionalProperties": False,
    },
    Effect.SESSION,
)
MEMORY_TOOLS: Mapping[str, ToolSpec] = {PLAN.name: PLAN, NOTE.name: NOTE}
"""Calls that change the context and not the world; the environment makes them itself."""

REQUEST = (
    "Your context is full. Write down, in plain text and without calling a tool, what you have found so far, where you "
    "found it, what is still open, and what you will do next. Everything else but the question will be dropped."
)
HELD_BACK = "held back until you have written your summary"


class Entry(Record):
    """A turn and what it was shown."""

    sampled: Ids
    texts: tuple[str, ...]
    sources: tuple[str, ...]
    ids: Ids
    """Of `texts` as they are shown now, whole or cut."""
    used: int = Field(ge=0)
    """Number of the last turn that named a source of it."""

    @property
    def size(self) -> int:
        return len(self.sampled) + len(self.ids)


class ContextState(Record):
    """Everything that makes a context again, together with its task and options."""

    segment: int = Field(default=0, ge=0)
    turns: int = Field(default=0, ge=0)
    plan: str = ""
    notes: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    """Sources no longer in sight, the one used last at the end."""
    opening: Ids = ()
    entries: tuple[Entry, ...] = ()
    owes_summary: bool = False
    """The last entry then shows the request for it, and is shown as it was after it."""
    unsampled: int = Field(default=0, ge=0)
    """How many ids at the end of the prompt the policy has not continued yet."""

    @property
    def prompt(self) -> Ids:
        return tuple(chain(self.opening, *(ids for entry in self.entries for ids in (entry.sampled, entry.ids))))

    @model_validator(mode="after")
    def _holds_together(self) -> "ContextState":
        if self.owes_summary and not self.entries:
            raise ValueError("owes_summary=true: there is no turn to write a summary after")
        if self.unsampled > (size := len(self.prompt)):
            raise ValueError(f"unsampled={self.unsampled}: the prompt has only {size} ids")
        return self


class Context:
    """One episode's context. `prompt` is what the next turn is sampled from, `shown` the part of it that is new."""

    def __init__(
        self, format: TurnFormat, options: ContextOptions, window: int, question: str, tools: Sequence[ToolSpec]
    ) -> None:
        self._format = format
        self._options = options
        self._window = window
        self._question = question
        self._tools = tuple(tools)
        opening = format.opening(question, self._tools)
        self.state = ContextState(opening=opening, unsampled=len(opening))

    @property
    def prompt(self) -> Ids:
        return self.state.prompt

    @property
    def shown(self) -> Ids:
        prompt = self.prompt
        return prompt[len(prompt) - self.state.unsampled :]

    @property
    def room(self) -> int:
        """Tokens left in the window."""
        state = self.state
        return self._window - len(state.opening) - sum(entry.size for entry in state.entries)

    @property
    def memory_tokens(self) -> int:
        """Most tokens that plan, notes and sources, or a summary, may take."""
        return int(self._options.memory * self._window)

    def remember(self, call: ToolCall) -> ToolResult:
        """Carry out a call of one of `MEMORY_TOOLS`. What it wrote is in the opening from the next rewrite on."""
        text, state = str(call.arguments["text"]).strip(), self.state
        changed: dict[str, Any]
        if call.name == PLAN.name:
            changed = {"plan": text}
        else:
            changed = {"notes": (text,) if call.arguments.get("replace") else (*state.notes, text)}
        written = state.model_copy(update=changed)
        size = len(self._format.encode(_memory(written.plan, written.notes, ())))
        if size > self.memory_tokens:
            most = self.memory_tokens
            return ToolResult(
                f"error: plan and notes would take {size} of {most} tokens; write them shorter", error=True
            )
        self.state = written
        return ToolResult("written down")

    def add(self, sampled: Sequence[int], results: Sequence[ToolResult], reserve: int) -> None:
        """Take a sampled turn and what it led to, and keep room for `reserve` tokens more where the mode allows."""
        state, turn = self.state, self.state.turns + 1
        texts = tuple(result.text for result in results)
        sources = tuple(dict.fromkeys(source for result in results for source in result.sources))
        entry = Entry(
            sampled=tuple(sampled), texts=texts, sources=sources, ids=self._format.observation(texts), used=turn
        )
        written = self._format.decode(sampled)
        entries = tuple(
            old.model_copy(update={"used": turn}) if any(source in written for source in old.sources) else old
            for old in state.entries
        )
        self.state = state.model_copy(update={"turns": turn, "entries": (*entries, entry), "unsampled": len(entry.ids)})
        if self.room >= self._needed(reserve) or self._options.mode == "off":
            return
        if self._options.mode == "summarise":
            self._ask()
        else:
            self._rewrite(reserve)

    def summarise(self, sampled: Sequence[int], reserve: int) -> bool:
        """Take the summary that was asked for as the new notes; without one, documents are dropped by use. Says which."""
        summary = self._format.text(sampled)
        state = self.state.model_copy(update={"owes_summary": False})
        if summary is not None:
            last = state.entries[-1]
            gone = _joined(state.gone, *(entry.sources for entry in state.entries[:-1]))
            state = state.model_copy(update={"notes": (summary,), "gone": gone, "entries": (last,)})
        self.state = state
        self._rewrite(reserve)
        return summary is not None

    def _needed(self, reserve: int) -> int:
        """Room that the next turn needs: to sample it and, where summaries are asked for, to ask for one after it."""
        if self._options.mode != "summarise":
            return reserve
        return reserve + len(self._request) + self.memory_tokens

    @cached_property
    def _request(self) -> Ids:
        return self._format.request((HELD_BACK,), REQUEST)

    def _ask(self) -> None:
        """Ask for a summary. What the last turn was shown is held back until then, as it may be too long to stand here."""
        *before, last = self.state.entries
        entries = (*before, last.model_copy(update={"ids": self._request}))
        self.state = self.state.model_copy(
            update={"entries": entries, "owes_summary": True, "unsampled": len(self._request)}
        )

    def _rewrite(self, reserve: int) -> None:
        state = self.state
        base = len(self._format.opening(self._question, self._tools)) + self.memory_tokens
        *before, last = state.entries
        last = self._fitted(last, self._window - base - self._needed(reserve))
        room = int(self._options.keep * self._window) - base - last.size
        whole_room, kept = room // 2, {len(before): last}
        by_use = sorted(range(len(before)), key=lambda i: (before[i].used, i), reverse=True)
        for i in by_use:
            entry = before[i]
            if entry.size > whole_room:
                entry = self._cut(entry, self._options.short)
            if entry.size > room:
                break
            whole_room, room = whole_room - entry.size, room - entry.size
            kept[i] = entry
        lost = sorted((before[i].used, i) for i in range(len(before)) if i not in kept)
        gone = _joined(state.gone, *(before[i].sources for _, i in lost))
        opening = self._format.opening(self._question, self._tools, self._memory(gone))
        entries = tuple(kept[i] for i in sorted(kept))
        size = len(opening) + sum(entry.size for entry in entries)
        self.state = state.model_copy(
            update={
                "segment": state.segment + 1,
                "gone": gone,
                "opening": opening,
                "entries": entries,
                "unsampled": size,
            }
        )

    def _memory(self, gone: Sequence[str]) -> str:
        """Plan, notes, and of the sources as many as there is room for, the last ones first."""
        left = self.memory_tokens - len(self._format.encode(_memory(self.state.plan, self.state.notes, ("",))))
        listed: list[str] = []
        for source in reversed(gone):
            left -= len(self._format.encode(f"; {source}"))
            if left < 0:
                break
            listed.insert(0, source)
        return _memory(self.state.plan, self.state.notes, listed)

    def _fitted(self, entry: Entry, room: int) -> Entry:
        """The entry as it was shown first, or with its documents cut until it fits."""
        words = max((len(text.split()) for text in entry.texts), default=0)
        entry = self._shown(entry, entry.texts)
        while entry.size > room and words > self._options.short:
            words = max(words // 2, self._options.short)
            entry = self._cut(entry, words)
        return entry

    def _cut(self, entry: Entry, words: int) -> Entry:
        return self._shown(entry, [_cut(text, words) for text in entry.texts])

    def _shown(self, entry: Entry, texts: Sequence[str]) -> Entry:
        return entry.model_copy(update={"ids": self._format.observation(tuple(texts))})


def _cut(text: str, words: int) -> str:
    """The first words of a text, with how many it had; the text itself where it has no more."""
    said = text.split()
    return text if len(said) <= words else f"{' '.join(said[:words])} [cut: {words} of {len(said)} words]"


def _memory(plan: str, notes: Sequence[str], sources: Sequence[str]) -> str:
    parts = [f"Plan: {plan}"] if plan else []
    if notes:
        parts.append("\n".join(["Notes:", *notes]))
    if sources:
        parts.append("Read before and dropped: " + "; ".join(sources))
    return "\n\n".join(parts)


def _joined(*groups: Sequence[str]) -> tuple[str, ...]:
    """All in order; what comes again counts where it comes last."""
    everything = [name for group in groups for name in group]
    return tuple(reversed(dict.fromkeys(reversed(everything))))
