"""Humanity's Last Exam (arXiv 2501.14249): `id`, `question`, `image`, `answer`, `answer_type`, `category` and more.

Questions with an image are skipped. The answer to a multiple choice is its letter.
"""

import re
from collections.abc import Mapping
from typing import Any

from pipeline.benchmarks.base import Format, Item, Skip, gold, text
from schemas.answer import AnswerSpec, EntityAnswer


def _read(row: Mapping[str, Any]) -> Item:
    if text(row, "image"):
        raise Skip("image")
    answer, kind = text(row, "answer"), text(row, "answer_type")
    found = _choice(answer) if kind == "multipleChoice" else gold(answer)
    return Item(text(row, "question"), found, text(row, "id"), f"{text(row, 'category') or 'all'} {kind}".strip())


def _choice(answer: str) -> AnswerSpec:
    if not re.fullmatch("[A-Z]", answer):
        raise Skip("no_letter" if answer else "empty_answer")
    return EntityAnswer(entity=answer, name=answer)


HLE = Format("hle", frozenset({"id", "question", "image", "answer", "answer_type"}), _read)
