"""Title, text and links of an HTML page; as a process, one page after another for `workers`.

A request is a line of JSON (`page` as `extract` takes it, `length`, `seconds` of processor time) and that many bytes; a reply
is a line of JSON.
"""

import codecs
import json
import re
import resource
import sys
import time
from contextlib import suppress
from copy import deepcopy
from typing import Any
from urllib.parse import urldefrag, urljoin

from lxml.etree import strip_tags  # type: ignore[import-untyped]
from lxml.html import HtmlElement  # type: ignore[import-untyped]
from trafilatura import bare_extraction, html2txt, load_html
from trafilatura.metadata import extract_title
from trafilatura.settings import DEFAULT_CONFIG

from infra.pages.base import shown_name

MEMORY = 2 * 2**30
"""Bytes of address space."""
TEXT_CHARS = 400_000
LINKS = 1000
ADDRESS_CHARS = 2000
"""Of a link's address; longer ones are left out."""
_EXTRACTION = deepcopy(DEFAULT_CONFIG)
_EXTRACTION["DEFAULT"]["MIN_EXTRACTED_SIZE"] = "1"  # else the paragraphs of a short page are cut at its links
_SPACES = re.compile(r"[ \t\r\n\f]+")
_META = re.compile(rb"<meta[^>]{0,200}charset\s{0,20}=\s{0,20}[\"']?([\w.:-]{1,40})", re.IGNORECASE)


def extract(body: bytes, url: str, charset: str = "", plain: bool = False) -> dict[str, Any]:
    """What the page says: `title`, `tab` (what a browser writes on its tab), `text`, all empty where there is none, and `links`.

    A link is a label, which may be empty, and an absolute address without fragment.
    """
    html = decode(body, charset)
    if plain:
        return {"title": "", "tab": "", "text": html[:TEXT_CHARS], "links": []}
    tree = load_html(html)
    if tree is None:
        tree = load_html(f"<html><body>{html}</body></html>")
    if tree is None:
        return {"title": "", "tab": "", "text": "", "links": []}
    title, tab, links = extract_title(tree) or "", tree.findtext(".//title") or "", _links(tree, url)
    _unwrap(tree)
    strip_tags(tree, "a")  # else paragraphs with many links are taken for menus and left out
    found = bare_extraction(tree, favor_recall=True, config=_EXTRACTION)
    text = (getattr(found, "text", "") or html2txt(html))[:TEXT_CHARS]
    return {"title": shown_name(title), "tab": shown_name(tab), "text": text, "links": links}


def decode(body: bytes, charset: str = "") -> str:
    """UTF-8 where it is that, else as declared by a byte order mark, the server or the page, else as browsers guess.

    What comes out can be encoded again: an encoding like `unicode_escape` could make half a surrogate pair.
    """
    names = ["utf-16"] if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else []
    names += [] if body.isascii() else ["utf-8-sig"]
    declared = _META.search(body[:4096])
    for name in filter(None, (*names, charset, declared and declared[1].decode(), "utf-8")):
        try:
            return body.decode(name).encode("utf-8", "replace").decode()
        except (LookupError, UnicodeError):
            continue
    return body.decode("cp1252", "replace")


def _unwrap(tree: HtmlElement) -> None:
    """Make each run of white space one space, outside of what is set as written: a line of source is no line of text."""
    written = {element for block in tree.iter("pre", "textarea") for element in block.iter()}
    for element in tree.iter():
        for part, holder in (("text", element), ("tail", element.getparent())):
            text = getattr(element, part)
            if text and holder not in written:
                with suppress(ValueError):  # a control character, which lxml reads and does not write
                    setattr(element, part, _SPACES.sub(" ", text))


def _links(tree: HtmlElement, url: str) -> list[tuple[str, str]]:
    base = next((href for b in tree.iter("base") if (href := b.get("href"))), "")
    links: dict[tuple[str, str], None] = {}
    for anchor in tree.iter("a"):
        if not (href := anchor.get("href")):
            continue
        try:
            target = urldefrag(urljoin(urljoin(url, base), href.strip())).url
        except ValueError:
            continue
        if target.startswith(("http://", "https://")) and len(target) <= ADDRESS_CHARS:
            label = shown_name(anchor.text_content()) or shown_name(anchor.get("title") or "")
            links[label, target] = None
        if len(links) == LINKS:
            break
    return list(links)


def main() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while line := sys.stdin.buffer.readline():
        request = json.loads(line)
        body = sys.stdin.buffer.read(request["length"])
        try:
            _, most = resource.getrlimit(resource.RLIMIT_CPU)
            resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + 1 + request["seconds"], most))
            reply = extract(body, **request["page"])
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"[:200]}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
