"""Draws clue sets that identify one entity and in which every clue is needed.

Random walks make fake chains: of unique five-edge trees only one in thirty needs all its edges. So the draw is guided:
every clue alone is vague, every next one removes much of what is left, and a last pass takes out what is not needed.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, cycle, islice

from pipeline.families.hard_search.clues import Kind, Kinds, Saying, Style
from pipeline.families.hard_search.grammar import takes_description
from schemas.config import HardSearchConfig
from schemas.query import Clue, EntityRef, Query

VAGUE, BROAD = 0.03, 0.60
"""A clue alone leaves this share of its type, at least and at most. The share at which guided draws succeed most."""
SINGLE_FLOOR = 3
"""Entities a clue alone leaves at least, where a type is so small that `VAGUE` of it is fewer."""
PAIR, PAIR_FLOOR = 0.01, 2
"""The same for two clues together: three of 300 countries, two of 51 states. So no two clues identify the answer."""
CUT = 0.7
"""Every next clue leaves at most this share of what was left."""
MEMBERS = 3
"""Clues of a description at most: it only has to identify an entity, not to be hard."""
SPREAD = 0.3
"""The more clues are wanted, the vaguer each must be: of `n` entities `k` like clues leave `n**(1 - 1/k)` each. Those that leave a
third of it or more come first."""
SKETCHES, FEW = 12, 8
"""Widened clues looked at in one draw, and vague clues combined into a description."""
SHARED, DEEPER = 0.3, 0.5
"""Share of descriptions by another entity's like fact where there are both, and of those that go on one level deeper."""


class Sampler:
    """Clue sets about entities of one world. Pure given the generator of random numbers."""

    def __init__(self, kinds: Kinds, config: HardSearchConfig) -> None:
        self.kinds, self.config = kinds, config
        self._memo: dict[tuple[str, str], list[Saying]] = {}

    def clue_set(self, rng: random.Random, entity: str, styles: Sequence[Style]) -> list[Saying] | None:
        """A minimal set that identifies `entity`, with a clue of every style in `styles` and otherwise named ones.

        `None` where this draw found none; another draw may.
        """
        kind = self.kinds.of(entity)
        first = [self._vague_one(rng, kind, entity, style) for style in styles]
        rest = evenly(rng, self._vague(kind, entity, kind.named))
        if "region" in styles:
            rest = evenly(rng, [*rest, *self._regions(rng, kind, entity)])
        wanted = rng.randint(self.config.min_clues, self.config.max_clues)
        share = SPREAD * len(kind.members) ** (1 - 1 / wanted)
        rest.sort(key=lambda s: s.proved.bit_count() < share)
        chosen = self._narrow(kind, entity, [s for s in first if s is not None], rest, wanted)
        if chosen is None or None in first:
            return None
        kept = without_needless(chosen, kind.bit(entity), rng)
        enough = self.config.min_clues <= len(kept) <= self.config.max_clues
        return kept if enough and all(s in kept for s in first) and every_clue_counts(kept) else None

    def description(self, rng: random.Random, clue: Clue, answer: str, depth: int) -> Query | None:
        """A query that only the named end of `clue` satisfies, known and possible alike; no fact of it touches `answer`.

        `None` where the grammar or the facts allow none. Descriptions nest `depth` deep at most.
        """
        assert isinstance(clue.target, EntityRef)
        relation = self.kinds.world.relations[clue.relation]
        kind = self.kinds.of(clue.target.entity)
        shared = self.kinds[relation.subject_type].shared(clue) if relation.functional else []
        shared = [back for back in shared if back.target != EntityRef(entity=answer)]
        query = None
        if takes_description(relation, clue.inverse) and not (shared and rng.random() < SHARED):
            query = self._identified(rng, kind, clue.target.entity, answer, depth)
        if query is None and shared:
            query = Query(type=kind.type, clues=(rng.choice(shared),))
        return query

    def _identified(self, rng: random.Random, kind: Kind, entity: str, answer: str, depth: int) -> Query | None:
        """A minimal set of up to `MEMBERS` clues that identifies `entity`."""
        usable = [s for s in kind.named(entity) if s.end != answer]
        bit = kind.bit(entity)
        alone = evenly(rng, [s for s in usable if s.possible == bit])
        vaguer = evenly(rng, [s for s in usable if s.proved.bit_count() > 1])[:FEW]
        for size in rng.sample(range(1, MEMBERS + 1), MEMBERS):
            for group in combinations(alone if size == 1 else vaguer, size):
                if intersection(s.possible for s in group) == bit and (size == 1 or every_clue_counts(group)):
                    return self._query(rng, kind.type, group, answer, depth)
        return None

    def _query(self, rng: random.Random, type: str, group: Sequence[Saying], answer: str, depth: int) -> Query:
        """The group as a query; where depth allows, its last clue may describe its own end by one clue more."""
        clues = [s.clue for s in group]
        inner = self.description(rng, clues[-1], answer, depth - 1) if depth > 1 and rng.random() < DEEPER else None
        if inner is not None and len(inner.clues) == 1:
            clues[-1] = clues[-1].model_copy(update={"target": inner})
        return Query(type=type, clues=tuple(clues))

    def _vague_one(self, rng: random.Random, kind: Kind, entity: str, style: Style) -> Saying | None:
        if style == "region":
            return next(iter(self._regions(rng, kind, entity)), None)
        return next(iter(evenly(rng, self._vague(kind, entity, kind.bands))), None)

    def _regions(self, rng: random.Random, kind: Kind, entity: str) -> list[Saying]:
        """Vague clues that give their end as some member of a class; none speaks of `entity` itself."""
        found: dict[Saying, None] = {}
        for saying in islice(cycle(evenly(rng, kind.named(entity))), SKETCHES):
            abouts = [about for about in kind.abouts(saying) if about.end != entity]
            if abouts and vague(kind, wide := kind.widened(saying, rng.choice(abouts))):
                found[wide] = None
        return list(found)

    def _vague(self, kind: Kind, entity: str, sayings: Callable[[str], tuple[Saying, ...]]) -> list[Saying]:
        key = entity, sayings.__name__
        if key not in self._memo:
            self._memo[key] = [s for s in sayings(entity) if vague(kind, s)]
        return self._memo[key]

    def _narrow(
        self, kind: Kind, entity: str, chosen: list[Saying], rest: list[Saying], wanted: int
    ) -> list[Saying] | None:
        """Adds clues until only `entity` is possible; not before `wanted` of them where that can be had."""
        bit, left, chosen = kind.bit(entity), kind.all, list(chosen)
        for saying in chosen:
            left &= saying.possible
        for saying in rest:
            if left == bit:
                return chosen
            after = left & saying.possible
            too_soon = after == bit and len(chosen) + 1 < wanted
            if too_soon or after.bit_count() > CUT * left.bit_count():
                continue
            if saying in chosen or not pairs_vague(kind, chosen, saying):
                continue
            chosen.append(saying)
            left = after
        return chosen if left == bit else None


def evenly(rng: random.Random, sayings: Sequence[Saying]) -> list[Saying]:
    """The sayings in random order, one of each relation before a second of any: no relation crowds out the others."""
    groups: dict[tuple[str, bool], list[Saying]] = {}
    for saying in sayings:
        groups.setdefault(saying.relation, []).append(saying)
    order = list(groups.values())
    rng.shuffle(order)
    for group in order:
        rng.shuffle(group)
    longest = max(map(len, order), default=0)
    return [group[i] for i in range(longest) for group in order if i < len(group)]


def single_floor(size: int) -> int:
    """Entities that one clue must leave of `size`."""
    return max(SINGLE_FLOOR, round(VAGUE * size))


def pair_floor(size: int) -> int:
    """Entities that two clues must leave of `size`."""
    return max(PAIR_FLOOR, round(PAIR * size))


def vague(kind: Kind, saying: Saying) -> bool:
    """Whether the clue alone is far from identifying anything, and still excludes much."""
    return single_floor(len(kind.members)) <= saying.proved.bit_count() <= BROAD * len(kind.members)


def pairs_vague(kind: Kind, chosen: Sequence[Saying], new: Saying) -> bool:
    floor = pair_floor(len(kind.members))
    return all((s.proved & new.proved).bit_count() >= floor for s in chosen)


def intersection(masks: Iterable[int]) -> int:
    """All bits where there are no masks."""
    found = -1
    for mask in masks:
        found &= mask
    return found


def without_needless(chosen: Sequence[Saying], bit: int, rng: random.Random) -> list[Saying]:
    """The set less every clue without which the answer is still the only possible one, tried in random order."""
    kept = list(chosen)
    for saying in rng.sample(kept, len(kept)):
        others = [s for s in kept if s is not saying]
        if others and intersection(s.possible for s in others) == bit:
            kept = others
    return kept


def every_clue_counts(chosen: Sequence[Saying]) -> bool:
    """Whether without any one clue at least two entities provably satisfy the rest."""
    return all(intersection(s.proved for s in chosen if s is not left_out).bit_count() > 1 for left_out in chosen)
