"""`make bench-env`: the agent's world. `python -m bench.env [deep crowd sandbox faults injection]`, all by default."""

import asyncio
import sys

from bench import crowd, deep, faults, injection, sandbox
from bench.run import run

PARTS = {"deep": deep, "crowd": crowd, "sandbox": sandbox, "faults": faults, "injection": injection}

if __name__ == "__main__":
    sys.exit(asyncio.run(run("env", PARTS, sys.argv[1:])))
