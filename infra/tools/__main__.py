"""One of our own servers of tools, on standard streams: what `own_server` names and an episode's tools start."""

import argparse
import asyncio
import sys

from infra.sandbox import Isolation
from infra.tools.serve import ServeOptions, serve
from schemas.errors import TouchstoneError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m infra.tools")
    parser.add_argument("--tools", required=True)
    parser.add_argument("--pages")
    parser.add_argument("--host", action="append", default=[])
    parser.add_argument("--deny", action="append", default=[])
    parser.add_argument("--isolation", default=Isolation.BUBBLEWRAP)
    given = parser.parse_args()
    options = ServeOptions(
        tuple(given.tools.split(",")), given.pages, tuple(given.host), tuple(given.deny), given.isolation
    )
    try:
        asyncio.run(serve(options, http=False))
    except TouchstoneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
