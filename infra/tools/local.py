"""Toolsets called in this process: what an episode needs where no tool can die, and no server is wanted."""

import asyncio
import secrets
from collections.abc import Mapping, Sequence

from infra.tools.base import Effect, ToolDown, ToolResult, ToolSession, Toolset, ToolSpec
from schemas.errors import TouchstoneError
from schemas.trajectory import ToolCall


class ToolClash(TouchstoneError):
    """Two tools have one name."""


def by_name(toolsets: Sequence[Toolset]) -> dict[str, tuple[Toolset, ToolSpec]]:
    """Every tool with the toolset that runs it. Raises `ToolClash`."""
    found: dict[str, tuple[Toolset, ToolSpec]] = {}
    for toolset in toolsets:
        for spec in toolset.specs:
            if spec.name in found:
                both = f"{type(found[spec.name][0]).__name__} and {type(toolset).__name__}"
                raise ToolClash(f"{spec.name}: a tool of {both}; give one of them another name, or leave one out")
            found[spec.name] = (toolset, spec)
    return found


class LocalTools:
    """`Tools` over toolsets of this process, which closes with them. An exception in a toolset is `ToolDown`."""

    def __init__(self, toolsets: Sequence[Toolset]) -> None:
        self._toolsets = tuple(toolsets)
        self._tools = by_name(toolsets)
        self.specs: Mapping[str, ToolSpec] = {name: spec for name, (_, spec) in self._tools.items()}

    def session(self, journal: Sequence[ToolCall] = ()) -> ToolSession:
        return _LocalSession(self._tools, self._toolsets, self.specs, journal)

    async def close(self) -> None:
        for toolset in self._toolsets:
            await toolset.close()


class _LocalSession:
    def __init__(
        self,
        tools: Mapping[str, tuple[Toolset, ToolSpec]],
        toolsets: Sequence[Toolset],
        specs: Mapping[str, ToolSpec],
        journal: Sequence[ToolCall],
    ) -> None:
        self._tools, self._toolsets, self.specs = tools, toolsets, specs
        self._id = secrets.token_hex(16)
        self._unmade = list(journal)
        self._journal = list(journal)
        self._turn = asyncio.Lock()

    @property
    def journal(self) -> tuple[ToolCall, ...]:
        return tuple(self._journal)

    async def call(self, call: ToolCall) -> ToolResult:
        effect = self.specs[call.name].effect
        if effect is Effect.READ:
            return await self._make(call)
        async with self._turn:
            while self._unmade:
                await self._make(self._unmade[0])
                del self._unmade[0]
            result = await self._make(call)
            if effect is Effect.SESSION and not result.error:
                self._journal.append(call)
            return result

    async def close(self) -> None:
        for toolset in self._toolsets:
            await toolset.end(self._id)

    async def _make(self, call: ToolCall) -> ToolResult:
        try:
            return await self._tools[call.name][0].call(self._id, call.name, call.arguments)
        except ToolDown:
            raise
        except Exception as error:
            raise ToolDown(f"{call.name}: the tool is broken ({type(error).__name__}: {error}); report it") from error
