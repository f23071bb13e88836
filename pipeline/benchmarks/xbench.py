"""xbench-DeepSearch (arXiv 2506.13651): `id`, `prompt`, `answer`, `canary`; prompt and answer are base64 of their bytes XOR
the row's canary, again and again."""

import base64
import binascii
from collections.abc import Mapping
from itertools import cycle
from typing import Any

from pipeline.benchmarks.base import Format, Item, Skip, gold, text


def _read(row: Mapping[str, Any]) -> Item:
    key = text(row, "canary").encode()
    if not text(row, "answer"):
        raise Skip("empty_answer")
    question, answer = (_decrypted(text(row, column), key) for column in ("prompt", "answer"))
    return Item(question, gold(answer), text(row, "id"))


def _decrypted(cell: str, key: bytes) -> str:
    """Raises `Skip` where it is no text under this key: it was not encrypted, or with another one."""
    try:
        raw = base64.b64decode(cell, validate=True)
        plain = bytes(byte ^ k for byte, k in zip(raw, cycle(key), strict=False)).decode().strip()
    except (binascii.Error, UnicodeError):
        raise Skip("wrong_canary") from None
    if not all(letter.isprintable() or letter in "\n\r\t" for letter in plain):
        raise Skip("wrong_canary")
    return plain


XBENCH = Format("xbench", frozenset({"id", "prompt", "answer", "canary"}), _read)
