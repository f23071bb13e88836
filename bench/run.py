"""Runs the parts of a bench one after another: a table each, then every figure."""

from collections.abc import Mapping, Sequence
from types import ModuleType

from rich.console import Console
from rich.table import Table

from bench.figures import Figure, report


async def run(bench: str, parts: Mapping[str, ModuleType], names: Sequence[str]) -> int:
    """Those of `names`, all by default. Gives the exit code: 0 where every figure is met."""
    figures: list[Figure] = []
    console = Console(width=160)
    for name in names or parts:
        part = parts[name]
        rows, found = await part.measure()
        table = Table(title=(part.__doc__ or "").splitlines()[0], title_justify="left")
        for column in part.TITLE:
            table.add_column(column)
        for row in rows:
            table.add_row(*map(str, row))
        console.print(table)
        figures += found
    report(bench, figures)
    return 0 if all(figure.met for figure in figures) else 1
