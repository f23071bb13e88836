"""A folder of HTML files or a ZIM archive, read whole into a `Corpus`.

A page's id is its path in there. A link is followed only to a page that was listed, so no name that a page or a policy writes
ever becomes a path.
"""

import logging
import os
import stat
from collections import Counter
from collections.abc import Callable, Container, Mapping
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from libzim.reader import Archive, Entry  # type: ignore[import-untyped]

from infra.pages.base import PageError, shown_name
from infra.pages.corpus import Corpus
from infra.pages.workers import BYTES, Extracted, Extractor, Html
from schemas.base import content_hash
from schemas.world import Document

PAGES = 20_000
"""Pages that are read into memory."""
_SUFFIXES = (".html", ".htm", ".xhtml")
_BASE = "http://pages.invalid/"

logger = logging.getLogger(__name__)


def read_folder(root: Path) -> Corpus:
    """The HTML files at and below `root`, by path. Symbolic links are neither read nor followed. Raises `PageError`."""
    root = root.resolve()
    titles = {}
    for folder, folders, names in os.walk(root, onerror=lambda error: logger.warning("%s; left out", error)):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            if name.lower().endswith(_SUFFIXES) and _is_readable(path):
                titles[path.relative_to(root).as_posix()] = ""
        _bounded(root, len(titles))
    if not titles:
        raise PageError(f"{root}: no HTML files here; give a folder with files that end in {', '.join(_SUFFIXES)}")
    return _read(root, titles, lambda id: _file(root, id), {})


def read_zim(path: Path) -> Corpus:
    """The HTML pages of a ZIM archive, by path; redirects are further names of theirs. Raises `PageError`."""
    try:
        archive = Archive(path)
        _bounded(path, archive.article_count)
        titles: dict[str, str] = {}
        aliases: dict[str, str] = {}
        for number in range(archive.entry_count):
            entry = archive._get_entry_by_id(number)
            if entry.is_redirect:
                target = _end_of(entry)
                aliases |= {entry.path: target, entry.title: target}
            elif entry.get_item().mimetype.startswith(("text/html", "application/xhtml")):
                titles[entry.path] = "" if entry.title == entry.path else entry.title
                _bounded(path, len(titles))
    except (RuntimeError, UnicodeError) as error:
        raise PageError(f"{path}: {error}; give a ZIM archive that is whole") from error
    if not titles:
        raise PageError(f"{path}: no HTML pages in this archive; give one of a wiki or of a site")
    return _read(path, titles, lambda id: _item(archive, id), aliases)


def _read(
    place: Path, titles: Mapping[str, str], html: Callable[[str], Html | PageError], aliases: Mapping[str, str]
) -> Corpus:
    """`titles` by id; an empty one is read from the page. What cannot be read is left out, counted and logged."""
    extractor = Extractor()
    try:
        found = dict(zip(titles, extractor.read_all(map(html, titles)), strict=True))
    finally:
        extractor.close()
    pages = {id: page for id, page in found.items() if isinstance(page, Extracted)}
    if failures := [page for page in found.values() if isinstance(page, PageError)]:
        first = str(failures[0]).removeprefix(_BASE)
        logger.warning("%s: %d of %d pages left out, first: %s", place, len(failures), len(found), first)
    shared = Counter(page.title for page in pages.values())
    documents: list[Document] = []
    labels: dict[str, tuple[str, ...]] = {}
    spoken: set[str] = set()
    for id, page in pages.items():
        # A title that several pages have is the site's more often than theirs.
        own = page.title if shared[page.title] == 1 else page.tab or page.title
        title = shown_name(titles[id]) or own or shown_name(id)
        title = title if title not in spoken else f"{title} ({id})"
        spoken.add(title)
        targets = [(link.label, _target(link.target, pages, aliases)) for link in page.links]
        kept = [(label, target) for label, target in targets if target]
        labels[id] = tuple(label for label, _ in kept)
        links = tuple(target for _, target in kept)
        documents.append(Document(id=id, title=title, text=page.text, links=links, hash=content_hash(page.text)))
    return Corpus(documents, labels=labels, aliases=aliases)


def _target(address: str, ids: Container[str], aliases: Mapping[str, str]) -> str:
    """The id that a link's address means, empty where it leads out of the place or nowhere."""
    if not address.startswith(_BASE):
        return ""
    path = unquote(urlsplit(address).path)[1:]
    for id in (path, aliases.get(path, ""), f"{path.rstrip('/')}/index.html".lstrip("/")):
        if id in ids:
            return id
    return ""


def _bounded(place: Path, pages: int) -> None:
    if pages > PAGES:
        raise PageError(
            f"{place}: holds {pages} pages or more, and at most {PAGES} are read into memory; give a smaller selection"
        )


def _file(root: Path, id: str) -> Html | PageError:
    try:
        descriptor = os.open(root / id, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            return Html(_BASE + quote(id), file.read(BYTES + 1))
    except OSError as error:
        return PageError(f"{id}: {error.strerror}; not shown")


def _item(archive: Archive, id: str) -> Html | PageError:
    try:
        item = archive.get_entry_by_path(id).get_item()
        if item.size > BYTES:
            return PageError(f"{id}: is longer than {BYTES >> 20} MiB; not read")
        return Html(_BASE + quote(id), bytes(item.content))
    except (RuntimeError, KeyError) as error:
        return PageError(f"{id}: {error}; not shown")


def _end_of(entry: Entry) -> str:
    """The path that a chain of redirects ends at; one that turns in a circle leads to no page."""
    for _ in range(8):
        if not entry.is_redirect:
            break
        entry = entry.get_redirect_entry()
    return str(entry.path)


def _is_readable(path: Path) -> bool:
    """Whether it is a file, and no link to one, with a name that is text."""
    try:
        str(path).encode()
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, UnicodeEncodeError):
        return False
