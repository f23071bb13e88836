"""Reads a question of this family back into its formal query. A question with two readings is an error, not a guess."""

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from pipeline.corpora.pages import say_band
from pipeline.corpora.world import World
from pipeline.families.hard_search.grammar import (
    END,
    FRAMES,
    Frame,
    asked_inversely,
    for_long_ends,
    template_of,
    with_article,
)
from schemas.errors import TouchstoneError
from schemas.query import Band, Clue, EntityRef, Query
from schemas.world import Relation

NUMBER = r"-?\d+(?:,\d{3})*(?:\.\d+)?"
Read = Iterator[tuple[Clue, int]]


class ParseError(TouchstoneError):
    """A question that has no reading, or more than one."""


def parse(question: str, world: World) -> Query:
    """The query the question asks. Its signature is that of the task's constraints."""
    return _reader(world).read(question)


Ends = Literal["named", "long", "shared"]


class Reader:
    """The grammar of one world, by type: which words may begin a clue, and which names an end may have."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.names: dict[str, dict[str, str]] = defaultdict(dict)
        for entity in world.entities.values():
            self.names[entity.type][entity.name] = entity.id
        self.lengths = defaultdict(list, {t: sorted({*map(len, n)}, reverse=True) for t, n in self.names.items()})
        self.patterns: dict[str, list[tuple[str, str, Relation, bool, Ends]]] = defaultdict(list)
        for relation in world.relations.values():
            self._learn(relation, inverse=False)
            if asked_inversely(relation):
                self._learn(relation, inverse=True)

    def _learn(self, relation: Relation, inverse: bool) -> None:
        """Adds the ways in which this relation may be asked about from one side."""
        type = relation.object_type if inverse else relation.subject_type
        assert type is not None
        template = template_of(relation, inverse)
        ways: list[tuple[str | None, Ends]] = [(template, "named")]
        if relation.object_type is not None:
            ways.append((for_long_ends(template), "long"))
        if relation.shared_clue is not None and not inverse:
            ways.append((relation.shared_clue.replace("{s}", END), "shared"))
        for words, ends in ways:
            if words is not None:
                before, _, after = words.partition(END)
                self.patterns[type].append((before, after, relation, inverse, ends))

    def read(self, question: str) -> Query:
        text = re.sub(r"^As of \d{4}, (.)", lambda m: m[1].upper(), question)
        types = [type for type in self.patterns if type in text]
        found = {q.signature: q for frame in FRAMES for type in types for q in self._framed(text, frame, type)}
        if len(found) != 1:
            raise ParseError(f"{question!r}: has {len(found)} readings; a question of this family has one")
        return next(iter(found.values()))

    def _framed(self, text: str, frame: Frame, type: str) -> Iterator[Query]:
        words = {"noun": type, "a_noun": with_article(type)}
        opening, closing = frame.opening.format(**words), frame.closing.format(**words)
        if not (text.startswith(opening) and text.endswith(closing)):
            return
        body = text[len(opening) : len(text) - len(closing)]
        lists = self._list(body, 0, type) if frame.between is None else self._items(body, 0, type, frame)
        yield from (Query(type=type, clues=clues) for clues, end in lists if end == len(body))

    def _items(self, text: str, at: int, type: str, frame: Frame) -> Iterator[tuple[tuple[Clue, ...], int]]:
        before, _, after = frame.item.partition("{clue}")
        assert frame.between is not None
        if not text.startswith(before, at):
            return
        for clue, end in self._clue(text, at + len(before), type):
            if not text.startswith(after, end):
                continue
            end += len(after)
            yield (clue,), end
            if text.startswith(frame.between, end):
                for rest, stop in self._items(text, end + len(frame.between), type, frame):
                    yield (clue, *rest), stop

    def _list(self, text: str, at: int, type: str) -> Iterator[tuple[tuple[Clue, ...], int]]:
        """ "A", "A and B", "A, B and C" from `at` on, with every place it may end."""
        for clue, end in self._clue(text, at, type):
            yield (clue,), end
            if text.startswith(" and ", end):
                yield from (((clue, last), stop) for last, stop in self._clue(text, end + 5, type))
            if text.startswith(", ", end):
                yield from (((clue, *rest), stop) for rest, stop in self._list(text, end + 2, type) if len(rest) > 1)

    def _clue(self, text: str, at: int, type: str) -> Read:
        for before, after, relation, inverse, ends in self.patterns[type]:
            if not text.startswith(before, at):
                continue
            for target, end in self._end(text, at + len(before), relation, inverse, ends):
                if text.startswith(after, end):
                    yield Clue(relation=relation.name, inverse=inverse, target=target), end + len(after)

    def _end(
        self, text: str, at: int, relation: Relation, inverse: bool, ends: Ends
    ) -> Iterator[tuple[EntityRef | Band | Query, int]]:
        type = relation.subject_type if inverse else relation.object_type
        if type is None:
            yield from _bands(text, at, relation.unit)
        elif ends == "named":
            yield from ((EntityRef(entity=entity), end) for entity, end in self._named(text, at, type))
        elif ends == "shared":
            for entity, end in self._named(text, at, relation.subject_type):
                back = Clue(relation=relation.name, inverse=True, target=EntityRef(entity=entity))
                yield Query(type=type, clues=(back,)), end
        else:
            for noun in (f"the {type}", with_article(type)):
                if text.startswith(f"{noun} that ", at):
                    for clues, end in self._list(text, at + len(noun) + 6, type):
                        yield Query(type=type, clues=clues), end

    def _named(self, text: str, at: int, type: str) -> Iterator[tuple[str, int]]:
        """Every name of the type that stands at `at`, longest first."""
        names = self.names[type]
        for length in self.lengths[type]:
            if (entity := names.get(text[at : at + length])) is not None:
                yield entity, at + length


def _bands(text: str, at: int, unit: str | None) -> Iterator[tuple[Band, int]]:
    """Every interval whose own words stand at `at`: numbers are read, then said again and compared."""
    for match in re.finditer(NUMBER, text[at : at + 80]):
        first = _number(match[0])
        ends: list[tuple[float | None, float | None]] = [(first, None), (None, first)]
        second = re.compile(f" and ({NUMBER})").match(text, at + match.end())
        if second is not None:
            ends.append((first, _number(second[1])))
        for low, high in ends:
            said = say_band(low, high, unit)
            if text.startswith(said, at):
                yield Band(low=low, high=high), at + len(said)


def _number(digits: str) -> float:
    return float(digits.replace(",", ""))


@lru_cache(maxsize=4)
def _reader(world: World) -> Reader:
    return Reader(world)
