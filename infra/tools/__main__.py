"""`python -m infra.tools --pages FOLDER --http`: our tools for any client of the Model Context Protocol."""

import argparse
import asyncio
import sys

from infra.tools.serve import ServeOptions, serve_http, serve_stdio, toolsets
from schemas.errors import TouchstoneError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m infra.tools", description=__doc__)
    parser.add_argument("--pages", help="the folder of a world, a folder of HTML, a .zim file, or http")
    parser.add_argument("--tools", default="search,browser,python", help="toolsets, separated by commas")
    parser.add_argument("--host", action="append", default=[], help="a private host that http pages may come from")
    parser.add_argument(
        "--deny", action="append", default=[], help="a page that is not to be found: id, URL, sha256:..."
    )
    over = parser.add_mutually_exclusive_group()
    over.add_argument("--http", action="store_true", help="streamable HTTP on loopback; prints its address")
    over.add_argument("--stdio", action="store_true", help="standard streams, the default")
    given = parser.parse_args()
    options = ServeOptions(tuple(given.tools.split(",")), given.pages, tuple(given.host), tuple(given.deny))
    serve = serve_http if given.http else serve_stdio
    try:
        asyncio.run(serve(toolsets(options), serves=str(options.pages)))
    except TouchstoneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
