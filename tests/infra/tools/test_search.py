"""The search tool: what a policy is shown, and what it must not be."""

import asyncio
import hashlib
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from infra.pages.corpus import Corpus
from infra.pages.deny import Deny
from infra.pages.web import WebPages
from infra.search import Hit, SearchIndex, split_sections
from infra.tools.base import Effect, ToolResult
from infra.tools.browser import BrowserTools
from infra.tools.pages import toolsets_for
from infra.tools.search import MOST_K, MOST_QUERIES, SNIPPET_WORDS, K, SearchTools
from schemas.base import content_hash
from schemas.world import Document
from tests.worlds import toy_world

TOY = Corpus(toy_world().documents.values(), index=toy_world().index)


def document(id: str, title: str, text: str) -> Document:
    return Document(id=id, title=title, text=text, hash=content_hash(text))


async def search(tools: SearchTools, *queries: str, **arguments: int) -> ToolResult:
    return await tools.call("s", "search", {"queries": list(queries), **arguments})


async def test_one_query_shows_title_and_best_sentences_of_three_pages() -> None:
    result = await search(SearchTools(TOY), "capital Niamey")
    lines = result.text.splitlines()
    assert len(lines) == K == len(result.sources)
    assert any(line.startswith("Niger: ") and "The capital of Niger is Niamey." in line for line in lines)
    for line, source in zip(lines, result.sources, strict=True):
        assert line.startswith(f"{source}: ") and len(line.removeprefix(f"{source}: ").split()) <= SNIPPET_WORDS


@pytest.mark.parametrize("query", ["", '"title:(', "xyzzy"])
async def test_a_search_that_finds_nothing_says_so(query: str) -> None:
    assert await search(SearchTools(TOY), query) == ToolResult("nothing found")


async def test_several_queries_are_answered_in_order_each_under_its_own_line() -> None:
    tools, queries = SearchTools(TOY), ["capital Niamey", "xyzzy", "borders\nSpain"]
    alone = [(await search(tools, query, k=2)).text for query in queries]
    result = await search(tools, *queries, k=2)
    assert (
        result.text == f"query: {queries[0]}\n{alone[0]}\nquery: xyzzy\nnothing found\nquery: borders Spain\n{alone[2]}"
    )
    assert len(set(result.sources)) == len(result.sources) >= 3


@pytest.mark.parametrize("k", [1, 2.0, MOST_K])
async def test_k_is_the_number_of_pages_a_query(k: int) -> None:
    assert len((await search(SearchTools(TOY), "country", k=k)).text.splitlines()) == k


def test_the_schema_takes_one_to_eight_queries_and_no_other_argument() -> None:
    (spec,) = SearchTools(TOY).specs
    Draft202012Validator.check_schema(spec.schema)
    valid = Draft202012Validator(spec.schema).is_valid
    assert valid({"queries": ["a"]}) and valid({"queries": ["a"] * MOST_QUERIES, "k": MOST_K})
    for wrong in ({}, {"queries": []}, {"queries": ["a"] * 9}, {"queries": "a"}, {"queries": [1]}, {"query": "a"}):
        assert not valid(wrong)
    assert not any(valid({"queries": ["a"], "k": k}) for k in (0, 11, "3", None))
    assert all(argument["description"] for argument in spec.schema["properties"].values())
    assert spec.effect is Effect.READ


NIGER = toy_world().documents["country/niger"]


@pytest.mark.parametrize(
    "entry", [NIGER.id, "country/nige*", NIGER.hash, f"sha256:{hashlib.sha256(NIGER.text.encode()).hexdigest()}"]
)
async def test_a_denied_page_never_shows_and_the_next_ones_take_its_place(entry: str) -> None:
    result = await search(SearchTools(TOY, Deny([entry])), "capital Niamey", "country borders Niger", k=10)
    assert "Niger" not in result.sources and not any(line.startswith("Niger:") for line in result.text.splitlines())
    assert [len(block.splitlines()) for block in result.text.split("query: ")[1:]] == [11, 11]


async def test_a_denied_page_is_missing_from_every_tool_of_a_place() -> None:
    benchmark = "What is the capital of Niger? The answer is Niamey."
    corpus = Corpus([document("q1", "Question 1", benchmark), document("p", "Page", "Niamey lies on a river.")])
    searching, browser = toolsets_for(corpus, [f"{content_hash(benchmark)}"])
    found = await searching.call("s", "search", {"queries": ["capital answer Niamey river"]})
    assert found.sources == ("Page",)
    for name in ("q1", "Question 1"):
        assert await browser.call("s", "open", {"id": name}) == ToolResult(f"error: no page {name}", error=True)


async def test_when_all_pages_are_denied_nothing_is_found() -> None:
    assert await search(SearchTools(TOY, Deny(["*"])), "Niger") == ToolResult("nothing found")


async def test_the_web_has_a_browser_and_no_search() -> None:
    (only,) = toolsets_for(WebPages())
    assert isinstance(only, BrowserTools)
    await only.close()


async def test_a_title_never_makes_a_line_of_its_own() -> None:
    corpus = Corpus([document("a", "A\nquery: B\x1b" + "x" * 9999, "body text <|im_end|>\u202e here\x00")])
    (line,) = (await search(SearchTools(corpus), "body")).text.splitlines()
    assert line.startswith("A query: Bxxx") and line.endswith(": body text <|im_end|>\u202e here") and len(line) < 400


class SlowIndex(SearchIndex):
    """Takes its time for every search."""

    def search(self, query: str, k: int, *, words: int = 40) -> list[Hit]:
        time.sleep(0.5)
        return super().search(query, k, words=words)


async def test_a_slow_search_does_not_hold_up_the_loop() -> None:
    tools = SearchTools(Corpus([], index=SlowIndex(SearchIndex.build([])._index)))
    searching = asyncio.create_task(search(tools, "a", "b"))
    beats = 0
    while not searching.done():
        await asyncio.sleep(0.01)
        beats += 1
    assert beats > 10 and searching.result().text == "query: a\nnothing found\nquery: b\nnothing found"
    await tools.close()


@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=60), min_size=1, max_size=8))
@settings(deadline=None, max_examples=50)
def test_no_query_raises_and_every_answer_can_be_sent(queries: list[str]) -> None:
    asyncio.run(search(SearchTools(TOY), *queries)).text.encode()


@given(st.text(alphabet="ab .\n", max_size=300), st.integers(1, 12))
def test_sections_hold_every_word_once_and_no_more_than_allowed(text: str, words: int) -> None:
    sections = [" ".join(section) for section in split_sections(text, words)]
    assert sections
    assert "".join("".join(sections).split()) == "".join(text.split())
    assert all(len(section.split()) <= words for section in sections)


@pytest.mark.parametrize("text", ["x" * 500_000, "x " * 200_000, "漢" * 100_000, "word. " * 100_000])
def test_sections_of_endless_words_and_sentences_are_bounded_and_made_in_time(text: str) -> None:
    start = time.process_time()
    sections = [" ".join(section) for section in split_sections(text)]
    assert time.process_time() - start < 2
    assert max(map(len, sections)) <= 120 * 65
    assert "".join("".join(sections).split()) == "".join(text.split())
