"""Figures: a number, what it should be, and whether it is; printed for people and stored as JSON for machines."""

import json
import operator
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from infra.settings import Settings

Row = tuple[object, ...]

_RULES = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq}


@dataclass(frozen=True, slots=True)
class Figure:
    """`goal` is a comparison, such as "<= 15 ms" or ">= 3"; what follows the number is its unit."""

    name: str
    value: float
    goal: str

    @property
    def met(self) -> bool:
        sign, number, *_ = self.goal.split()
        return bool(_RULES[sign](self.value, float(number)))

    def __str__(self) -> str:
        goal = self.goal.replace(" ", "", 1).replace(" ", "_")
        return f"figure {self.name} {self.value:g} goal {goal} {'met' if self.met else 'short'}"


def report(bench: str, figures: Sequence[Figure]) -> None:
    """Print the figures and store them under `<store>/bench/<bench>.json`."""
    settings = Settings.from_env()
    folder = settings.cache / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{**asdict(figure), "met": figure.met} for figure in figures]
    (folder / f"{bench}.json").write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    for figure in figures:
        print(figure)
