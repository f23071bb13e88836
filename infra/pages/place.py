"""Pages by the word that a user says where they are."""

from collections.abc import Sequence
from pathlib import Path

from infra.pages.base import PageError, Pages
from infra.pages.corpus import is_world, read_world
from infra.pages.local import read_folder, read_zim
from infra.pages.web import WebPages

WEB = "http"
"""The place that is the web: it can be browsed, not searched."""


def open_pages(place: str, hosts: Sequence[str] = ()) -> Pages:
    """The pages at a user's `place`: the folder of a stored world, a folder of HTML, a `.zim` file, or the word `http` for the web.

    `hosts` are those that `http` may reach though their addresses are private. Blocks: HTML is read at about 20 pages a second
    a core. Raises `PageError`.
    """
    if place == WEB:
        return WebPages(hosts)
    if hosts:
        raise PageError(f"hosts={','.join(hosts)}: are for `http`, and the pages are at {place}; leave them out")
    path = Path(place).expanduser()
    if is_world(path):
        return read_world(path)
    if path.is_dir():
        return read_folder(path)
    if path.suffix == ".zim" and path.is_file():
        return read_zim(path)
    raise PageError(
        f"{place}: no pages here; give the folder of a world, a folder of HTML files, a .zim file, or `http` for the web"
    )
