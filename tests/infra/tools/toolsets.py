"""Toolsets named by how they behave, and servers of them."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from infra.tools.base import Effect, ToolResult, ToolSpec
from infra.tools.serve import serve_http, serve_stdio


def spec(name: str, effect: Effect, **properties: str) -> ToolSpec:
    return ToolSpec(
        name,
        f"{name} for tests",
        {
            "type": "object",
            "properties": {key: {"type": kind} for key, kind in properties.items()},
            "required": list(properties),
            "additionalProperties": False,
        },
        effect,
    )


class Counter:
    """Counts, in its session."""

    specs: Sequence[ToolSpec] = (spec("add", Effect.SESSION, by="integer"),)

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    async def call(self, session: str, name: str, arguments: Mapping[str, JsonValue]) -> ToolResult:
        by = arguments["by"]
        assert isinstance(by, int)
        self.counts[session] = self.counts.get(session, 0) + by
        return ToolResult(str(self.counts[session]))

    async def end(self, session: str) -> None:
        self.counts.pop(session, None)

    async def close(self) -> None:
        self.counts.clear()


class Echo:
    """`echo` says it again, with a source; `pid` tells which process answers."""

    specs: Sequence[ToolSpec] = (spec("echo", Effect.READ, text="string"), spec("pid", Effect.READ))

    async def call(self, session: str, name: str, arguments: Mapping[str, JsonValue]) -> ToolResult:
        if name == "pid":
            return ToolResult(str(os.getpid()))
        return ToolResult(str(arguments["text"]), sources=(f"doc:{arguments['text']}",))

    async def end(self, session: str) -> None: ...

    async def close(self) -> None: ...


class Slow:
    """`wait` takes its time; `running` tells how many waits there are."""

    specs: Sequence[ToolSpec] = (spec("wait", Effect.READ, seconds="number"), spec("running", Effect.READ))

    def __init__(self) -> None:
        self.running = 0

    async def call(self, session: str, name: str, arguments: Mapping[str, JsonValue]) -> ToolResult:
        if name == "running":
            return ToolResult(str(self.running))
        seconds = arguments["seconds"]
        assert isinstance(seconds, int | float)
        self.running += 1
        try:
            await asyncio.sleep(seconds)
        finally:
            self.running -= 1
        return ToolResult(f"waited {seconds}")

    async def end(self, session: str) -> None: ...

    async def close(self) -> None: ...


class Broken:
    """`boom` raises; `die` kills the server, `hang` stops it; `refuse` is an error of the caller's."""

    specs: Sequence[ToolSpec] = (
        spec("boom", Effect.READ),
        spec("die", Effect.SESSION),
        spec("hang", Effect.READ),
        spec("refuse", Effect.SESSION),
    )

    async def call(self, session: str, name: str, arguments: Mapping[str, JsonValue]) -> ToolResult:
        if name == "boom":
            raise ZeroDivisionError("by design")
        if name == "refuse":
            return ToolResult("no", error=True)
        os.kill(os.getpid(), signal.SIGKILL if name == "die" else signal.SIGSTOP)
        await asyncio.sleep(60)
        return ToolResult("never")

    async def end(self, session: str) -> None: ...

    async def close(self) -> None: ...


class Outside:
    """`send` appends a line to a file, then takes `seconds`: what must never happen twice."""

    specs: Sequence[ToolSpec] = (spec("send", Effect.OUTSIDE, line="string", seconds="number"),)

    def __init__(self, file: Path) -> None:
        self.file = file

    async def call(self, session: str, name: str, arguments: Mapping[str, JsonValue]) -> ToolResult:
        with self.file.open("a") as out:
            out.write(f"{arguments['line']}\n")
        seconds = arguments["seconds"]
        assert isinstance(seconds, int | float)
        await asyncio.sleep(seconds)
        return ToolResult("sent")

    async def end(self, session: str) -> None: ...

    async def close(self) -> None: ...


def main() -> None:
    """`--http|--stdio FOLDER [PORT [SERVES]]`."""
    over, folder, port, serves = (*sys.argv[1:], *("0", "tests")[len(sys.argv) - 3 :])
    sets = [Counter(), Echo(), Slow(), Broken(), Outside(Path(folder) / "sent")]
    asyncio.run(serve_http(sets, serves, int(port)) if over == "--http" else serve_stdio(sets, serves))


if __name__ == "__main__":
    main()
