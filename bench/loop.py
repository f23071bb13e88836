"""`make bench-loop`: the loop. `python -m bench.loop [steering planted boundaries twin]`, all by default."""

import asyncio
import sys

from bench import boundaries, planted, steering, twin
from bench.run import run

PARTS = {"steering": steering, "planted": planted, "boundaries": boundaries, "twin": twin}

if __name__ == "__main__":
    sys.exit(asyncio.run(run("loop", PARTS, sys.argv[1:])))
