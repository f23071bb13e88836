"""A text browser: pages by section, what stands where on them, links, and the way back."""

import asyncio
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from pydantic import JsonValue

from infra.pages.base import Link, Page, PageError, Pages, shown, shown_name
from infra.pages.deny import Deny
from infra.search import split_sections
from infra.tools.base import Effect, Schema, ToolResult, ToolSpec

HISTORY = 20
"""Pages a session can go back; the oldest are forgotten."""
FOUND = 8
"""Places that `find` shows."""
LINKS_SHOWN = 20
"""Links listed with a section."""
ERROR_CHARS = 1000
"""Of an error, which may repeat what was asked for."""


def _schema(optional: Schema | None = None, /, **required: str) -> Schema:
    """Of arguments that are texts, each with what it is, and of others."""
    texts = {name: {"type": "string", "description": told} for name, told in required.items()}
    return {
        "type": "object",
        "properties": {**texts, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


# `find` changes nothing, but what it answers depends on the calls before it, so it must neither overtake them nor be
# made in another session: it is a call of its session like the others.
SPECS = (
    ToolSpec(
        "open",
        "A section of a page, by id, address or exact title; the first if none is given. It becomes the current page.",
        _schema(
            {"section": {"type": "integer", "description": "its number, from 1; 1 if not given"}},
            id="id, address or exact title of a page",
        ),
        Effect.SESSION,
    ),
    ToolSpec(
        "find",
        "Sentences of the current page that hold a text, with their sections. Case and accents do not matter.",
        _schema(text="words that stand on the page, in their order"),
        Effect.SESSION,
    ),
    ToolSpec(
        "follow",
        "The page that a link of the current page leads to, by the link's label or target.",
        _schema(link="label or target of a link, as shown"),
        Effect.SESSION,
    ),
    ToolSpec("back", "The page before the current one.", _schema(), Effect.SESSION),
)


@dataclass(frozen=True, slots=True)
class _View:
    """A page as a session has it open, and the section shown."""

    page: Page
    number: int = 1

    @property
    def sections(self) -> list[list[str]]:
        return _sections(self.page.text)


@lru_cache(maxsize=128)
def _sections(text: str) -> list[list[str]]:
    """What is shown of a page's text: its sections, each the pieces that `split_sections` packed."""
    return split_sections(shown(text))


class _Refused(Exception):
    """A call that is not carried out; says why."""


class BrowserTools:
    """One history a session. A page that is denied is as if it were not there. Closes `pages` with itself."""

    specs: Sequence[ToolSpec] = SPECS

    def __init__(self, pages: Pages, deny: Deny | None = None) -> None:
        self._pages = pages
        self._deny = deny or Deny()
        self._sessions: dict[str, tuple[_View, ...]] = {}

    async def call(self, session: str, name: str, arguments: Mapping[str, JsonValue]) -> ToolResult:
        views = self._sessions.get(session, ())
        try:
            match name:
                case "open":
                    section = arguments.get("section", 1)
                    # JSON schema takes 2.0 for an integer too.
                    number = int(section) if isinstance(section, int | float) else 1
                    views = _with(views, _View(await self._page(str(arguments["id"])), number))
                case "follow":
                    views = _with(views, _View(await self._page(_link(views, str(arguments["link"])).target)))
                case "back":
                    if len(views) < 2:
                        raise _Refused("no page before this one" if views else "no page is open")
                    views = views[:-1]
                case _:
                    return await asyncio.to_thread(_find, _current(views), str(arguments["text"]))
            result = await asyncio.to_thread(_show, views[-1])
        except (_Refused, PageError) as error:
            return ToolResult(f"error: {shown(str(error))[:ERROR_CHARS]}", error=True)
        self._sessions[session] = views
        return result

    async def end(self, session: str) -> None:
        self._sessions.pop(session, None)

    async def close(self) -> None:
        await self._pages.close()

    async def _page(self, name: str) -> Page:
        page = None if self._deny.name(name) else await self._pages.find(name)
        if page is None or self._deny.covers(page.id, page.text, page.hash):
            raise _Refused(f"no page {name}")
        return page


def _with(views: tuple[_View, ...], view: _View) -> tuple[_View, ...]:
    """The history with a page on top; another section of the current page takes its place."""
    before = views[:-1] if views and views[-1].page.id == view.page.id else views
    return (*before, view)[-HISTORY:]


def _current(views: Sequence[_View]) -> _View:
    if not views:
        raise _Refused("no page is open")
    return views[-1]


def _show(view: _View) -> ToolResult:
    sections = view.sections
    if not 1 <= view.number <= len(sections):
        raise _Refused(f"no section {view.number} of {len(sections)}")
    text = " ".join(sections[view.number - 1])
    lines = [f"{shown_name(view.page.title)}, section {view.number} of {len(sections)}: {text}"]
    if view.page.listed and (names := _links_here(view)):
        more = f" | and {len(names) - LINKS_SHOWN} more" if len(names) > LINKS_SHOWN else ""
        lines.append(f"links: {' | '.join(names[:LINKS_SHOWN])}{more}")
    return ToolResult("\n".join(lines), sources=(view.page.name,))


def _named(page: Page) -> dict[str, Link]:
    """The page's links by what they are called: the label, with the target where links of one label lead to several."""
    targets = Counter(label for label, _ in {(link.label, link.target) for link in page.links})
    links: dict[str, Link] = {}
    for link in page.links:
        name = f"{link.label} ({link.target})" if targets[link.label] > 1 else link.label
        links.setdefault(name.strip() or link.target, link)
    return links


def _links_here(view: _View) -> list[str]:
    """Names of the links whose labels stand in the section; with the first section also of those that stand in none."""
    texts = [" ".join(section) for section in view.sections]
    stands = {
        name: [bool(link.label) and link.label in text for text in texts] for name, link in _named(view.page).items()
    }
    return [name for name, where in stands.items() if where[view.number - 1] or (view.number == 1 and not any(where))]


def _link(views: Sequence[_View], wanted: str) -> Link:
    page = _current(views).page
    if (link := _named(page).get(wanted)) is not None:
        return link
    for link in page.links:
        if wanted == link.target or (link.label and shown_name(wanted) == link.label):
            return link
    raise _Refused(f"no link {wanted} on {shown_name(page.title)}")


def _find(view: _View, text: str) -> ToolResult:
    wanted = _folded(" ".join(shown(text).split()))
    if not wanted:
        raise _Refused("no text to find")
    sections = view.sections
    pieces = [(number, piece) for number, section in enumerate(sections, start=1) for piece in section]
    folded = [_folded(piece) for _, piece in pieces]
    starts = [0, *accumulate(len(piece) + 1 for piece in folded)]
    whole = " ".join(folded)
    places: dict[tuple[int, int], None] = {}
    at = whole.find(wanted)
    while at >= 0:
        last = bisect_right(starts, at + len(wanted) - 1) - 1
        places[bisect_right(starts, at) - 1, last] = None
        at = whole.find(wanted, max(at + 1, starts[last + 1]))
    if not places:
        raise _Refused(f"nothing found on {shown_name(view.page.title)}")
    lines = [
        f"section {pieces[first][0]} of {len(sections)}: {' '.join(piece for _, piece in pieces[first : last + 1])}"
        for first, last in list(places)[:FOUND]
    ]
    lines += [f"and {len(places) - FOUND} more places"] if len(places) > FOUND else []
    return ToolResult("\n".join(lines), sources=(view.page.name,))


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)).casefold()
