"""What rounds came to, read from what they left: one line a round, and the last plan."""

from dataclasses import dataclass

from infra.settings import Settings
from infra.store import Store
from pipeline import plans
from pipeline import release as releases
from pipeline.markdown import table
from rl.rounds import Rounds
from rl.train.run import find
from schemas.evaluation import Estimate, Evaluation
from schemas.rounds import Round
from schemas.steering import Plan

COLUMNS = (
    "round",
    "candidates",
    "kept",
    "tried again",
    "kept of them",
    "tokens",
    "pass@1 before",
    "after",
    "release",
    "run",
)


@dataclass(frozen=True, slots=True)
class Told:
    """A round that is over."""

    round: Round
    asked: int
    """New candidates, those that came to nothing too."""
    kept: int
    """Of new candidates."""
    carried: int
    revived: int
    tokens: int
    before: Evaluation | None
    after: Evaluation | None

    def row(self) -> tuple[object, ...]:
        rates = [shown(each.sampled.rate) if each else "" for each in (self.before, self.after)]
        counts = (self.round.number, self.asked, self.kept, self.carried, self.revived, self.tokens)
        return (*counts, *rates, self.round.release, self.round.run)


@dataclass(frozen=True, slots=True)
class History:
    held_out: str | None
    rounds: tuple[Told, ...]
    plan: Plan | None
    """What the next round would follow."""


def history(rounds: Rounds, settings: Settings) -> History:
    """Of every round that has trained. Raises `ReleaseError` or `TrainRunError` where something of it is gone."""
    store = Store(settings.store)
    over = [each for each in rounds.rounds if each.release is not None and each.run is not None]
    plan = next((each.plan for each in reversed(over) if each.plan is not None), None)
    return History(
        held_out=rounds.held_out,
        rounds=tuple(_told(each, store, settings) for each in over),
        plan=None if plan is None else plans.load(store, plan),
    )


def _told(each: Round, store: Store, settings: Settings) -> Told:
    manifest = releases.load(releases.resolve(store, str(each.release)), verify=False).manifest
    strata = manifest.strata.values()
    before, after = find(str(each.run), settings).before_and_after
    carried = sum(counts.carried for counts in strata)
    return Told(
        round=each,
        asked=sum(steps[0].seen for steps in manifest.funnel.values()) - carried,
        kept=sum(counts.kept for counts in strata),
        carried=carried,
        revived=sum(counts.revived for counts in strata),
        tokens=sum(step.cost for steps in manifest.funnel.values() for step in steps),
        before=before,
        after=after,
    )


def shown(rate: Estimate | None) -> str:
    return "" if rate is None else f"{rate.value:.3f} ({rate.low:.3f} to {rate.high:.3f})"


def markdown(told: History) -> str:
    parts = ["# Rounds", f"Held out: {told.held_out}", table(COLUMNS, [each.row() for each in told.rounds])]
    return "\n\n".join([*parts, *([plans.markdown(told.plan)] if told.plan else [])])
