"""What a tool is, for the server that runs it and for the episode that calls it.

A tool answers in text. What a policy got wrong is an answer too (`error=True`); only a tool that is broken or cannot be
reached raises, `ToolDown`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from pydantic import JsonValue

from schemas.errors import TouchstoneError
from schemas.trajectory import ToolCall

Schema = Mapping[str, Any]
"""A JSON schema of a tool's arguments."""


class Effect(StrEnum):
    """What making a call a second time would do."""

    READ = "read"
    """Nothing: it may be made again, anywhere, in any order and beside others."""
    SESSION = "session"
    """It changes its own session and nothing else: a session that is lost is made again from its calls, in their order."""
    OUTSIDE = "outside"
    """It may change something for good: never made twice, and one that may or may not have been made is reported as that."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool as a policy is told of it. Tools that nobody vouches for are `OUTSIDE`."""

    name: str
    description: str
    schema: Schema
    effect: Effect = Effect.OUTSIDE


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call gave. `error`: it was not carried out and changed nothing; `text` then says why.

    `sources` are the documents whose text is shown, as a policy may name them again.
    """

    text: str
    error: bool = False
    sources: tuple[str, ...] = ()


class ToolDown(TouchstoneError):
    """No server made the call in its time. Nobody's failure but the tool's."""


class Toolset(Protocol):
    """Tools that belong together and share the state of a session. Serves many sessions on one event loop and never blocks it."""

    @property
    def specs(self) -> Sequence[ToolSpec]: ...

    async def call(self, session: str, name: str, arguments: Mapping[str, JsonValue]) -> ToolResult:
        """Make a call whose arguments satisfy the schema. The first call of a session opens it."""
        ...

    async def end(self, session: str) -> None:
        """Forget the session; one that was never opened is no error."""
        ...

    async def close(self) -> None: ...


class ToolSession(Protocol):
    """The tools as one episode has them. Calls are made one after another; `READ` ones may overlap."""

    @property
    def specs(self) -> Mapping[str, ToolSpec]:
        """By name."""
        ...

    @property
    def journal(self) -> tuple[ToolCall, ...]:
        """The `SESSION` calls that were carried out, in order: what `Tools.session` takes to make it again."""
        ...

    async def call(self, call: ToolCall) -> ToolResult:
        """Make a call whose name is in `specs` and whose arguments satisfy its schema. Raises `ToolDown`."""
        ...

    async def close(self) -> None: ...


class Tools(Protocol):
    """Where an episode gets its tools from."""

    @property
    def specs(self) -> Mapping[str, ToolSpec]: ...

    def session(self, journal: Sequence[ToolCall] = ()) -> ToolSession:
        """A new session; its state is that after the calls of `journal`, which are made again when it is first used."""
        ...
