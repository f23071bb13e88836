"""The toolsets that a place of pages gives."""

from collections.abc import Iterable

from infra.pages.base import Pages
from infra.pages.corpus import Corpus
from infra.pages.deny import Deny
from infra.tools.base import Toolset
from infra.tools.browser import BrowserTools
from infra.tools.search import SearchTools


def toolsets_for(pages: Pages, deny: Iterable[str] = ()) -> list[Toolset]:
    """Search, where the pages are at hand, and a browser, which closes `pages`. `deny` are entries as `Deny` takes them."""
    denied = Deny(deny)
    browser = BrowserTools(pages, denied)
    return [SearchTools(pages, denied), browser] if isinstance(pages, Corpus) else [browser]
