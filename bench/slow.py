"""A tool server whose answers take a lognormal time, as those of a search engine on the web do: `python -m bench.slow`."""

import asyncio
import random
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from infra.tools.base import Effect, ToolResult, ToolSpec
from infra.tools.serve import serve_stdio

MEDIAN_S, SIGMA = 0.5, 1.0
"""Mean 0.82 s; one call in a hundred takes over 5 s."""
LONGEST_S = 20.0


class SlowTools:
    """One tool, `look`, whose answer to an id is the same a hundred words every time."""

    specs: Sequence[ToolSpec] = (
        ToolSpec(
            "look",
            "Look something up.",
            {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
            Effect.READ,
        ),
    )

    async def call(self, session: str, name: str, arguments: Mapping[str, JsonValue]) -> ToolResult:
        await asyncio.sleep(min(random.lognormvariate(0, SIGMA) * MEDIAN_S, LONGEST_S))
        return ToolResult(text_of(str(arguments["id"])))

    async def end(self, session: str) -> None:
        pass

    async def close(self) -> None:
        pass


def text_of(id: str) -> str:
    """What the tool answers."""
    return f"{id}: " + " ".join(["word"] * 100)


if __name__ == "__main__":
    asyncio.run(serve_stdio([SlowTools()]))
