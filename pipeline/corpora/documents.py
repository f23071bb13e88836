"""Reader for a user's own documents: JSONL or Parquet with `id, title, text` and, where there are any, `links`."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.corpora.world import World
from schemas.base import content_hash, unique_keys
from schemas.errors import TouchstoneError
from schemas.world import Document

LINE_LIMIT = 16 * 2**20
"""Bytes of one JSONL line; a longer one is a mistake more often than a document."""
_REQUIRED = ("id", "title", "text")


class DocumentError(TouchstoneError):
    """A document file that cannot be read, with the line (JSONL) or row (Parquet) that shows why."""


def read_documents(path: Path) -> World:
    """A world of documents without facts, named after the file. Links must lead to documents of the same file."""
    if not os.path.isfile(path):
        raise DocumentError(f"{path}: no such file; give a .jsonl or .parquet file of documents, or the world's name")
    rows = _parquet(path) if path.suffix == ".parquet" else _jsonl(path)
    documents: dict[str, Document] = {}
    found_at: dict[str, str] = {}
    titles: dict[str, str] = {}
    for where, row in rows:
        document = _document(where, row)
        if document.id in documents:
            raise DocumentError(f"{where}: id {document.id!r} was used in {found_at[document.id]}; ids must be unique")
        if (before := titles.get(_spoken(document.title))) is not None:
            raise DocumentError(
                f"{where}: title {document.title!r} was used in {before}, case and outer space aside; pages are opened by "
                "title: make it unique"
            )
        documents[document.id] = document
        found_at[document.id] = titles[_spoken(document.title)] = where
    if not documents:
        raise DocumentError(f"{path}: no documents; each line needs an object with {', '.join(_REQUIRED)}")
    for document in documents.values():
        hidden = titles.get(_spoken(document.id), found_at[document.id])
        if hidden != found_at[document.id]:
            raise DocumentError(
                f"{found_at[document.id]}: id {document.id!r} is the title in {hidden} and would hide that page; use another id"
            )
        for link in document.links:
            if link not in documents:
                raise DocumentError(f"{found_at[document.id]}: link {link!r} leads to no document; use the id of one")
    return World(path.stem, documents=documents.values())


def _document(where: str, row: Any) -> Document:
    if not isinstance(row, dict):
        raise DocumentError(f"{where}: {type(row).__name__} where an object with {', '.join(_REQUIRED)} should be")
    for key in _REQUIRED:
        if row.get(key) is None:
            raise DocumentError(f"{where}: {key!r} is missing; every document needs {', '.join(_REQUIRED)}")
        if not isinstance(row[key], str):
            raise DocumentError(f"{where}: {key!r} is {type(row[key]).__name__}; make it a string")
        if not row[key].strip():
            raise DocumentError(f"{where}: {key!r} is empty; every document needs {', '.join(_REQUIRED)}")
        if not _is_unicode(row[key]):
            raise DocumentError(f"{where}: {key!r} holds half a surrogate pair; write it as UTF-8 text")
    links = [] if row.get("links") is None else row["links"]
    if not isinstance(links, list) or not all(isinstance(link, str) for link in links):
        raise DocumentError(f"{where}: 'links' must be a list of document ids")
    return Document(
        id=row["id"], title=row["title"], text=row["text"], links=tuple(links), hash=content_hash(row["text"])
    )


def _jsonl(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        opened = path.open("rb")
    except OSError as error:
        raise DocumentError(f"{path}: {error.strerror}; give a file that can be read") from error
    with opened as file:
        for number in range(1, 2**63):
            line = file.readline(LINE_LIMIT + 1)
            where = f"{path.name}:{number}"
            if not line:
                return
            if len(line) > LINE_LIMIT:
                raise DocumentError(f"{where}: longer than {LINE_LIMIT >> 20} MiB; split the document")
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise DocumentError(f"{where}: byte {error.start} is not UTF-8; convert the file to UTF-8") from error
            if not text.strip():
                continue
            try:
                yield where, json.loads(text, object_pairs_hook=unique_keys)
            except (ValueError, RecursionError) as error:
                raise DocumentError(f"{where}: {error}; each line must be one JSON object") from error


def _parquet(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        table = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DocumentError(f"{path.name}: {error}; give a readable Parquet file") from error
    for number, row in enumerate(table.iter_rows(named=True), start=1):
        yield f"{path.name}: row {number}", row


def _spoken(name: str) -> str:
    """A name as someone who asks for a page may write it."""
    return name.strip().casefold()


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
