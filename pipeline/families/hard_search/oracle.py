"""Scripts that solve a hard-search task with its tools, read off the formal query and what the tools really show.

Descriptions are resolved from the inside out; then one search combines the names of all clues, and the page that shows
most of them is the answer. Nothing is taken from the world's facts: a clue holds where a shown text says so.
"""

import random
import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pipeline.corpora.world import World
from schemas.query import Clue, EntityRef, Query
from schemas.trajectory import ToolCall

SEARCHES = 2
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
    """One turn: a short thought, then calls or (where there are none) the final answer."""

    thought: str = ""
    calls: tuple[ToolCall, ...] = ()
    answer: str = ""


Script = Generator[Move, str, None]
"""Yields moves and is sent what the tool showed; ends after the answer."""


Flaw = Literal["wrong_candidate", "ignored_clue", "unknown_tool", "gives_up"]
"""A way for a script to go wrong on purpose."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A page of which a tool showed a part."""

    entity: str
    text: str


@dataclass(frozen=True, slots=True)
class Known:
    """A clue whose far end is known, under this name."""

    clue: Clue
    entity: str
    name: str


class Oracle:
    """Scripts over one world. Equal (query, random state, observations) give equal scripts."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._by_title = {e.title: e.id for e in world.entities.values()}
        self._named: dict[str, list[str]] = {}
        for entity in world.entities.values():
            self._named.setdefault(plain(entity.name), []).append(entity.id)

    def script(self, query: Query, rng: random.Random, flaw: Flaw | None = None) -> Script:
        """Moves that answer the query; with a `flaw`, misguided ones."""
        if flaw == "unknown_tool":
            yield Move(calls=(ToolCall(name="find", arguments={"queries": [query.type]}),))
        found = yield from self.resolve(query, rng, drop=flaw == "ignored_clue")
        if flaw == "wrong_candidate" and len(found) > 1:
            found = found[1:]
        yield Move(answer=found[0] if found and flaw != "gives_up" else GIVEN_UP)

    def name(self, entity: str) -> str:
        """What a question calls the entity."""
        return plain(self.world.entities[entity].name)

    def _spelled(self, entity: str, shown: Sequence[Shown]) -> str:
        """The name as it was read. Pages head it with a capital: "Gold" for gold."""
        named = self.name(entity)
        headed = named[:1].upper() + named[1:]
        is_headed = self._by_title.get(headed) == entity and any(page.entity == entity for page in shown)
        return headed if is_headed else named

    def resolve(self, query: Query, rng: random.Random, drop: bool = False) -> Generator[Move, str, list[str]]:
        """Searches until a candidate fits every clue that can be read, then gives the candidates by name, best first."""
        thought = ""
        known: list[Known] = []
        for clue in query.clues:
            match clue.target:
                case EntityRef(entity=entity):
                    known.append(Known(clue, entity, self.name(entity)))
                case Query() as inner if len(self.world.possible(inner)) == 1:
                    for thought in (yield from self.resolve(inner, rng))[:1]:
                        known += [Known(clue, entity, thought) for entity in self.called(thought, inner.type)]
        if drop and len(known) > 1:
            known.pop(rng.randrange(len(known)))
        shown: list[Shown] = []
        ranked: list[str] = []
        for words in self._queries(known):
            search = ToolCall(name="search", arguments={"queries": [words]})
            text = yield Move(thought=thought, calls=(search,))
            thought = ""
            shown += [page for page in self._read(text) if page not in shown]
            ranked = self._ranked(query, known, shown)
            if ranked and self._score(ranked[0], known, shown) == len(known):
                break
        return [self._spelled(entity, shown) for entity in ranked]

    def called(self, name: str, type: str) -> list[str]:
        """The entity of the type that has this name, if there is one."""
        found = self._named.get(name) or self._named.get(name[:1].lower() + name[1:]) or []
        return [entity for entity in found if self.world.entities[entity].type == type][:1]

    def _queries(self, known: Sequence[Known]) -> Iterator[str]:
        """What to search for, most promising first: all names at once, then each subject whose page must say it."""
        names = list(dict.fromkeys(k.name for k in known))
        inverse = [k for k in known if k.clue.inverse]
        about = list(dict.fromkeys(word for k in inverse for word in self.key_words(k.clue)))
        queries = [" ".join([*names, *about[:2]])]
        if inverse and len(known) > 1:
            queries += [" ".join([k.name, *self.key_words(k.clue)[:2]]) for k in inverse]
        elif len(names) > 2:
            queries += [" ".join(names[1:])]
        yield from list(dict.fromkeys(q for q in queries if q))[:SEARCHES]

    def key_words(self, clue: Clue) -> list[str]:
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

    def _ranked(self, query: Query, known: Sequence[Known], shown: Sequence[Shown]) -> list[str]:
        """Entities of the asked type that pages are about or mention, those that fit more clues first."""
        given = {k.entity for k in known}
        candidates = dict.fromkeys(page.entity for page in shown)
        for page in shown:
            candidates.update(dict.fromkeys(self.mentioned(page.text)))
        of_type = [e for e in candidates if self.world.entities[e].type == query.type and e not in given]
        return sorted(of_type, key=lambda e: -self._score(e, known, shown))

    def _score(self, entity: str, known: Sequence[Known], shown: Sequence[Shown]) -> int:
        return sum(
            any(
                page.entity == (k.entity if k.clue.inverse else entity)
                and (entity if k.clue.inverse else k.entity) in self.mentioned(page.text)
                for page in shown
            )
            for k in known
        )

    def mentioned(self, text: str) -> list[str]:
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
    return re.sub(r"^(?:the|an?) (?=.)", "", name)


def content_words(grammar: str) -> list[str]:
    """The words of a relation's grammar that mean something: "The capital of {s} is {o}" gives ["capital"]."""
    text = re.sub(r"\{[so]\}|[\[\]|]", " ", grammar)
    return [word for word in (m[0].rstrip(".") for m in _WORD.finditer(text)) if word.lower() not in _STOP]
