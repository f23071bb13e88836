"""Filters, one a file, each named after what it rejects. They judge one task and neither count nor log.

To add one: a module beside these with a `VERSION`, a function from task to `Certificate` and a `FILTER`; then a line in
`FILTERS` and a place in a funnel, cheapest first.
"""

from pipeline.filters import (
    ambiguity,
    closed_book,
    contaminated,
    duplicates,
    evidence,
    form,
    leaks,
    rederive,
    shortcuts,
    top1,
)
from pipeline.filters.base import Certifier, Filter, FilterError, Resources
from schemas.task import Family

FILTERS: dict[str, Filter] = {
    module.FILTER.name: module.FILTER
    for module in (duplicates, contaminated, form, leaks, ambiguity, shortcuts, evidence, rederive, top1, closed_book)
}

FUNNEL: dict[Family, tuple[Filter, ...]] = {
    "hard_search": (
        duplicates.FILTER,
        contaminated.FILTER,
        form.FILTER,
        leaks.FILTER,
        ambiguity.FILTER,
        shortcuts.FILTER,
        evidence.FILTER,
        top1.FILTER,
        rederive.FILTER,
        closed_book.FILTER,
    ),
    "math": (duplicates.FILTER, contaminated.FILTER, form.FILTER, leaks.FILTER, rederive.FILTER, closed_book.FILTER),
}
"""Filters of a family in the order they run; Pass@N follows."""

CORRECTNESS = frozenset({"ambiguity", "evidence", "rederive"})
"""Those that find a gold wrong, and not a task too easy, too like another or badly put."""

__all__ = ["CORRECTNESS", "FILTERS", "FUNNEL", "Certifier", "Filter", "FilterError", "Resources"]
