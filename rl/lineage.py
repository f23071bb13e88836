"""Where a trained policy comes from: its run, the release, what that followed and kept apart, and the policy before."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from infra.settings import Settings
from infra.store import Store
from pipeline import plans
from pipeline import release as releases
from rl.rounds import FOLDER as ROUNDS
from rl.rounds import RoundsError, opened
from rl.train.checkpoints import FOLDER as CHECKPOINTS
from rl.train.run import FOLDER, RUN_FILE, TrainRun, find, open_run
from schemas.config import CurateConfig
from schemas.errors import TouchstoneError


class LineageError(TouchstoneError):
    """Nothing that a training run has made."""


@dataclass(frozen=True, slots=True)
class Origin:
    """One thing that a policy comes from. `depth` 0 is the policy; deeper things led to the one above them."""

    depth: int
    kind: str
    """`policy`, `round`, `run`, `release`, `plan`, `held-out` or `earlier`."""
    name: str
    said: str = ""


def lineage(name: str, settings: Settings) -> list[Origin]:
    """Of a checkpoint's folder, or of a run by folder, id or `latest`: the way back to the first policy.

    What is gone is said to be gone. Raises `LineageError` for what no run has made, `TrainRunError` where a run cannot be read.
    """
    found = list(_policies(name, settings))
    if len(found) == 1:  # nothing led to it
        raise LineageError(f"{name}: is no checkpoint or run of training; give the folder of one")
    return found


def _policies(name: str, settings: Settings) -> Iterator[Origin]:
    """One after another, each two deeper than what was trained from it."""
    depth, seen = 0, set[Path]()
    while (found := _run_of(name, settings)) is not None:
        run, step = found
        yield Origin(depth, "policy", name, _trained(Path(name), step))
        if run.path in seen:
            return
        seen.add(run.path)
        yield from _run(run, settings, depth + 1)
        name, depth = str(run.policy), depth + 2
    yield Origin(depth, "policy", name, _beginning(Path(name)))


def _trained(policy: Path, step: int) -> str:
    if not step:
        return "the run's last"
    return f"after step {step}" + ("" if policy.is_dir() else ", no longer kept")


def _beginning(policy: Path) -> str:
    if policy.parent.name == CHECKPOINTS:
        return "its run is gone"
    return "where learning began" + ("" if policy.is_dir() else ", no longer there")


def _run(run: TrainRun, settings: Settings, depth: int) -> Iterator[Origin]:
    yield from _rounds_of(run, settings, depth)
    rates = [each.sampled.rate for each in run.before_and_after if each is not None]
    values = " -> ".join(f"{rate.value:.3f}" for rate in rates if rate is not None)
    yield Origin(depth, "run", run.id, f"held-out pass@1 {values}" if values else "")
    yield from _release(run.origin.version, run.origin.release, run.config.family, settings, depth + 1)
    if run.origin.held_out != run.origin.release:
        yield Origin(depth + 1, "held-out", run.origin.held_out.rpartition("/")[2])


def _run_of(name: str, settings: Settings) -> tuple[TrainRun, int] | None:
    """The run that made a policy, and after how many steps; 0 is its last."""
    path = Path(name).absolute()
    step = re.fullmatch(r"step-(\d{1,9})", path.name)
    if step and path.parent.name == CHECKPOINTS and (path.parent.parent / RUN_FILE).is_file():
        return open_run(path.parent.parent), int(step[1])
    runs = name == "latest" or (path / RUN_FILE).is_file() or (settings.cache / FOLDER / name / RUN_FILE).is_file()
    return (find(name, settings), 0) if runs else None


def _rounds_of(run: TrainRun, settings: Settings, depth: int) -> Iterator[Origin]:
    for folder in sorted((settings.cache / ROUNDS).glob("rounds-*")):
        try:
            rounds = opened(str(folder), settings)
            numbers = [each.number for each in rounds.rounds if each.run == run.id]
        except RoundsError as error:
            yield Origin(depth, "round", folder.name, f"cannot be read any more: {error}")
            continue
        said = "steered" if rounds.config.steered else "not steered"
        yield from (Origin(depth, "round", f"{folder.name}/{number}", said) for number in numbers)


def _release(version: str, url: str, family: str, settings: Settings, depth: int) -> Iterator[Origin]:
    try:
        manifest = releases.load(url, verify=False).manifest
        config = CurateConfig.model_validate(manifest.configs[family])
    except (TouchstoneError, ValidationError) as error:
        yield Origin(depth, "release", version, f"cannot be read any more: {error}")
        return
    kept = sum(counts.kept + counts.revived for counts in manifest.strata.values())
    yield Origin(depth, "release", version, f"{kept} tasks, measured on {config.resolved_solver().model}")
    if config.plan is not None:
        yield from _plans(config.plan, settings, depth + 1)
    for kind, name in (("held-out", config.held_out), ("earlier", config.earlier)):
        if name is not None:
            yield Origin(depth + 1, kind, name)


def _plans(id: str | None, settings: Settings, depth: int) -> Iterator[Origin]:
    """A plan and those that it goes on from, each one deeper."""
    if id == plans.EVEN:
        yield Origin(depth, "plan", plans.UNIFORM, "all strata alike")
        return
    while id is not None:
        try:
            plan = plans.load(Store(settings.store), id)
        except TouchstoneError as error:
            yield Origin(depth, "plan", id, f"cannot be read any more: {error}")
            return
        yield Origin(depth, "plan", id, f"drawn from run {plan.run} on release {plan.release}")
        id, depth = plan.parent, depth + 1
