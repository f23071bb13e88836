"""How records look in a terminal."""

from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from pipeline.release import Release
from schemas.answer import canonical_answer
from schemas.certificate import Certificate, Outcome
from schemas.manifest import FunnelStep
from schemas.row import Kept, Rejected

_COLOURS = {Outcome.KEEP: "green", Outcome.REJECT: "yellow", Outcome.FAILED: "red", Outcome.UNDECIDED: "magenta"}


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """A plain table; columns after the first are right-aligned where every cell is a number."""
    drawn = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for i, column in enumerate(columns):
        numeric = i > 0 and all(isinstance(row[i], int | float) for row in rows)
        drawn.add_column(
            column,
            justify="right" if numeric else "left",
            overflow="fold",
            min_width=max(map(len, column.split()), default=0),
        )
    for row in rows:
        drawn.add_row(*(Text(f"{cell:,}" if isinstance(cell, int) else str(cell)) for cell in row))
    return drawn


def funnel_table(family: str, steps: Sequence[FunnelStep]) -> Table:
    columns = ("filter", "seen", "kept", "rejected", "failed", "undecided", "why not kept")
    rows = [(s.filter, s.seen, s.kept, s.rejected, s.failed, s.undecided, _reasons(s.reasons)) for s in steps]
    return table(f"funnel of {family}", columns, rows)


def task_panel(row: Kept | Rejected, certificates: Sequence[Certificate]) -> Panel:
    """A task with its gold, where it comes from, what was measured, and every filter's verdict."""
    task = row.task
    body: list[RenderableType] = [
        Text(task.question, style="bold"),
        Text.assemble("answer      ", (canonical_answer(task.answer), "green")),
        Text(f"stratum     {task.stratum}"),
    ]
    body += [Text(f"evidence    {e.document}: {e.quote}") for e in task.evidence]
    body += [Text(f"near miss   {miss.answer}: {miss.why}") for miss in task.near_misses[:3]]
    body += [Text(f"measured    {d.correct} of {d.n} right, arm {d.arm}, {d.solver}") for d in row.difficulty]
    body += [_verdict(c) for c in certificates]
    fate = "kept" if isinstance(row, Kept) else f"{row.outcome} by {row.filter}"
    return Panel(Group(*body), title=Text(f"{task.task_id}  {fate}"), title_align="left")


def _verdict(certificate: Certificate) -> Text:
    because = f": {certificate.reason}" if certificate.reason else ""
    cost = f"  ({certificate.n} samples, {certificate.cost:,} tokens)" if certificate.n else ""
    return Text.assemble(
        f"{certificate.filter:<12}", (certificate.outcome.value, _COLOURS[certificate.outcome]), because, cost
    )


def summary(release: Release) -> dict[str, Any]:
    """A release for machines."""
    manifest = release.manifest
    return {
        "version": release.version,
        "url": release.url,
        "endings": dict(manifest.endings),
        "rows": {config: release.splits(config) for config in manifest.funnel},
        "funnel": {name: [s.model_dump(mode="json") for s in steps] for name, steps in manifest.funnel.items()},
    }


def _reasons(reasons: dict[str, int]) -> str:
    return "\n".join(f"{reason} {count}" for reason, count in sorted(reasons.items(), key=lambda item: -item[1]))
