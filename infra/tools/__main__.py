"""`python -m infra.tools --pages FOLDER --http`: our tools for any client of the Model Context Protocol."""

import argparse
import asyncio
import sys

from infra.sandbox import Isolation
from infra.tools.serve import ServeOptions, open_toolsets, serve_http, serve_stdio
from schemas.errors import TouchstoneError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m infra.tools", description=__doc__)
    parser.add_argument("--pages", help="the folder of a world, a folder of HTML, a .zim file, or http")
    parser.add_argument("--tools", default="search,browser,python", help="toolsets, separated by commas")
    parser.add_argument("--host", action="append", default=[], help="a private host that http pages may come from")
    parser.add_argument(
        "--deny", action="append", default=[], help="a page that is not to be found: id, URL, sha256:..."
    )
    parser.add_argument("--isolation", choices=list(Isolation), default=Isolation.BUBBLEWRAP, help="of python's code")
    over = parser.add_mutually_exclusive_group()
    over.add_argument("--http", action="store_true", help="streamable HTTP on loopback; prints its address")
    over.add_argument("--stdio", action="store_true", help="standard streams, the default")
    given = parser.parse_args()
    options = ServeOptions(
        tuple(given.tools.split(",")), given.pages, tuple(given.host), tuple(given.deny), given.isolation
    )
    try:
        asyncio.run(serve(options, http=given.http))
    except TouchstoneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


async def serve(options: ServeOptions, *, http: bool) -> None:
    async with open_toolsets(options) as sets:
        await (serve_http if http else serve_stdio)(sets, serves=str(options.pages))


if __name__ == "__main__":
    sys.exit(main())
