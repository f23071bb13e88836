"""Search over a corpus, several queries at once."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from pydantic import JsonValue

from infra.pages.base import shown, shown_name
from infra.pages.corpus import Corpus
from infra.pages.deny import Deny
from infra.search import Hit
from infra.tools.base import Effect, ToolResult, ToolSpec

K, MOST_K, MOST_QUERIES = 3, 10, 8
SNIPPET_WORDS = 40
"""Words of a page that a search shows, split at white space; about 60 tokens with numbers and punctuation."""

SEARCH = ToolSpec(
    "search",
    "The best pages for each query, one a line: `title: best sentences`.",
    {
        "type": "object",
        "properties": {
            "queries": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "maxItems": MOST_QUERIES,
                "description": "what to look for, each in words of its own",
            },
            "k": {
                "type": "integer",
                "minimum": 1,
                "maximum": MOST_K,
                "description": f"pages a query; {K} if not given",
            },
        },
        "required": ["queries"],
        "additionalProperties": False,
    },
    Effect.READ,
)


class SearchTools:
    """Holds no state of a session. Denied pages are never shown; those next in rank take their places."""

    specs: Sequence[ToolSpec] = (SEARCH,)

    def __init__(self, corpus: Corpus, deny: Deny | None = None) -> None:
        self._index = corpus.index
        deny = deny or Deny()
        self._denied = frozenset(d.id for d in corpus.documents.values() if deny and deny.covers(d.id, d.text, d.hash))
        self._threads = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="search")

    async def call(self, session: str, name: str, arguments: Mapping[str, JsonValue]) -> ToolResult:
        given, k = arguments["queries"], arguments.get("k", K)
        assert isinstance(given, list) and isinstance(k, int | float)
        queries = [str(query) for query in given]
        loop = asyncio.get_running_loop()
        found = await asyncio.gather(
            *(loop.run_in_executor(self._threads, self._search, query, int(k)) for query in queries)
        )
        blocks = ["\n".join(map(_line, hits)) or "nothing found" for hits in found]
        if len(queries) > 1:
            blocks = [f"query: {shown_name(query)}\n{block}" for query, block in zip(queries, blocks, strict=True)]
        titles = dict.fromkeys(shown_name(hit.title) for hits in found for hit in hits)
        return ToolResult("\n".join(blocks), sources=tuple(titles))

    async def end(self, session: str) -> None:
        return None

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _search(self, query: str, k: int) -> list[Hit]:
        ask = k
        while True:
            hits = self._index.search(query, ask, words=SNIPPET_WORDS)
            allowed = [hit for hit in hits if hit.id not in self._denied]
            if len(allowed) >= k or len(hits) < ask:
                return allowed[:k]
            ask *= 4


def _line(hit: Hit) -> str:
    return f"{shown_name(hit.title)}: {shown(hit.snippet)}"
