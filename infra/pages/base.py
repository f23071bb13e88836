"""What a page is, and how anything that a page holds is shown."""

from dataclasses import dataclass
from typing import Protocol

from schemas.errors import TouchstoneError

NAME_CHARS = 300
"""Characters of a title or label that are kept."""


class PageError(TouchstoneError):
    """A place or a page that cannot be read."""


@dataclass(frozen=True, slots=True)
class Link:
    """`label` is how the page names it, `target` the id of a page; both find it."""

    label: str
    target: str


@dataclass(frozen=True, slots=True)
class Page:
    """One page. `hash` is the `content_hash` of its text.

    `name` finds it again; `listed`: the text does not tell what is a link, so links are shown beside it.
    """

    id: str
    title: str
    name: str
    text: str
    hash: str
    links: tuple[Link, ...] = ()
    listed: bool = False


class Pages(Protocol):
    """Where pages come from. Serves one event loop and never blocks it."""

    async def find(self, name: str) -> Page | None:
        """The page with this id (an address is one), else with exactly this title. Raises `PageError` where it is there and unreadable."""
        ...

    async def close(self) -> None: ...


_CONTROLS = {
    code: " " if chr(code).isspace() else None
    for code in (*range(0x20), *range(0x7F, 0xA0))
    if chr(code) not in "\n\r\t"
} | dict.fromkeys(range(0xD800, 0xE000))


def shown(text: str) -> str:
    """The text without control characters and lone surrogates; all else, spelled control tokens too, as it is."""
    return text if text.isascii() and text.isprintable() else text.translate(_CONTROLS)


def shown_name(text: str) -> str:
    """A title, label or id on one line, cut where it is long."""
    return " ".join(shown(text[: 4 * NAME_CHARS]).split())[:NAME_CHARS]
