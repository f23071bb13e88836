"""Math: problems drawn from templates, with exact golds that two independent solvers agree on."""

from pipeline.families.math.generator import Math
from pipeline.families.math.templates import TEMPLATES, Template

__all__ = ["TEMPLATES", "Math", "Template"]
