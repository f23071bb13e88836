"""The family itself: plan, draw, obfuscate, prove, say, read back."""

import math
import random
from collections import Counter
from functools import cached_property

from pipeline.corpora.atlas import CORE_TYPES
from pipeline.corpora.world import World
from pipeline.families.base import Miss
from pipeline.families.hard_search.clues import Kinds, Style
from pipeline.families.hard_search.grammar import FRAMES, fits, question
from pipeline.families.hard_search.parse import ParseError, parse
from pipeline.families.hard_search.proof import Names, evidence, facts_used, minimal, near_misses, unique
from pipeline.families.hard_search.sampler import Sampler
from schemas.config import HardSearchConfig
from schemas.errors import TouchstoneError
from schemas.query import Band, Clue, EntityRef, Query
from schemas.task import Family, Lineage, Stratum, Task
from schemas.world import Fact

VERSION = "1"
TOOLS = ("search", "open")

PLANS: dict[str, float] = {"none": 0.35, "described": 0.25, "band": 0.15, "region": 0.15, "mixed": 0.10}
"""Share of each way to hide the ends of clues. A third names every end, so that a weak policy has something to begin with."""
HOPS = 7
"""Facts a question may need at most."""
TARGETS, TRIES = 12, 12
"""Answers tried for a candidate, and draws for each, before it is a miss."""
STRATA_DRAWS = 150
"""Of each way to hide the ends of clues, to see which strata there are."""
PILOT, HOPELESS, ANSWERS = 48, 8, 20
"""Answers drawn to see how often a type can be asked about, and after how many in vain to stop. It must be askable of 20: else
one answer exceeds 5 %."""


class NothingToAsk(TouchstoneError):
    """A world, or a choice of types, about which no hard question can be asked."""


class HardSearch:
    """Questions whose answer is one entity that several clues identify only together."""

    family: Family = "hard_search"
    version = VERSION

    def __init__(self, world: World, config: HardSearchConfig) -> None:
        self.world, self.config = world, config
        unknown = sorted(set(config.types) - set(world.types))
        if unknown:
            raise NothingToAsk(f"types={unknown[0]}: not in world {world.name}; it has {', '.join(world.types)}")
        self.sampler = Sampler(Kinds(world), config)
        self.names = Names(world)

    def __call__(self, seed: int, index: int) -> Task | Miss:
        rng = random.Random(f"{seed}/{index}/hard_search/{VERSION}")
        plan = rng.choices(list(self.plans), [PLANS[p] for p in self.plans])[0]
        return self._candidate(rng, plan, seed, index)

    def at(self, seed: int, index: int, stratum: str, draw: int = 0) -> Task | Miss:
        """The way to hide the ends of clues is that of the stratum; queries with another number of hops are passed over."""
        rng = random.Random(f"{seed}/{index}/{stratum}/{VERSION}" + (f"/{draw}" if draw else ""))
        return self._candidate(rng, stratum.rpartition("/")[2], seed, index, stratum)

    def hardness(self, task: Task) -> float:
        """Bits of what clues leave open: the sum over top-level clues of log2 of the entities that fit one alone."""
        assert isinstance(task.constraints, Query)
        return sum(math.log2(len(self.world.proved(clue))) for clue in task.constraints.clues)

    @cached_property
    def strata(self) -> tuple[str, ...]:
        """Those that turn up more than once in some draws of every way to obfuscate."""
        found: Counter[str] = Counter()
        for plan, types in self.plans.items():
            rng = random.Random(f"strata/{plan}")
            for type in rng.choices(list(types), list(types.values()), k=STRATA_DRAWS):
                query = self.draw(rng, rng.choice(self.world.of_type(type)), plan)
                if query is not None and self.obfuscation(query) == plan:
                    found[str(self._stratum(query))] += 1
        return tuple(sorted(stratum for stratum, n in found.items() if n > 1))

    def _candidate(
        self, rng: random.Random, plan: str, seed: int, index: int, stratum: str | None = None
    ) -> Task | Miss:
        types = self.plans[plan]
        type = rng.choices(list(types), list(types.values()))[0]
        reason = "no_clue_set"
        for target in rng.choices(self.world.of_type(type), k=TARGETS):
            for _ in range(TRIES):
                query = self.draw(rng, target, plan)
                if query is None or stratum not in (None, str(self._stratum(query))):
                    continue
                made = self._task(rng, query, target, seed, index)
                if isinstance(made, Task):
                    return made
                reason = made.reason
        return Miss(reason=f"{reason}: {type}/{plan}")

    @cached_property
    def plans(self) -> dict[str, dict[str, float]]:
        """For every way to obfuscate, the types that can be asked about, each with its weight.

        That is the root of the number of its relations: the more can be said, the more different questions there are.
        """
        core = [type for type in self.world.types if type in CORE_TYPES]
        types = self.config.types or tuple(core) or self.world.types
        wanted = [p for p in PLANS if self.config.max_depth > 1 or p in ("none", "band")]
        found = {p: {t: self._weight(t) for t in types if self._askable(t, p)} for p in wanted}
        found = {plan: weights for plan, weights in found.items() if weights}
        if not found:
            raise NothingToAsk(
                f"world {self.world.name}: no type has {ANSWERS} entities that {self.config.min_clues} to "
                f"{self.config.max_clues} clues identify; give more facts or a wider range of clues"
            )
        return found

    def _weight(self, type: str) -> float:
        kind = self.sampler.kinds[type]
        return math.sqrt(len(kind.direct) + len(kind.inverse))

    def _askable(self, type: str, plan: str) -> bool:
        """Whether enough entities of the type can be asked about for none to be a likely guess; a type named in the
        configuration is asked about however few they are."""
        members = self.world.of_type(type)
        named = type in self.config.types
        enough = 1 if named else max(PILOT // 8, math.ceil(ANSWERS * PILOT / max(len(members), 1)))
        rng = random.Random(f"pilot/{type}/{plan}")
        good = 0
        for asked, target in enumerate(rng.sample(members, min(PILOT, len(members))), start=1):
            good += any(self.draw(rng, target, plan) is not None for _ in range(TRIES))
            if good >= enough or (good == 0 and asked == HOPELESS):
                break
        return good >= enough

    def draw(self, rng: random.Random, target: str, plan: str) -> Query | None:
        """A query with the certificate for `target`, its clues in random order; `None` where this draw found none."""
        operators = rng.sample(["band", "region", "described"], 2) if plan == "mixed" else [plan]
        styles: list[Style] = [s for s in ("band", "region") if s in operators]
        chosen = self.sampler.clue_set(rng, target, styles)
        if chosen is None:
            return None
        clues = [s.clue for s in chosen]
        rng.shuffle(clues)
        query = Query(type=self.world.entities[target].type, clues=tuple(clues))
        if "described" in operators:
            described = self.describe(rng, query, target)
            if described is None:
                return None
            query = described
        sound = query.hops <= HOPS and unique(self.world, query, target) and minimal(self.world, query)
        return query if sound else None

    def describe(self, rng: random.Random, query: Query, answer: str) -> Query | None:
        """The query with the end of one clue described instead of named. `None` where no end can be."""
        for i in rng.sample(range(len(query.clues)), len(query.clues)):
            clue = query.clues[i]
            if not isinstance(clue.target, EntityRef):
                continue
            inner = self.sampler.description(rng, clue, answer, self.config.max_depth - 1)
            if inner is not None:
                others = [c for j, c in enumerate(query.clues) if j != i]
                last = clue.model_copy(update={"target": inner})
                return Query(type=query.type, clues=(*others, last))
        return None

    def _task(self, rng: random.Random, query: Query, target: str, seed: int, index: int) -> Task | Miss:
        """The task, or the reason why this query cannot be asked: it leaks, or reads in two ways."""
        answer = self.names.answer(target)
        facts = facts_used(self.world, query, target)
        years = self._as_of(facts)
        if len(years) > 1:
            return Miss(reason="several_dates")
        frames = [f for f in FRAMES if fits(query, f)]
        if not frames:
            return Miss(reason="nested_too_deep")
        text = question(self.world, query, rng.choice(frames), next(iter(years), None))
        if self.names.leaks(text, answer):
            return Miss(reason="answer_in_question")
        try:
            same = parse(text, self.world).signature == query.signature
        except ParseError:
            same = False
        if not same:
            return Miss(reason="two_readings")
        return Task.create(
            family=self.family,
            stratum=str(self._stratum(query)),
            question=text,
            answer=answer,
            tools=TOOLS,
            evidence=tuple(evidence(self.world, fact) for fact in facts),
            constraints=query,
            near_misses=near_misses(self.world, query, answer),
            lineage=Lineage(
                generator=self.family,
                version=VERSION,
                seed=seed,
                index=index,
                knobs=self.config.model_dump(mode="json"),
                world=self.world.hash,
            ),
        )

    def _as_of(self, facts: list[Fact]) -> set[str]:
        """The years that the sources of dated facts speak of."""
        dates = (self.world.sources[f.source].as_of for f in facts if self.world.relations[f.relation].dated)
        return {date[:4] for date in dates if date}

    def _stratum(self, query: Query) -> Stratum:
        return Stratum(
            family=self.family, hops=query.hops, tools=TOOLS, answer="entity", obfuscation=self.obfuscation(query)
        )

    def obfuscation(self, query: Query) -> str:
        """How the ends of clues are hidden: `none`, `band`, `region`, `described`, or `mixed` for more than one way."""
        ways = sorted({way for clue in query.clues if (way := self._way(clue)) is not None})
        return ways[0] if len(ways) == 1 else "mixed" if ways else "none"

    def _way(self, clue: Clue) -> str | None:
        match clue.target:
            case Band():
                return "band"
            case Query() as inner:
                return "described" if len(self.world.certain(inner)) == 1 else "region"
            case _:
                return None
