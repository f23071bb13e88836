"""`make bench-env`: the agent's world. `python -m bench.env [deep crowd sandbox faults injection]`, all by default."""

import asyncio
import sys
from types import ModuleType

from rich.console import Console
from rich.table import Table

from bench import crowd, deep, faults, injection, sandbox
from bench.figures import Figure, report

PARTS: dict[str, ModuleType] = {
    "deep": deep,
    "crowd": crowd,
    "sandbox": sandbox,
    "faults": faults,
    "injection": injection,
}


async def main(names: list[str]) -> int:
    figures: list[Figure] = []
    console = Console(width=160)
    for name in names or PARTS:
        part = PARTS[name]
        rows, found = await part.measure()
        table = Table(title=(part.__doc__ or "").splitlines()[0], title_justify="left")
        for column in part.TITLE:
            table.add_column(column)
        for row in rows:
            table.add_row(*map(str, row))
        console.print(table)
        figures += found
    report("env", figures)
    return 0 if all(figure.met for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
