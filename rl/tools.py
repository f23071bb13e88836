"""What a policy can call. A tool answers in text; what a policy got wrong is an answer too, never an exception.

Registered in `TOOLS`; a task names the ones it may use.
"""

from collections.abc import Callable, Iterator
from typing import Protocol

from pydantic import JsonValue

from infra.search import split_sentences
from infra.tools.base import Schema
from pipeline.corpora.world import World

QUERIES = 8
"""Queries a search takes at most."""
SNIPPETS = 3
"""Pages a search shows."""
SNIPPET_WORDS = 40
"""Words of a page that a search shows, split at white space; about 60 tokens with numbers and punctuation."""
SECTION_WORDS = 120
"""Words of a page section; about 200 tokens."""


class Tool(Protocol):
    """One tool. `schema` is the JSON schema of its arguments; a call gets only arguments that satisfy it.

    An exception means that the tool itself is broken.
    """

    @property
    def schema(self) -> Schema: ...

    async def __call__(self, arguments: dict[str, JsonValue]) -> str: ...


class Search:
    """The best pages for each query, one a line: `title: best sentences`; of several queries each under a line `query: ...`.

    About 1 ms a query over 25,000 pages, so it may run on an event loop.
    """

    schema: Schema = {
        "type": "object",
        "properties": {"queries": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": QUERIES}},
        "required": ["queries"],
        "additionalProperties": False,
    }

    def __init__(self, world: World) -> None:
        self._index = world.index

    async def __call__(self, arguments: dict[str, JsonValue]) -> str:
        queries = arguments["queries"]
        assert isinstance(queries, list)
        found = [(str(query), self._found(str(query))) for query in queries]
        return found[0][1] if len(found) == 1 else "\n".join(f"query: {query}\n{pages}" for query, pages in found)

    def _found(self, query: str) -> str:
        hits = self._index.search(query, SNIPPETS, words=SNIPPET_WORDS)
        return "\n".join(f"{hit.title}: {hit.snippet}" for hit in hits) or "nothing found"


class Open:
    """A section of a page, by document id or exact title."""

    schema: Schema = {
        "type": "object",
        "properties": {"id": {"type": "string"}, "section": {"type": "integer"}},
        "required": ["id"],
        "additionalProperties": False,
    }

    def __init__(self, world: World) -> None:
        self._documents = world.documents
        self._by_title = {document.title: document for document in world.documents.values()}

    async def __call__(self, arguments: dict[str, JsonValue]) -> str:
        id, section = str(arguments["id"]), arguments.get("section", 1)
        # JSON schema takes 2.0 for an integer too.
        number = int(section) if isinstance(section, int | float) else 1
        document = self._documents.get(id) or self._by_title.get(id)
        if document is None:
            return f"error: no page {id}"
        sections = list(split_sections(document.text))
        if not 1 <= number <= len(sections):
            return f"error: no section {number} of {len(sections)}"
        return f"{document.title}, section {number} of {len(sections)}: {sections[number - 1]}"


TOOLS: dict[str, Callable[[World], Tool]] = {"search": Search, "open": Open}


def world_tools(world: World) -> dict[str, Tool]:
    """Every tool over one world. Tools hold no state of an episode, so all episodes share them."""
    return {name: tool(world) for name, tool in TOOLS.items()}


def split_sections(text: str, words: int = SECTION_WORDS) -> Iterator[str]:
    """Whole sentences, packed in order into sections of at most `words` words; a longer sentence is cut. At least one section."""
    section: list[str] = []
    for sentence in split_sentences(text):
        pieces = sentence.split()
        if section and len(section) + len(pieces) > words:
            yield " ".join(section)
            section = []
        section += pieces
        while len(section) > words:
            yield " ".join(section[:words])
            section = section[words:]
    yield " ".join(section)
