"""The tools of episodes, for as long as a block runs: ours in this process or in servers of their own, a user's beside them."""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass

from infra.pages.base import PageError
from infra.pages.corpus import Corpus
from infra.pages.place import WEB
from infra.sandbox import NoIsolation
from infra.tools.base import ToolDown, Tools, Toolset
from infra.tools.local import LocalTools
from infra.tools.pages import toolsets_for
from infra.tools.serve import ServeError, ServeOptions, open_toolsets, own_server
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
    """Those of our tools that `names` are among, over the world's pages. Raises `ToolDown`, `ToolClash` or `NoPages`."""
    ours = _toolsets_of(names) - ({"search"} if options.pages == WEB else set())
    reads = bool(ours & {"search", "browser"})
    if reads and options.pages is None and world is None:
        raise NoPages(f"tools {sorted(ours)}: read pages, and the task has no world; name some in tools.pages")
    async with (_served if options.replicas else _here)(world if reads else None, options, ours) as opened:
        yield opened


@asynccontextmanager
async def _served(world: World | None, options: ToolOptions, ours: Collection[str]) -> AsyncIterator[Opened]:
    with ExitStack() as stack:
        pages = options.pages
        if pages is None and world is not None:
            pages = str(await asyncio.to_thread(stack.enter_context, store.folder_of(world)))
        commands = {
            server: own_server(_serve_options(options, served, pages))
            for server, toolsets in _SERVERS.items()
            if (served := tuple(toolset for toolset in toolsets if toolset in ours))
        }
        async with McpTools(options, commands) as tools:
            known = {name for sets in _TOOLSETS.values() for name in sets}
            yield Opened(tools, tuple(sorted(set(tools.specs) - known)))


@asynccontextmanager
async def _here(world: World | None, options: ToolOptions, ours: Collection[str]) -> AsyncIterator[Opened]:
    async with AsyncExitStack() as stack:
        own = tuple(sorted(ours))
        toolsets: list[Toolset] = []
        if options.pages is None and world is not None:
            own = tuple(name for name in own if name == "python")
            read = await asyncio.to_thread(_readers, world, options.deny)
            for toolset in read:
                stack.push_async_callback(toolset.close)
            toolsets += read
        try:
            toolsets += await stack.enter_async_context(open_toolsets(_serve_options(options, own, options.pages)))
        except (PageError, NoIsolation, ServeError) as error:
            raise ToolDown(str(error)) from error
        yield Opened(LocalTools(toolsets))


def _serve_options(options: ToolOptions, toolsets: tuple[str, ...], pages: str | None) -> ServeOptions:
    said = options.model_dump(include={"hosts", "deny", "isolation", "code_seconds", "code_memory"})
    return ServeOptions(tools=toolsets, pages=pages, **said)


async def try_servers(options: ToolOptions) -> None:
    """Connect to a user's servers once. Raises `ToolDown` or `ToolClash`."""
    if options.servers:
        async with McpTools(options):
            pass


def local_tools(world: World) -> LocalTools:
    """Search and browser over the world in this process, which is faster where thousands of short episodes are played."""
    return LocalTools(_readers(world))


def _readers(world: World, deny: Iterable[str] = ()) -> list[Toolset]:
    return toolsets_for(Corpus(world.documents.values(), index=world.index), deny)


def _toolsets_of(names: Iterable[str]) -> set[str]:
    wanted = set(names)
    return {toolset for toolset, tools in _TOOLSETS.items() if wanted & set(tools)}
