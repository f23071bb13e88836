"""`touchstone tools`: what a policy calls, for any client of the Model Context Protocol."""

import asyncio
from contextlib import ExitStack
from typing import Annotated

import typer

from infra.pages.place import WEB
from infra.sandbox import Isolation
from infra.settings import Settings
from infra.tools.serve import ServeOptions, serve
from pipeline.corpora import load_world, store


def tools(
    world: Annotated[str, typer.Option(help="World that is searched and browsed, or a file of documents.")] = "atlas",
    pages: Annotated[
        str | None, typer.Option(help="Instead of a world: a folder of HTML, a .zim file, or `http` for the web.")
    ] = None,
    only: Annotated[
        str | None, typer.Option(help="Toolsets, separated by commas; all, but for search over `http`.")
    ] = None,
    host: Annotated[list[str] | None, typer.Option(help="A private host that `http` may reach.")] = None,
    deny: Annotated[list[str] | None, typer.Option(help="A page that is not to be found: id, URL, sha256:...")] = None,
    isolation: Annotated[
        Isolation, typer.Option(help="What keeps code apart from this machine.")
    ] = Isolation.BUBBLEWRAP,
    stdio: Annotated[bool, typer.Option("--stdio", help="On standard streams instead of streamable HTTP.")] = False,
) -> None:
    """Serve the tools until Ctrl-C: search, a text browser, stateful Python in a sandbox.

    The first line on stdout is `{"url": ...}`, on loopback and a free port.

    Example: `touchstone tools --only search,python`
    """
    named = tuple((only or ("browser,python" if pages == WEB else "search,browser,python")).split(","))
    with ExitStack() as stack:
        if pages is None and {"search", "browser"} & set(named):
            loaded = load_world(world, Settings.from_env().cache)
            pages = str(stack.enter_context(store.folder_of(loaded)))
        options = ServeOptions(
            tools=named, pages=pages, hosts=tuple(host or ()), deny=tuple(deny or ()), isolation=isolation
        )
        asyncio.run(serve(options, http=not stdio))
