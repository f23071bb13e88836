"""Seal-0 of SealQA (arXiv 2506.01062): `question`, `answer`, `freshness`, `topic` and more."""

from collections.abc import Mapping
from typing import Any

from pipeline.benchmarks.base import Format, Item, gold, text


def _read(row: Mapping[str, Any]) -> Item:
    return Item(text(row, "question"), gold(text(row, "answer")), category=text(row, "freshness") or "all")


SEAL0 = Format("seal0", frozenset({"question", "answer", "freshness"}), _read)
