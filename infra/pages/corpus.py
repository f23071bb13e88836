"""Pages in memory, searchable: those of a world, of a folder or of an archive."""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path

import polars as pl

from infra.pages.base import Link, Page, PageError, shown_name
from infra.search import SearchIndex
from schemas.world import Document


class Corpus:
    """Documents as pages. Each document's links are ids of others; those that lead nowhere are left out.

    `labels` hold what each page calls its links, one a link; without them a page's links are the titles that stand in its text.
    `aliases` are further names, each with the id that it leads to. `index` is built when it is first used, if not given.
    """

    def __init__(
        self,
        documents: Iterable[Document],
        *,
        labels: Mapping[str, tuple[str, ...]] | None = None,
        aliases: Mapping[str, str] | None = None,
        index: SearchIndex | None = None,
    ) -> None:
        self.documents = {document.id: document for document in documents}
        self._by_title: dict[str, Document] = {}
        for document in self.documents.values():
            self._by_title.setdefault(shown_name(document.title), document)
        folded = [shown_name(document.title).casefold() for document in self.documents.values()]
        self._by_folded = dict(zip(folded, self.documents.values(), strict=True))
        for title in (title for title, times in Counter(folded).items() if times > 1):
            del self._by_folded[title]  # two pages, of which neither is meant for sure
        self._labels = labels
        self._aliases = aliases or {}
        if index is not None:
            self.__dict__["index"] = index

    @cached_property
    def index(self) -> SearchIndex:
        return SearchIndex.build(self.documents.values())

    async def find(self, name: str) -> Page | None:
        document = self.documents.get(name) or self._by_title.get(shown_name(name))
        if document is None and name in self._aliases:
            document = self.documents.get(self._aliases[name])
        if document is None:
            document = self._by_folded.get(shown_name(name).casefold())
        return None if document is None else self._page(document)

    async def close(self) -> None:
        return None

    def _page(self, document: Document) -> Page:
        labels = (
            (shown_name(self.documents[id].title) if id in self.documents else "" for id in document.links)
            if self._labels is None
            else self._labels[document.id]
        )
        links = tuple(Link(label, id) for label, id in zip(labels, document.links, strict=True) if id in self.documents)
        name = shown_name(document.title)
        if self._by_title[name] is not document or self.documents.get(name, document) is not document:
            name = document.id
        return Page(
            document.id, document.title, name, document.text, document.hash, links, listed=self._labels is not None
        )


def is_world(path: Path) -> bool:
    return (path / "world.json").is_file() and (path / "documents.parquet").is_file()


def read_world(path: Path) -> Corpus:
    """The pages of the world stored at `path`, with its index. Raises `PageError`."""
    try:
        columns = ["id", "title", "text", "links", "hash"]
        table = pl.read_parquet(path / "documents.parquet", columns=columns)
        return Corpus(
            (
                Document.model_construct(id=i, title=t, text=x, links=tuple(k), hash=h)
                for i, t, x, k, h in table.iter_rows()
            ),
            index=SearchIndex.open(path / "index"),
        )
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise PageError(f"{path}: {error}; delete it and run `touchstone world build`") from error
