"""Whether the starter learns on a release of this project, and what gamma and negative control do for it."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copyfile
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

from bench.figures import Figure, Row
from bench.releases import hard_search
from flows.cli.dashboard import line
from infra.settings import Settings
from rl.train import coach
from rl.train.account import Account, account
from rl.train.progress import every
from rl.train.run import TrainRun, create
from schemas.evaluation import Estimate
from schemas.training import TrainConfig

MINUTES, ATTEMPTS = 9.5, 16
GAMMA = 0.8
"""Episodes have three turns: the first is then worth .64, as much as 0.98 leaves of 23 turns."""
SETTINGS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "gamma 1": {"reward": {"gamma": 1.0}},
    "no cap": {"negatives": {"cap": None}},
    "no negatives": {"negatives": {"cap": 0.0}},
}
"""What differs from the recipe."""
RUNS = (("as it is", 0), ("as it is", 1), ("gamma 1", 0), ("gamma 1", 1), ("no cap", 0), ("no negatives", 0))
TITLE = (
    "setting", "seed", "steps", "minutes", "pass@1 before", "after", "gain", "right turns", "no step", "entropy", "negatives kept"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Learned:
    """One run. Entropies are means of the first and the last quarter of its steps."""

    told: Account
    entropy: tuple[float, float]
    kept: float

    @property
    def rates(self) -> tuple[Estimate, Estimate]:
        before, after = self.told.before, self.told.after
        assert before and before.sampled.rate and after and after.sampled.rate
        return before.sampled.rate, after.sampled.rate

    @property
    def gain(self) -> float:
        return self.rates[1].value - self.rates[0].value

    def of(self, name: str) -> tuple[float, float]:
        """A measure of the sampled attempts, before and after."""
        before, after = self.told.before, self.told.after
        assert before and after
        return tuple(float(getattr(each.sampled, name) or 0.0) for each in (before, after))  # type: ignore[return-value]


async def measure() -> tuple[list[Row], list[Figure]]:
    """A row for each run, and the figures."""
    settings = Settings.from_env()
    release = await hard_search(settings)
    with TemporaryDirectory(dir=settings.cache) as folder:
        for shared in ("worlds", "models"):
            (Path(folder) / shared).symlink_to(settings.cache / shared)
        found = {}
        for setting, seed in RUNS:
            found[setting, seed] = await _learn(setting, seed, release, replace(settings, cache=Path(folder)))
    rows = [_row(setting, seed, run) for (setting, seed), run in found.items()]
    recipe = [found["as it is", seed] for seed in (0, 1)]
    plain = [found["gamma 1", seed] for seed in (0, 1)]
    figures = []
    for seed, run in enumerate(recipe):
        before, after = run.rates
        steps = run.of("format_errors")
        figures += [
            Figure(f"learn_gain_seed_{seed}", run.gain, ">= 0.2"),
            Figure(f"learn_intervals_apart_seed_{seed}", after.low - before.high, "> 0"),
            Figure(f"learn_entropy_kept_seed_{seed}", run.entropy[1] / run.entropy[0], ">= 0.25"),
            Figure(f"learn_format_errors_rise_seed_{seed}", steps[1] - steps[0], "<= 0.005"),
            Figure(f"learn_minutes_seed_{seed}", run.told.seconds / 60, "<= 10"),
        ]
    turns = [fmean(run.of("turns_right")[1] for run in runs) for runs in (recipe, plain)]
    rates = [fmean(run.rates[1].value for run in runs) for runs in (recipe, plain)]
    figures += [
        Figure("gamma_right_turns_saved", turns[1] - turns[0], "> 0"),
        Figure("gamma_pass_at_1_lost", rates[1] - rates[0], "<= 0.02"),
    ]
    return rows, figures


def config(setting: str, seed: int, release: str) -> TrainConfig:
    """The recipe, with what the setting changes."""
    recipe: dict[str, Any] = {
        "release": release,
        "minutes": MINUTES,
        "seed": seed,
        "groups": 16,
        "rollout": {"slots": 128, "group": 8},
        "optimiser": {"rate": 3e-4, "warmup": 3},
        "reward": {"gamma": GAMMA},
        "evaluation": {"attempts": ATTEMPTS},
        "tools": {"replicas": 0},
    }
    return TrainConfig.model_validate(recipe | SETTINGS[setting])


async def _learn(setting: str, seed: int, release: str, settings: Settings) -> Learned:
    run = create(config(setting, seed, release), settings)
    _share_the_beginning(run)
    watch = every(30.0, lambda progress: print(f"{setting}, seed {seed}: {line(progress)}", file=sys.stderr))
    await coach.train(run, settings=settings, watch=watch)
    told = await account(run)
    of = {
        name: [each.value for each in told.metrics if (each.name, each.population) == name and each.value is not None]
        for name in (("entropy", "targets"), ("negative_kept", "negative"))
    }
    entropies = of["entropy", "targets"]
    quarter = max(1, len(entropies) // 4)
    ends = (fmean(entropies[:quarter]), fmean(entropies[-quarter:]))
    return Learned(told, ends, fmean(of["negative_kept", "negative"]))


def _share_the_beginning(run: TrainRun) -> None:
    """All runs of a seed begin with the same policy: it is measured once."""
    place = run.evaluation_file(0)
    for other in run.path.parent.glob("*/evaluations/step-000000.json"):
        if other.parent.parent != run.path and f'"seed": {run.config.seed},' in other.read_text():
            place.parent.mkdir(parents=True, exist_ok=True)
            copyfile(other, place)


def _row(setting: str, seed: int, run: Learned) -> Row:
    before, after = run.rates
    turns, steps = run.of("turns_right"), run.of("format_errors")
    return (
        setting,
        seed,
        run.told.steps,
        f"{run.told.seconds / 60:.1f}",
        f"{before.value:.3f} ({before.low:.3f}..{before.high:.3f})",
        f"{after.value:.3f} ({after.low:.3f}..{after.high:.3f})",
        f"{run.gain:+.3f}",
        f"{turns[0]:.2f} -> {turns[1]:.2f}",
        f"{steps[0]:.1%} -> {steps[1]:.1%}",
        f"{run.entropy[0]:.2f} -> {run.entropy[1]:.2f}",
        f"{run.kept:.0%}",
    )
