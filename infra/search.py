"""A frozen full-text index over documents: ranked pages, each with its best sentences.

Query text is data. No syntax is read from it, and no string makes a search raise.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import tantivy

from schemas.world import Document

LAYOUT = "1"
"""Changes whenever stored indexes must be built anew: with the fields and the analyzer, not with the ranking."""
ANALYZER = "folded"
SECTION_WORDS = 120
"""Words of a page section; about 200 tokens."""
WORD_CHARS = 64
"""Characters after which a word counts as one more, so that text without spaces makes no endless section."""
QUERY_TERMS = 64
"""Terms of a query that are read; the rest of a longer one is ignored."""
QUERY_PHRASES = 8
"""Names of several words that are looked for as phrases."""
TITLE_BONUS, BM25_WEIGHT = 0.1, 0.05
COMMON = 0.25
"""Rarity of a term that stands on four pages of five; below it a term tells no page from another."""
_NAME = re.compile(r"\b[^\W\d_a-z][\w'’.-]*(?:[ ,]+(?:(?:of|the|and|de|da|do|du|la|el|al|und)\s+)*[^\W_a-z][\w'’.-]*)+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[^\W_a-z])")
_LINE_IS_SENTENCE = 320
"""Characters up to which a line counts as one sentence: abbreviations ("St. John's") then do not cut it."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One ranked page. `snippet` holds whole sentences of it, cut only where one alone exceeds the words allowed."""

    id: str
    title: str
    snippet: str
    score: float


@dataclass(frozen=True, slots=True)
class _Page:
    """A page as snippets need it: its sentences, each with its terms."""

    id: str
    title: str
    title_terms: frozenset[str]
    sentences: list[tuple[str, frozenset[str]]]


class SearchIndex:
    """BM25 over body and title, in memory or in a folder. Thread-safe for searching."""

    def __init__(self, index: tantivy.Index) -> None:
        self._index = index
        self._analyzer = _analyzer()
        index.register_tokenizer(ANALYZER, self._analyzer)
        index.reload()
        self._searcher = index.searcher()
        self._schema = index.schema
        self._page = lru_cache(maxsize=4096)(self._read)
        self._rarity = lru_cache(maxsize=65536)(self._idf)

    @classmethod
    def build(cls, documents: Iterable[Document], path: Path | None = None) -> "SearchIndex":
        """Index the documents; `path` is an empty or missing folder, `None` keeps the index in memory."""
        if path is not None:
            path.mkdir(parents=True, exist_ok=True)
        index = tantivy.Index(_schema(), path=None if path is None else str(path))
        index.register_tokenizer(ANALYZER, _analyzer())
        writer = index.writer(heap_size=64_000_000, num_threads=1)
        for d in documents:
            writer.add_document(tantivy.Document(id=_valid(d.id), title=_valid(d.title), body=_valid(d.text)))
        writer.commit()
        writer.wait_merging_threads()
        return cls(index)

    @classmethod
    def open(cls, path: Path) -> "SearchIndex":
        """The index stored at `path`."""
        return cls(tantivy.Index.open(str(path)))

    def terms(self, text: str) -> list[str]:
        """The text as the index sees it: split, lower-cased, accents folded, stemmed."""
        return list(self._analyzer.analyze(_clean(text)))

    def search(self, query: str, k: int, *, words: int = 40) -> list[Hit]:
        """The `k` best pages, best first, each with at most `words` words of its most fitting sentences."""
        query = _clean(query)
        terms = self._telling(list(dict.fromkeys(self.terms(query)))[:QUERY_TERMS])
        if not terms or k < 1:
            return []
        found = self._searcher.search(self._query(terms, query), limit=k, count=False).hits
        hits = []
        for score, address in found:
            page = self._page(address.segment_ord, address.doc)
            hits.append(Hit(page.id, page.title, self._snippet(page, terms, words), score))
        return hits

    def _telling(self, terms: list[str]) -> list[str]:
        """The terms without those that stand on most pages: they cost the most and rank nothing. All, where no other is found."""
        telling = [term for term in terms if self._rarity(term) > COMMON]
        return telling if any(self._pages_with(term) for term in telling) else terms

    def _read(self, segment: int, number: int) -> _Page:
        page = self._searcher.doc(tantivy.DocAddress(segment, number))
        title: str = page["title"][0]
        sentences = split_sentences(page["body"][0])
        return _Page(
            page["id"][0], title, frozenset(self.terms(title)), [(s, frozenset(self.terms(s))) for s in sentences]
        )

    def _query(self, terms: list[str], text: str) -> tantivy.Query:
        """Coverage first: a page earns each term's rarity once, wherever it has it; BM25 orders pages that cover the same.

        Plain BM25 would put the short page *about* a name above the pages that mention it and everything else asked for.
        """
        parts = []
        for term in terms:
            in_body = tantivy.Query.term_query(self._schema, "body", term)
            in_title = tantivy.Query.term_query(self._schema, "title", term)
            rarity = self._rarity(term)
            either = tantivy.Query.disjunction_max_query(
                [
                    tantivy.Query.const_score_query(in_body, rarity),
                    tantivy.Query.const_score_query(in_title, rarity + TITLE_BONUS),
                ]
            )
            parts += [either, tantivy.Query.boost_query(in_body, BM25_WEIGHT)]
        for name in _NAME.findall(text)[:QUERY_PHRASES]:
            phrase = self.terms(name)
            if 2 <= len(phrase) <= 8:
                whole = tantivy.Query.phrase_query(self._schema, "body", list(phrase))
                parts.append(tantivy.Query.const_score_query(whole, max(map(self._rarity, phrase))))
        return tantivy.Query.boolean_query([(tantivy.Occur.Should, part) for part in parts])

    def _idf(self, term: str) -> float:
        """Inverse document frequency, as BM25 has it."""
        with_term = self._pages_with(term)
        return math.log(1 + (self._searcher.num_docs - with_term + 0.5) / (with_term + 0.5))

    def _pages_with(self, term: str) -> int:
        return max(self._searcher.doc_freq("body", term), self._searcher.doc_freq("title", term))

    def _snippet(self, page: _Page, terms: list[str], words: int) -> str:
        """Sentences that cover the rarest query terms not yet covered, in page order, then others that match half as well.

        The words of the title stand in every sentence, so they count only for a query that has no others.
        """
        wanted = frozenset(terms) - page.title_terms or frozenset(terms)
        matches = [(i, found & wanted) for i, (_, found) in enumerate(page.sentences)]
        left = {i: found for i, found in matches if found} or {0: frozenset()}
        best_weight = max(map(self._weight, left.values()))
        chosen: list[int] = []
        covered: frozenset[str] = frozenset()
        room = words
        while left:
            best = max(left, key=lambda i: (self._weight(left[i] - covered), self._weight(left[i]), -i))
            found = left.pop(best)
            length = len(page.sentences[best][0].split())
            adds = bool(found - covered) or 2 * self._weight(found) >= best_weight
            if chosen and (length > room or not adds):
                break
            chosen.append(best)
            covered |= found
            room -= length
        return " ".join(" ".join(page.sentences[i][0] for i in sorted(chosen)).split()[:words])

    def _weight(self, terms: frozenset[str]) -> float:
        return math.fsum(map(self._rarity, terms))


def split_sentences(text: str) -> list[str]:
    """Sentences of a text: its lines, long ones cut after full stops."""
    sentences: list[str] = []
    for line in text.splitlines():
        parts = [line] if len(line) <= _LINE_IS_SENTENCE else _SENTENCE_END.split(line)
        sentences += [part.strip() for part in parts if part.strip()]
    return sentences


def split_sections(text: str, words: int = SECTION_WORDS) -> list[list[str]]:
    """Whole sentences, packed in order into sections of at most `words` words; a longer sentence is cut. At least one section."""
    sections: list[list[str]] = [[]]
    room = words
    for sentence in split_sentences(text):
        pieces = _cut(sentence, words)
        if sections[-1] and sum(size for _, size in pieces) > room:
            sections.append([])
            room = words
        for number, (piece, size) in enumerate(pieces):
            if number:
                sections.append([])
                room = words
            sections[-1].append(piece)
            room -= size
    return sections


def _cut(sentence: str, words: int) -> list[tuple[str, int]]:
    """The sentence in pieces of at most `words` words, each with how many it counts."""
    split = sentence.split()
    if max(map(len, split)) <= WORD_CHARS:
        runs = [split[i : i + words] for i in range(0, len(split), words)]
        return [(" ".join(run), len(run)) for run in runs]
    pieces: list[tuple[str, int]] = []
    piece: list[str] = []
    size = 0
    for word in split:
        for part in (word[i : i + words * WORD_CHARS] for i in range(0, len(word), words * WORD_CHARS)):
            counts = -(-len(part) // WORD_CHARS)
            if size + counts > words:
                pieces.append((" ".join(piece), size))
                piece, size = [], 0
            piece.append(part)
            size += counts
    return [*pieces, (" ".join(piece), size)]


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw")
    builder.add_text_field("title", stored=True, tokenizer_name=ANALYZER)
    builder.add_text_field("body", stored=True, tokenizer_name=ANALYZER)
    return builder.build()


def _analyzer() -> tantivy.TextAnalyzer:
    steps = (tantivy.Filter.remove_long(40), tantivy.Filter.lowercase(), tantivy.Filter.ascii_fold())
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for step in (*steps, tantivy.Filter.stemmer("english")):
        builder = builder.filter(step)
    return builder.build()


def _clean(text: str) -> str:
    return _valid(text[:20_000])


def _valid(text: str) -> str:
    """The text without lone surrogates, which the index cannot hold."""
    return text.encode("utf-8", "ignore").decode()
