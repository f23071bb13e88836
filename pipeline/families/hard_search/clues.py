"""What can be said of each entity, and how many of its kind each saying leaves.

Sets over one type are bit masks of Python integers: bit `i` is the `i`-th entity of the type in build order. An
intersection of two is one machine word per 64 entities, so a sampler may try thousands of clue sets a second.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from pipeline.corpora.world import World
from pipeline.families.hard_search.grammar import asked_inversely, takes_description
from schemas.query import Band, Clue, EntityRef, Query

Style = Literal["named", "band", "region"]
"""How a clue gives the far end of its fact: by name, as an interval around a number, or as some member of a class."""

LIKE = 3
"""Members a class must have before "a country that ..." is vaguer than a name."""
MARGIN, DATED_MARGIN = 0.01, 0.05
"""No entity's value lies within this share of a band's end: sources round, and what is dated moves."""


@dataclass(frozen=True, slots=True)
class Saying:
    """One clue about entities of one type, with the masks of those it proves and of those it leaves possible.

    `end` is the entity that the clue names, if it names one.
    """

    clue: Clue
    style: Style
    proved: int
    possible: int
    relation: tuple[str, bool]
    end: str | None


class Kind:
    """Every saying about the entities of one type. Made once per world and type; sayings are memoised."""

    def __init__(self, world: World, type: str, kinds: "Kinds") -> None:
        self.world, self.type, self.kinds = world, type, kinds
        self.members = world.of_type(type)
        self.place = {e: i for i, e in enumerate(self.members)}
        self.all = (1 << len(self.members)) - 1
        relations = list(world.relations.values())
        self.direct = [r for r in relations if r.subject_type == type and r.object_type is not None]
        self.numbers = [r for r in relations if r.subject_type == type and r.object_type is None]
        self.inverse = [r for r in relations if r.object_type == type and asked_inversely(r)]
        self._open = {r.name: self._open_subjects(r.name) for r in (*self.direct, *self.numbers)}
        self._subjects_of = self._read_inverse()
        self._named: dict[str, tuple[Saying, ...]] = {}
        self._bands: dict[str, tuple[Saying, ...]] = {}
        self._abouts: dict[Clue, tuple[Saying, ...]] = {}
        self._widened: dict[tuple[tuple[str, bool], tuple[str, bool], str | None], Saying] = {}
        self._sayings: dict[Clue, Saying] = {}
        self._links: dict[tuple[str, bool, str], int] = {}
        self._sorted = {r.name: self._values(r.name) for r in self.numbers}

    def mask(self, entities: Iterable[str]) -> int:
        """The mask of those that are of this type; others are left out."""
        bits = bytearray(len(self.members) // 8 + 1)
        for entity in entities:
            if (i := self.place.get(entity)) is not None:
                bits[i >> 3] |= 1 << (i & 7)
        return int.from_bytes(bits, "little")

    def bit(self, entity: str) -> int:
        return 1 << self.place[entity]

    def named(self, entity: str) -> tuple[Saying, ...]:
        """Clues that name the far end of a fact of `entity`, in a fixed order; only ends that a sentence can name."""
        if entity not in self._named:
            clues = [
                Clue(relation=r.name, target=EntityRef(entity=o))
                for r in self.direct
                for o in sorted(str(o) for o in self.world.objects(entity, r.name))
                if self.kinds.speakable(o)
            ]
            clues += [
                Clue(relation=relation, inverse=True, target=EntityRef(entity=s))
                for relation, s in self._subjects_of.get(entity, ())
                if self.kinds.speakable(s)
            ]
            self._named[entity] = tuple(self.saying(clue, "named") for clue in clues)
        return self._named[entity]

    def bands(self, entity: str) -> tuple[Saying, ...]:
        """Clues that give a number of `entity` as an interval with round ends."""
        if entity not in self._bands:
            self._bands[entity] = tuple(
                self.saying(Clue(relation=r.name, target=band), "band")
                for r in self.numbers
                for value in sorted(float(o) for o in self.world.objects(entity, r.name))
                for band in self._bands_around(r.name, value)
            )
        return self._bands[entity]

    def abouts(self, saying: Saying) -> tuple[Saying, ...]:
        """What can take the place of the end's name in a named `saying`: clues about the end, alike true of other things.

        "borders Mali" may become "borders a country that is in Africa"; "has French as an official language" may become
        "shares an official language with Niger".
        """
        if saying.clue not in self._abouts:
            relation, end = self.world.relations[saying.clue.relation], saying.end
            assert end is not None
            far = self.kinds.of(end)
            found: dict[Clue, Saying] = {}
            if takes_description(relation, saying.clue.inverse):
                found |= {a.clue: a for a in far.named(end) if a.proved.bit_count() >= LIKE}
            if not relation.functional:
                found |= {back: far.saying(back, "named") for back in self.shared(saying.clue)}
            self._abouts[saying.clue] = tuple(found.values())
        return self._abouts[saying.clue]

    def shared(self, clue: Clue) -> list[Clue]:
        """Clues about the end of `clue` by which it is said to be another's end too."""
        relation = self.world.relations[clue.relation]
        if clue.inverse or relation.shared_clue is None or not isinstance(clue.target, EntityRef):
            return []
        return [
            Clue(relation=relation.name, inverse=True, target=EntityRef(entity=other))
            for other in sorted(self.world.subjects(relation.name, clue.target.entity))
            if self.kinds.speakable(other)
        ]

    def widened(self, saying: Saying, about: Saying) -> Saying:
        """`saying` with the end's name replaced by "some thing for which `about` holds"."""
        key = saying.relation, about.relation, about.end
        if key not in self._widened:
            assert saying.end is not None
            far = self.world.entities[saying.end].type
            clue = saying.clue.model_copy(update={"target": Query(type=far, clues=(about.clue,))})
            self._widened[key] = self.saying(clue, "region")
        return self._widened[key]

    def saying(self, clue: Clue, style: Style) -> Saying:
        """The clue with its masks, equal to `World.proved` and `World.unrefuted` over this type."""
        if clue not in self._sayings:
            match clue.target:
                case Query(clues=(about,)) as inner:
                    far = self.kinds[inner.type]
                    some = far.saying(about, "named")
                    proved = self._reached(clue, far.within(some.proved))
                    possible = self._unrefuted(clue, far.within(some.possible))
                case EntityRef(entity=named):
                    proved, possible = self._reached(clue, [named]), self._unrefuted(clue, [named])
                case _:
                    proved = self.mask(self.world.proved(clue))
                    possible = proved | self._open[clue.relation]
            end = clue.target.entity if isinstance(clue.target, EntityRef) else None
            self._sayings[clue] = Saying(clue, style, proved, possible, (clue.relation, clue.inverse), end)
        return self._sayings[clue]

    def within(self, mask: int) -> list[str]:
        """The entities of a mask, in build order."""
        found = []
        while mask:
            low = mask & -mask
            found.append(self.members[low.bit_length() - 1])
            mask ^= low
        return found

    def _reached(self, clue: Clue, ends: Iterable[str]) -> int:
        """Those that a known fact of the clue's relation links to one of `ends`."""
        found = 0
        for end in ends:
            key = clue.relation, clue.inverse, end
            if key not in self._links:
                relation = clue.relation
                linked = self.world.objects(end, relation) if clue.inverse else self.world.subjects(relation, end)
                self._links[key] = self.mask(str(entity) for entity in linked)
            found |= self._links[key]
        return found

    def _unrefuted(self, clue: Clue, ends: list[str]) -> int:
        """Those that no known fact keeps from being linked to one of `ends`."""
        if not clue.inverse:
            return self._open[clue.relation] | self._reached(clue, ends)
        return self._reached(clue, ends) if all(self.world.closed(e, clue.relation) for e in ends) else self.all

    def _open_subjects(self, relation: str) -> int:
        """Those for which more objects than the known ones may exist: no value refutes a clue about them."""
        return self.mask(e for e in self.members if not self.world.closed(e, relation))

    def _read_inverse(self) -> dict[str, list[tuple[str, str]]]:
        """Relation and subject of every fact that leads to a member."""
        wanted = {r.name for r in self.inverse}
        found: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for fact in self.world.facts:
            if fact.relation in wanted and isinstance(fact.object, str):
                found[fact.object].append((fact.relation, fact.subject))
        return {entity: sorted(pairs) for entity, pairs in found.items()}

    def _values(self, relation: str) -> list[float]:
        return sorted(float(f.object) for e in self.members for f in self.world.facts_of(e, relation))

    def _bands_around(self, relation: str, value: float) -> Iterator[Band]:
        """Bands that hold `value`: intervals, and the half-lines above and below it, with ends that exclude something."""
        declared, values = self.world.relations[relation], self._sorted[relation]
        margin = DATED_MARGIN if declared.dated else MARGIN
        steps = year_steps() if declared.unit == "year" else number_steps(value, all(v.is_integer() for v in values))

        def ends(up: bool) -> list[float]:
            inside = (end for end in round_ends(value, steps, up) if values[0] < end < values[-1])
            return [end for end in inside if clear(end, values, 0.5 if declared.unit == "year" else margin * end)][:3]

        lows, highs = ends(up=False), ends(up=True)
        yield from (Band(low=low) for low in lows)
        yield from (Band(high=high) for high in highs)
        yield from (Band(low=low, high=high) for low in lows for high in highs)


def year_steps() -> tuple[float, ...]:
    """Decades to centuries."""
    return (10.0, 20.0, 50.0, 100.0)


def number_steps(value: float, whole: bool) -> tuple[float, ...]:
    """Steps that leave one or two significant digits of `value`: 1,267,000 gives 100,000 to 5,000,000."""
    if value <= 0 or not math.isfinite(value):
        return ()
    power = math.floor(math.log10(value))
    steps = (factor * 10.0**exponent for exponent in (power - 1, power) for factor in (1, 2, 5))
    return tuple(step for step in steps if step >= 1 or not whole)


def round_ends(value: float, steps: Iterable[float], up: bool) -> list[float]:
    """The nearest multiple of each step strictly beyond `value` on one side, nearest first, positive ones only.

    >>> round_ends(1807, (10, 20, 50), up=True)
    [1810.0, 1820.0, 1850.0]
    """
    ends = ((math.floor(value / s) + 1) * s if up else (math.ceil(value / s) - 1) * s for s in steps)
    return sorted({round(float(end), 10) for end in ends if end > 0}, reverse=not up)


def clear(end: float, values: list[float], near: float) -> bool:
    """Whether no value lies so near `end` that a source which rounds could disagree."""
    return not any(abs(value - end) < near for value in values)


class Kinds:
    """The `Kind` of every type of one world, made when first asked for."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._made: dict[str, Kind] = {}
        names: dict[tuple[str, str], int] = defaultdict(int)
        for entity in world.entities.values():
            names[entity.type, entity.name.casefold()] += 1
        self._names = names

    def __getitem__(self, type: str) -> Kind:
        if type not in self._made:
            self._made[type] = Kind(self.world, type, self)
        return self._made[type]

    def of(self, entity: str) -> Kind:
        return self[self.world.entities[entity].type]

    def speakable(self, entity: str) -> bool:
        """Whether its name means it alone among its type."""
        found = self.world.entities.get(entity)
        return found is not None and self._names[found.type, found.name.casefold()] == 1
