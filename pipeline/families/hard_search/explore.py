"""Scripts that solve a hard-search task however deep it is: they read pages until one entity is shown to fit every clue.

What a page says is read by the grammar of its sentences, and nothing is taken from the world's facts. First come the
candidates that `oracle` finds by searching; then, one after another, all others of the type.
"""

import random
import re
from collections.abc import Generator, Iterable, Sequence
from functools import lru_cache
from itertools import islice

from pipeline.corpora.world import World
from pipeline.families.hard_search.oracle import GIVEN_UP, Move, Oracle, Script
from pipeline.families.hard_search.parse import NUMBER
from schemas.query import Band, Clue, EntityRef, Query, named
from schemas.trajectory import ToolCall
from schemas.world import Relation

PAGES = 3
"""Pages that are opened in one turn."""
_SECTION = re.compile(r"(?P<title>.+?), section (?P<number>\d+) of (?P<of>\d+): (?P<text>.*)")
_CHOICE = re.compile(r"\\\[([^|\]]*)\\\|([^\]]*)\\\]")

Yes = Generator[Move, str, bool]


class Explorer:
    """Scripts over one world. Equal (query, random state, observations) give equal scripts."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._oracle = Oracle(world)
        self._by_title = {e.title: e.id for e in world.entities.values()}

    def script(self, query: Query, rng: random.Random, *, notes: bool = False, exhaustive: bool = False) -> Script:
        """Moves that answer the query. `notes`: what fits is written down with the tool `note`.

        `exhaustive` looks at what the query names and at every entity of the type, in random order, and searches for each
        before it opens it.
        """
        return _Reading(self.world, self._oracle, self._by_title, rng, notes, exhaustive).solve(query)


class _Reading:
    """One script under way, with the pages it has read."""

    def __init__(
        self,
        world: World,
        oracle: Oracle,
        by_title: dict[str, str],
        rng: random.Random,
        notes: bool,
        exhaustive: bool,
    ) -> None:
        self._world, self._oracle, self._by_title = world, oracle, by_title
        self._rng, self._notes, self._exhaustive = rng, notes, exhaustive
        self._pages: dict[str, dict[int, str]] = {}

    def solve(self, query: Query) -> Script:
        found = yield from self._find(query)
        yield Move(answer=self._oracle.name(found) if found else GIVEN_UP)

    def _find(self, query: Query) -> Generator[Move, str, str | None]:
        fitting: list[str] = []
        candidates = list(self._world.of_type(query.type))
        self._rng.shuffle(candidates)
        if self._exhaustive:
            for id in dict.fromkeys(named(query)):
                yield self._search([self._oracle.name(id)], k=1)
                yield from self._read([id])
        else:
            names = yield from self._oracle.resolve(query, self._rng)
            first = [id for name in names for id in self._oracle.called(name, query.type)]
            candidates = list(dict.fromkeys([*first, *candidates]))
        for group in _batched(candidates, PAGES):
            if self._exhaustive:
                yield self._search([f"{self._oracle.name(id)} {query.type}" for id in group], k=1)
            yield from self._read(group)
            for id in group:
                if (yield from self._fits(id, query)):
                    fitting.append(id)
                    if self._notes:
                        text = f"{self._oracle.name(id)} fits all clues"
                        yield Move(calls=(ToolCall(name="note", arguments={"text": text}),))
            if fitting and not self._exhaustive:
                break
        return fitting[0] if fitting else None

    def _search(self, queries: Sequence[str], k: int) -> Move:
        return Move(calls=(ToolCall(name="search", arguments={"queries": list(queries), "k": k}),))

    def _read(self, ids: Iterable[str]) -> Generator[Move, str, None]:
        """Open what is not yet read, whole."""
        missing = [(id, 1) for id in ids if id not in self._pages]
        while missing:
            asked, missing = missing[:PAGES], missing[PAGES:]
            calls = tuple(ToolCall(name="open", arguments=self._address(id, section)) for id, section in asked)
            for line in (yield Move(calls=calls)).splitlines():
                shown = _SECTION.fullmatch(line)
                if shown and (id := self._by_title.get(shown["title"])):
                    self._pages.setdefault(id, {})[int(shown["number"])] = shown["text"]
                    if shown["number"] == "1":
                        missing += [(id, section) for section in range(2, int(shown["of"]) + 1)]

    def _address(self, id: str, section: int) -> dict[str, str | int]:
        title = self._world.entities[id].title
        return {"id": title} if section == 1 else {"id": title, "section": section}

    def _text(self, id: str) -> str:
        sections = self._pages.get(id, {})
        return " ".join(sections[number] for number in sorted(sections))

    def _fits(self, id: str, query: Query) -> Yes:
        for clue in query.clues:
            if not (yield from self._holds(id, clue)):
                return False
        return True

    def _holds(self, id: str, clue: Clue) -> Yes:
        relation = self._world.relations[clue.relation]
        match clue.target:
            case Band() as band:
                yield from self._read([id])
                value = self._number(id, relation)
                return value is not None and band.holds(value)
            case EntityRef(entity=entity):
                subject, object = (entity, id) if clue.inverse else (id, entity)
                yield from self._read([subject])
                return self._says(subject, relation, object)
            case Query() as inner:
                return (yield from self._some(id, clue, inner))

    def _some(self, id: str, clue: Clue, inner: Query) -> Yes:
        """Whether something that fits the inner query is at the relation's other end."""
        relation, inverse = self._world.relations[clue.relation], clue.inverse
        if inverse:
            words = " ".join([self._oracle.name(id), *self._oracle.key_words(clue)])
            shown = yield self._search([words], k=10)
            titles = (line.split(": ")[0] for line in shown.splitlines())
            others = [other for title in titles if (other := self._by_title.get(title))]
        else:
            yield from self._read([id])
            others = self._oracle.mentioned(self._text(id))
        others = [other for other in dict.fromkeys(others) if self._world.entities[other].type == inner.type]
        if inverse:
            yield from self._read(others)
        for other in others:
            subject, object = (other, id) if inverse else (id, other)
            if self._says(subject, relation, object) and (yield from self._fits(other, inner)):
                return True
        return False

    def _says(self, subject: str, relation: Relation, object: str) -> bool:
        """Whether the subject's page, as far as it was read, states the relation to the object."""
        name = re.escape(self._world.entities[object].name.rstrip("."))
        before, after = _sentence(relation, self._world.entities[subject].name)
        same = rf"(?:(?!\. (?:As of|The|In|{re.escape(self._world.entities[subject].name)}) ).)*?"
        pattern = rf"{before}(?:{same}(?:, | and ))?{name}(?:(?:, | and ){same})?{after}"
        return re.search(pattern, self._text(subject)) is not None

    def _number(self, subject: str, relation: Relation) -> float | None:
        before, _ = _sentence(relation, self._world.entities[subject].name)
        found = re.search(f"{before}({NUMBER})", self._text(subject))
        return float(found[1].replace(",", "")) if found else None


@lru_cache(maxsize=4096)
def _sentence(relation: Relation, subject: str) -> tuple[str, str]:
    """Patterns of what stands before and after the objects in the sentence that states the relation of a subject."""
    told = _CHOICE.sub(r"(?:\1|\2)", re.escape(relation.sentence))
    before, after = told.split(re.escape("{o}"))
    subject = re.escape(subject)
    before = before.replace(re.escape("{s}"), f"(?:{subject[:1].upper()}|{subject[:1]}){subject[1:]}")
    after = after.replace(re.escape("{s}"), subject)
    return f"(?i:(?<![^ ]){before[:1]}){before[1:]}" if before[:1].isalpha() else before, after.rstrip("\\.") + r"\."


def _batched(items: Sequence[str], size: int) -> Iterable[list[str]]:
    rest = iter(items)
    while group := list(islice(rest, size)):
        yield group
