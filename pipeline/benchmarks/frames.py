"""FRAMES (arXiv 2409.12941): `test.tsv` with `Prompt`, `Answer`, `reasoning_types` (joined by ` | `) and links."""

from collections.abc import Mapping
from typing import Any

from pipeline.benchmarks.base import Format, Item, gold, text


def _read(row: Mapping[str, Any]) -> Item:
    kinds = sorted(kind.strip() for kind in text(row, "reasoning_types").split("|") if kind.strip())
    return Item(text(row, "Prompt"), gold(text(row, "Answer")), category="+".join(kinds) or "all")


FRAMES = Format("frames", frozenset({"Prompt", "Answer", "reasoning_types"}), _read)
