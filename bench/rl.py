"""`make bench-rl`: training. `python -m bench.rl [schedule onpolicy overlap learn kills speed]`, all by default."""

import asyncio
import sys

from bench import kills, learn, onpolicy, overlap, schedule, speed
from bench.run import run

PARTS = {
    "schedule": schedule,
    "onpolicy": onpolicy,
    "overlap": overlap,
    "learn": learn,
    "kills": kills,
    "speed": speed,
}

if __name__ == "__main__":
    sys.exit(asyncio.run(run("rl", PARTS, sys.argv[1:])))
