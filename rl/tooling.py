"""The tools of episodes, for as long as a block runs: ours in server processes of their own, a user's servers beside them."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass

from infra.pages.corpus import Corpus
from infra.pages.place import WEB
from infra.tools.base import Tools
from infra.tools.local import LocalTools
from infra.tools.pages import toolsets_for
from infra.tools.serve import ServeOptions, own_server
from infra.tools.sessions import McpTools
from pipeline.corpora import store
from pipeline.corpora.world import World
from schemas.episode import ToolOptions
from schemas.errors import TouchstoneError

_SERVERS = {"pages": ("search", "browser"), "python": ("python",)}
"""Our server processes, each with its toolsets: what runs a policy's code is apart from the rest."""
_TOOLSETS = {"search": ("search",), "browser": ("open", "find", "follow", "back"), "python": ("python",)}


class NoPages(TouchstoneError):
    """Tools that read pages, without any."""


@dataclass(frozen=True, slots=True)
class Opened:
    """`tools` to be had; `extra` are those of a user's servers, which every task is offered."""

    tools: Tools
    extra: tuple[str, ...] = ()


@asynccontextmanager
async def open_tools(world: World | None, options: ToolOptions, names: Iterable[str]) -> AsyncIterator[Opened]:
    """Serve those of our tools that `names` are among, over the world's pages. Raises `ToolDown`, `ToolClash` or `NoPages`."""
    ours = _toolsets_of(names) - ({"search"} if options.pages == WEB else set())
    reads = bool(ours & {"search", "browser"})
    with ExitStack() as stack:
        pages = options.pages
        if reads and pages is None:
            if world is None:
                raise NoPages(f"tools {sorted(ours)}: read pages, and the task has no world; name some in tools.pages")
            pages = str(await asyncio.to_thread(stack.enter_context, store.folder_of(world)))
        said = options.model_dump(include={"hosts", "deny", "isolation", "code_seconds", "code_memory"})
        commands = {
            server: own_server(ServeOptions(tools=served, pages=pages, **said))
            for server, toolsets in _SERVERS.items()
            if (served := tuple(toolset for toolset in toolsets if toolset in ours))
        }
        async with McpTools(options, commands) as tools:
            known = {name for sets in _TOOLSETS.values() for name in sets}
            yield Opened(tools, tuple(sorted(set(tools.specs) - known)))


async def try_servers(options: ToolOptions) -> None:
    """Connect to a user's servers once. Raises `ToolDown` or `ToolClash`."""
    if options.servers:
        async with McpTools(options):
            pass


def local_tools(world: World) -> LocalTools:
    """Search and browser over the world in this process, which is faster where thousands of short episodes are played."""
    return LocalTools(toolsets_for(Corpus(world.documents.values(), index=world.index)))


def _toolsets_of(names: Iterable[str]) -> set[str]:
    wanted = set(names)
    return {toolset for toolset, tools in _TOOLSETS.items() if wanted & set(tools)}
