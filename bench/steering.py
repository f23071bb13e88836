"""Steering in worlds whose truth is known: what it yields of what an oracle would, an allocation that knows the truth.

A task is worth v(p), the chance that a group of attempts at it does not end alike; one with a wrong gold is worth nothing,
though the filters miss some and attempts are right by luck. Some rates rise as the learner trains, whatever it trains on. The
oracle keeps to the cap; it gives to a stratum with wrong golds where the few right ones are worth it, which steering never does.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from bench.figures import Figure, Row
from pipeline.allocation import filled
from pipeline.steering import next_plan, value
from schemas.manifest import StratumCounts
from schemas.measured import AttemptOutcome, Failure
from schemas.steering import Line, Plan, SteeringOptions

KINDS = {"plain": 22, "infeasible": 6, "wrong gold": 6, "drifting": 6}
STRATA = tuple(f"{kind}/{i}" for kind, n in KINDS.items() for i in range(n))
WORLDS, ROUNDS, GROUP, GOAL = 20, 4, 8, 0.9
OPTIONS = SteeringOptions()
VERSIONS = 4
"""Of the weights, in the first pass over the tasks of a round."""
READ = {True: 0.8, False: 0.5}
"""Share of attempts that read all the evidence, of right ones and of others."""
BROKEN = 0.1
"""Share of attempts that fail at something other than what was asked."""
TITLE = (
    "world", "candidates each", "alike", "round 2", "round 3", "round 4", "worst world", f"worlds at {GOAL}", "most to a wrong gold"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Setting:
    """How much a round shows. `candidates` of each stratum in the first one; `noise` of its rates, on the scale of logits."""

    candidates: int
    noise: float


SETTINGS = {
    "as it is": Setting(100, 0.2),
    "noisy": Setting(100, 0.5),
    "small": Setting(30, 0.2),
    "tiny": Setting(10, 0.2),
}


class World:
    """Strata and a learner. Arrays are over strata; equal seeds make equal worlds."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        size = len(STRATA)
        self.kind = np.array([name.split("/")[0] for name in STRATA])
        wrong = self.kind == "wrong gold"
        self.costs = rng.lognormal(7, 0.6, size)  # tokens of a candidate
        self.bad = np.where(wrong, rng.uniform(0.7, 1, size), 0.0)  # candidates with a wrong gold
        self.caught = rng.uniform(0.4, 0.9, size)  # of those, what a filter of correctness rejects
        self.alarms = rng.uniform(0, 0.03, size)  # and of the others
        yields = np.where(wrong, rng.uniform(0.3, 0.8, size), rng.beta(1.2, 4, size))
        self.yields = yields * (self.kind != "infeasible")  # what is kept of the candidates that pass those filters
        self.passes = rng.beta(1.2, 1.6, size)  # attempts that are right where the gold is
        self.luck = rng.uniform(0, 0.03, size)  # and where it is wrong
        self.rises = np.where(self.kind == "drifting", rng.uniform(0.05, 0.15, size), 0.0)  # of `passes`, in a round

    @property
    def worth(self) -> np.ndarray:
        """Of a token spent on each stratum."""
        sound = (1 - self.bad) * (1 - self.alarms) * self.yields
        return np.asarray(sound * value(self.passes, GROUP) / self.costs)

    @property
    def missed(self) -> np.ndarray:
        """Tasks with a wrong gold, of those that no filter of correctness rejects."""
        slipped = self.bad * (1 - self.caught)
        return np.asarray(slipped / (slipped + (1 - self.bad) * (1 - self.alarms)))

    def yielded(self, shares: np.ndarray) -> float:
        return float(shares @ self.worth)

    def best(self, cap: float) -> np.ndarray:
        """The shares that yield most, none over the cap."""
        return filled(self.worth[None], 1.0, cap)

    def noised(self, rates: np.ndarray, noise: float) -> np.ndarray:
        """Rates as one round has them; 0 stays 0."""
        odds = rates * np.exp(self.rng.normal(0, noise, rates.size))
        return np.asarray(odds / (1 - rates + odds))

    def train(self) -> None:
        self.passes = np.clip(self.passes + self.rises, 0, 0.98)


def seen(world: World, shares: np.ndarray, setting: Setting) -> tuple[dict[str, StratumCounts], list[Failure]]:
    """A round that follows `shares`, as its counts and failures tell of it. The learner trains."""
    rng, noise = world.rng, setting.noise
    wanted = setting.candidates * world.costs.sum() * shares / world.costs
    asked = np.floor(wanted + rng.random(wanted.size)).astype(int)
    wrong = rng.binomial(asked, world.bad * world.caught + (1 - world.bad) * world.alarms)
    kept = rng.binomial(asked - wrong, world.noised(world.yields, noise))
    slipped = rng.binomial(kept, world.missed)
    before = world.noised(world.passes, noise)
    world.train()
    after = world.noised(world.passes, noise)
    tokens = asked * world.costs * rng.lognormal(0, noise / 2, asked.size)
    counts, failures = {}, list[Failure]()
    for i in np.flatnonzero(asked):
        rates = np.where(np.arange(kept[i]) < slipped[i], world.luck[i], before[i])
        counts[STRATA[i]] = StratumCounts(
            generated=int(asked[i]),
            kept=int(kept[i]),
            samples=GROUP * int(kept[i]),
            correct=int(np.clip(rng.binomial(GROUP, rates), 1, GROUP - 1).sum()),  # or it would not have been kept
            judged=int(asked[i]),
            wrong=int(wrong[i]),
            tokens=int(tokens[i]),
        )
        for version in range(VERSIONS):
            p = before[i] + (after[i] - before[i]) * version / (VERSIONS - 1)
            rates = np.where(np.arange(kept[i]) < slipped[i], world.luck[i], p)
            failures += _attempts(rng, STRATA[i], 0, version, rates)
            failures += _attempts(rng, STRATA[i], 1, VERSIONS + version, (1 + rates) / 2)  # known by now
    return counts, failures


def _attempts(rng: np.random.Generator, stratum: str, epoch: int, version: int, rates: np.ndarray) -> Iterator[Failure]:
    """Those of one version: of each task as many as of any other."""
    each = GROUP // VERSIONS
    whole = rng.binomial(each, 1 - BROKEN, rates.size)
    right = int(rng.binomial(whole, rates).sum())
    outcomes = {
        AttemptOutcome.RIGHT: right,
        AttemptOutcome.WRONG_ENTITY: int(whole.sum()) - right,
        AttemptOutcome.TRUNCATED: each * rates.size - int(whole.sum()),
    }
    for outcome, n in outcomes.items():
        if n > 0:
            read = int(rng.binomial(n, READ[outcome is AttemptOutcome.RIGHT]))
            yield _failure(stratum, epoch, version, outcome, n, read)


def _failure(stratum: str, epoch: int, version: int, outcome: AttemptOutcome, n: int, read: int) -> Failure:
    """With nothing of what steering does not look at."""
    return Failure(
        stratum=stratum,
        epoch=epoch,
        version=str(version),
        outcome=outcome,
        n=n,
        read=read,
        turns=1,
        tokens=1,
        seconds=1,
        failed_at=None,
        clues_met=None,
        unread=0,
        calls={},
        uncalled={},
        pass_a=1,
        pass_b=1,
    )


def steered(seed: int, setting: Setting, rounds: int = ROUNDS) -> Iterator[tuple[World, np.ndarray]]:
    """The world and the shares of each round, before anything is made of it. The first one gives to all alike."""
    world = World(seed)
    plan = Plan(
        family="hard_search",
        generator="1",
        release="r",
        group=GROUP,
        lines=tuple(Line(stratum=name, share=1 / len(STRATA)) for name in STRATA),
    )
    for _ in range(rounds):
        share = {line.stratum: line.share for line in plan.lines}
        shares = np.array([share[name] for name in STRATA])
        yield world, shares
        plan = next_plan(plan, *seen(world, shares, setting), OPTIONS)


@dataclass(frozen=True, slots=True)
class Steered:
    """Of one world, by round: what of the oracle's yield came, and what equal shares would have brought; and the largest
    share of a stratum with wrong golds."""

    reached: list[float]
    alike: list[float]
    wrong: float


def play(seed: int, setting: Setting) -> Steered:
    reached, alike, wrong = [], [], 0.0
    for world, shares in steered(seed, setting):
        most = world.yielded(world.best(OPTIONS.cap))
        reached.append(world.yielded(shares) / most)
        alike.append(float(world.worth.mean()) / most)
        wrong = max(wrong, float(shares[world.kind == "wrong gold"].max()))
    return Steered(reached, alike, wrong)


async def measure() -> tuple[list[Row], list[Figure]]:
    """A row for each setting, and the figures."""
    found = {name: [play(seed, setting) for seed in range(WORLDS)] for name, setting in SETTINGS.items()}
    rows = [_row(name, worlds) for name, worlds in found.items()]
    asked = found["as it is"]
    figures = [
        Figure("steering_of_oracle_round_4", _last(asked), f">= {GOAL}"),
        Figure("steering_worlds_near_oracle", _near(asked), ">= 19"),
        Figure("steering_alike_of_oracle", fmean(world.alike[-1] for world in asked), "> 0 (reported)"),
        *(
            Figure(f"steering_of_oracle_{name}", _last(found[name]), "> 0 (reported)")
            for name in SETTINGS
            if name != "as it is"
        ),
        Figure("steering_most_to_a_wrong_gold", max(world.wrong for all in found.values() for world in all), "<= 0.3"),
    ]
    return rows, figures


def _last(worlds: list[Steered]) -> float:
    return fmean(world.reached[-1] for world in worlds)


def _near(worlds: list[Steered]) -> int:
    """Worlds that get near the oracle in some round."""
    return sum(max(world.reached) >= GOAL for world in worlds)


def _row(name: str, worlds: list[Steered]) -> Row:
    means = [f"{fmean(world.reached[k] for world in worlds):.3f}" for k in range(1, ROUNDS)]
    return (
        name,
        SETTINGS[name].candidates,
        f"{fmean(world.alike[-1] for world in worlds):.3f}",
        *means,
        f"{min(world.reached[-1] for world in worlds):.3f}",
        _near(worlds),
        f"{max(world.wrong for world in worlds):.3f}",
    )
