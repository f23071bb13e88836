"""SimpleQA (arXiv 2411.04368): `simple_qa_test_set.csv` with `metadata` (a Python dict), `problem`, `answer`."""

import ast
from collections.abc import Mapping
from typing import Any

from pipeline.benchmarks.base import Format, Item, gold, text


def _read(row: Mapping[str, Any]) -> Item:
    return Item(text(row, "problem"), gold(text(row, "answer")), category=_topic(text(row, "metadata")))


def _topic(metadata: str) -> str:
    try:
        found = ast.literal_eval(metadata)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return "all"
    return str(found.get("topic") or "all") if isinstance(found, dict) else "all"


SIMPLEQA = Format("simpleqa", frozenset({"metadata", "problem", "answer"}), _read)
