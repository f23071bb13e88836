"""Scripts that solve a hard-search task with its tools, read off the formal query and what the tools really show.

Descriptions are resolved from the inside out; then one search combines the names of all clues, and the page that shows
most of them is the answer. Nothing is taken from the world's facts: a clue holds where a shown text says so.
"""

import random
import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

from pipeline.corpora.world import World
from schemas.query import Clue, EntityRef, Query
from schemas.trajectory import ToolCall

SEARCHES = 3
"""Searches for one description at most."""
LONGEST_NAME = 8
"""Words of a name that is recognised in a text."""
GIVEN_UP = "unknown"
_STOP = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at by called for has have in into is it its kind known lies located named of on one or part s "
        "that the their there to used uses was were which with whose",
    )
)
_WORD = re.compile(r"[^\W_]+(?:[.'’-][^\W_]+)*\.?")


@dataclass(frozen=True, slots=True)
class Move:
    """One turn: a short thought, then a call or (where `call` is absent) the final answer."""

    thought: str = ""
    call: ToolCall | None = None
    answer: str = ""


Script = Generator[Move, str, None]
"""Yields moves and is sent what the tool showed; ends after the answer."""


@dataclass(frozen=True, slots=True)
class Flaws:
    """How often a script goes wrong, each a share of scripts."""

    wrong_candidate: float = 0.0
    ignored_clue: float = 0.0
    unknown_tool: float = 0.0
    gives_up: float = 0.0


@dataclass(frozen=True, slots=True)
class Shown:
    """A page of which a tool showed a part."""

    entity: str
    text: str


class Oracle:
    """Scripts over one world. Equal (query, random state, observations) give equal scripts."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._by_title = {e.title: e.id for e in world.entities.values()}
        self._named: dict[str, list[str]] = {}
        for entity in world.entities.values():
            self._named.setdefault(plain(entity.name), []).append(entity.id)

    def script(self, query: Query, rng: random.Random, flaws: Flaws | None = None) -> Script:
        """Moves that answer the query; with `flaws`, some of them misguided."""
        flaws = flaws or Flaws()
        wrong, ignores, broken, gives_up = (
            rng.random() < share
            for share in (flaws.wrong_candidate, flaws.ignored_clue, flaws.unknown_tool, flaws.gives_up)
        )
        if broken:
            yield Move(call=ToolCall(name="find", arguments={"query": query.type}))
        found = yield from self._resolve(query, rng, drop=ignores)
        if wrong and len(found) > 1:
            found = found[1:]
        yield Move(answer=GIVEN_UP if gives_up or not found else self.name(found[0]))

    def name(self, entity: str) -> str:
        return plain(self.world.entities[entity].name)

    def _resolve(self, query: Query, rng: random.Random, drop: bool = False) -> Generator[Move, str, list[str]]:
        """Searches until a candidate fits every clue that can be read, then gives the candidates, best first."""
        thought = ""
        known: list[tuple[Clue, str]] = []
        for clue in query.clues:
            match clue.target:
                case EntityRef(entity=entity):
                    known.append((clue, entity))
                case Query() as inner if len(self.world.possible(inner)) == 1:
                    found = yield from self._resolve(inner, rng)
                    if found:
                        thought = self.name(found[0])
                        known.append((clue, found[0]))
        if drop and len(known) > 1:
            known.pop(rng.randrange(len(known)))
        shown: list[Shown] = []
        ranked: list[str] = []
        for words in self._queries(query, known):
            text = yield Move(thought=thought, call=ToolCall(name="search", arguments={"query": words}))
            thought = ""
            shown += [page for page in self._read(text) if page not in shown]
            ranked = self._ranked(query, known, shown)
            if ranked and self._score(ranked[0], known, shown) == len(known):
                break
        return ranked

    def _queries(self, query: Query, known: Sequence[tuple[Clue, str]]) -> Iterator[str]:
        """What to search for, most promising first: all names at once, then each subject whose page must say it."""
        names = list(dict.fromkeys(self.name(end) for _, end in known))
        inverse = [(clue, end) for clue, end in known if clue.inverse]
        about = list(dict.fromkeys(word for clue, _ in inverse for word in self._key_words(clue)))
        queries = [" ".join([*names, *about[:2]])]
        if inverse and len(known) > 1:
            queries += [" ".join([self.name(end), *self._key_words(clue)[:2]]) for clue, end in inverse]
        elif not inverse:
            queries += [" ".join([*names, query.type])]
            queries += [" ".join(names[1:]), " ".join(names[:-1])] if len(names) > 2 else []
        yield from list(dict.fromkeys(q for q in queries if q))[:SEARCHES]

    def _key_words(self, clue: Clue) -> list[str]:
        """Words of the relation that its sentence on a page and its clue share, or else those of the sentence."""
        relation = self.world.relations[clue.relation]
        asked = content_words((relation.inverse_clue if clue.inverse else None) or relation.clue)
        told = content_words(relation.sentence)
        return [word for word in asked if word in told] or told

    def _read(self, text: str) -> list[Shown]:
        """The pages in a tool's answer: a line each, title first."""
        pages = []
        for line in text.splitlines():
            cuts = [m.start() for m in re.finditer(r": ", line)]
            for cut in cuts:
                title = re.sub(r", section \d+ of \d+$", "", line[:cut])
                if title in self._by_title:
                    pages.append(Shown(self._by_title[title], line[cut + 2 :]))
                    break
        return pages

    def _ranked(self, query: Query, known: Sequence[tuple[Clue, str]], shown: Sequence[Shown]) -> list[str]:
        """Entities of the asked type that pages are about or mention, those that fit more clues first."""
        given = {end for _, end in known}
        candidates = dict.fromkeys(page.entity for page in shown)
        for page in shown:
            candidates.update(dict.fromkeys(self._mentioned(page.text)))
        of_type = [e for e in candidates if self.world.entities[e].type == query.type and e not in given]
        return sorted(of_type, key=lambda e: -self._score(e, known, shown))

    def _score(self, entity: str, known: Sequence[tuple[Clue, str]], shown: Sequence[Shown]) -> int:
        return sum(
            any(
                page.entity == (end if clue.inverse else entity)
                and (entity if clue.inverse else end) in self._mentioned(page.text)
                for page in shown
            )
            for clue, end in known
        )

    def _mentioned(self, text: str) -> list[str]:
        """Entities named in the text, longest names first at every place."""
        words = [(m.start(), m.end()) for m in _WORD.finditer(text)]
        found: list[str] = []
        i = 0
        while i < len(words):
            for length in range(min(LONGEST_NAME, len(words) - i), 0, -1):
                span = text[words[i][0] : words[i + length - 1][1]]
                hits = self._named.get(span) or self._named.get(span.rstrip("."))
                if hits:
                    found += hits
                    i += length - 1
                    break
            i += 1
        return found


def plain(name: str) -> str:
    """A name without its article: "the Gambia" is "Gambia" in a query and in an answer."""
    return name.removeprefix("the ")


def content_words(grammar: str) -> list[str]:
    """The words of a relation's grammar that mean something: "The capital of {s} is {o}" gives ["capital"]."""
    text = re.sub(r"\{[so]\}|[\[\]|]", " ", grammar)
    return [word for word in (m[0].rstrip(".") for m in _WORD.finditer(text)) if word.lower() not in _STOP]
