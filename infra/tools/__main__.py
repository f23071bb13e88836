"""`python -m infra.tools --pages FOLDER --http`: our tools for any client of the Model Context Protocol."""

import argparse
import asyncio
from pathlib import Path

from infra.tools.serve import ServeOptions, serve_http, serve_stdio, toolsets


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m infra.tools", description=__doc__)
    parser.add_argument("--pages", type=Path, help="folder of pages to search and browse")
    parser.add_argument("--tools", default="search,browser,python", help="toolsets, separated by commas")
    over = parser.add_mutually_exclusive_group()
    over.add_argument("--http", action="store_true", help="streamable HTTP on loopback; prints its address")
    over.add_argument("--stdio", action="store_true", help="standard streams, the default")
    given = parser.parse_args()
    options = ServeOptions(pages=given.pages, tools=tuple(given.tools.split(",")))
    serve = serve_http if given.http else serve_stdio
    asyncio.run(serve(toolsets(options), serves=str(options.pages)))


if __name__ == "__main__":
    main()
