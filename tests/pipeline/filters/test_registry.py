import importlib
import pkgutil

import pipeline.filters
from pipeline.filters import FILTERS, FUNNEL


def test_every_module_here_is_a_registered_filter_under_its_own_name_and_used() -> None:
    modules = {m.name for m in pkgutil.iter_modules(pipeline.filters.__path__)} - {"base"}
    assert modules == set(FILTERS)
    assert modules == {f.name for funnel in FUNNEL.values() for f in funnel}
    for name in modules:
        module = importlib.import_module(f"pipeline.filters.{name}")
        assert FILTERS[name] is module.FILTER
        assert module.FILTER.version == module.VERSION
