"""Templates of computed problems. To add one: a `Template` in a module here, and the module in `_MODULES`."""

from types import ModuleType

from pipeline.families.math.templates import (
    algebra,
    counting,
    gym,
    integers,
    polynomials,
    proportion,
    steps,
    time,
    totals,
)
from pipeline.families.math.templates.base import Parameters, Template

_MODULES: tuple[ModuleType, ...] = (steps, totals, proportion, algebra, polynomials, integers, counting, time, gym)

TEMPLATES: dict[str, Template] = {t.name: t for module in _MODULES for t in module.TEMPLATES}

__all__ = ["TEMPLATES", "Parameters", "Template"]
