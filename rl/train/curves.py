"""Curves of a run as SVG that stands inside a page: text is text, and ink is the page's own, in light and in dark."""

import io
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib
from cycler import cycler
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from schemas.measured import Metric

INK = "#010203"
"""No page has this colour; `currentColor`, which the figure library does not know, takes its place."""
COLOURS = ("#3b82f6", "#ea7317", "#14a06f", "#d6457f")
"""Told apart on white and on black."""
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=COLOURS),
    "legend.frameon": False,
}


class Panel(NamedTuple):
    title: str
    unit: str
    curves: tuple[str, ...]
    """Of figures, `<what>/<population>`."""


PANELS = (
    Panel("Pass rate", "share right", ("pass_rate/valid", "solved/groups")),
    Panel("Reward", "mean before decay", ("reward/valid",)),
    Panel("Entropy", "nats a token", ("entropy/targets", "entropy/positive", "entropy/negative")),
    Panel("Staleness", "versions", ("lag_mean/trained", "lag_max/trained")),
    Panel("Turns", "mean of an attempt", ("turns/valid", "turns/right")),
    Panel("Format errors", "share of attempts", ("format_errors/valid",)),
    Panel("Negatives kept", "share of their mass", ("negative_kept/negative",)),
    Panel("Trained", "tokens a second", ("tokens_per_second/step",)),
    Panel("Attempts", "count", ("in_flight/attempts", "suspended/attempts")),
)


def drawn(metrics: Sequence[Metric]) -> dict[str, str]:
    """SVG by title, of every panel that there is a figure for."""
    found: dict[str, list[tuple[int, float]]] = {}
    for each in metrics:
        if each.value is not None:
            found.setdefault(f"{each.name}/{each.population}", []).append((each.step, each.value))
    panels = [(panel, {name: found[name] for name in panel.curves if name in found}) for panel in PANELS]
    return {panel.title: _svg(panel, curves) for panel, curves in panels if curves}


def _svg(panel: Panel, curves: dict[str, list[tuple[int, float]]]) -> str:
    with matplotlib.rc_context(dict[Any, Any](STYLE, **{"svg.hashsalt": panel.title})):
        figure = Figure(figsize=(4.2, 2.4), layout="constrained")
        axes = figure.add_subplot()
        axes.grid(alpha=0.15, color=INK)
        for name, points in curves.items():
            steps, values = zip(*points, strict=True)
            axes.plot(steps, values, label=name, linewidth=1.6, marker="o" if len(points) < 3 else "")
        axes.set_xlabel("step")
        axes.set_ylabel(panel.unit)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.margins(y=0.1)
        if len(curves) > 1:
            axes.legend(fontsize=8)
        sink = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(sink, format="svg", transparent=True, metadata=nothing)
    svg = sink.getvalue()
    # Names of parts would stand in the page once a panel; what refers to others is named by a hash of the title.
    return re.sub(r' id="[\w.]+_\d+"', "", svg[svg.index("<svg") :]).replace(INK, "currentColor")
