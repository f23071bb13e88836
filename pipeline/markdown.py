"""Tables where Markdown is shown."""

import html
from collections.abc import Iterable, Sequence


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _cell(value: object) -> str:
    """Text that stays in its cell and is no markup."""
    plain = "".join(char if char.isprintable() else " " for char in str(value))
    return html.escape(plain, quote=False).replace("|", "\\|")
