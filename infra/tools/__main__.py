"""One of our own servers of tools, on standard streams: `python -m infra.tools OPTIONS`, `ServeOptions` as JSON."""

import asyncio
import sys

from infra.tools.serve import ServeOptions, serve
from schemas.errors import TouchstoneError


def main() -> int:
    try:
        asyncio.run(serve(ServeOptions.model_validate_json(sys.argv[1]), http=False))
    except TouchstoneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
