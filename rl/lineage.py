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
    return list(_policy(name, settings, 0, set()))


def _policy(name: str, settings: Settings, depth: int, seen: set[Path]) -> Iterator[Origin]:
    found = _run_of(name, settings)
    if found is None:
        if not depth:
            raise LineageError(f"{name}: is no checkpoint or run of training; give the folder of one")
        yield Origin(depth, "policy", name, "where learning began" if _a_beginning(Path(name)) else "its run is gone")
        return
    run, step = found
    yield Origin(depth, "policy", name, f"after step {step}" if step else "the run's last")
    if run.path in seen:
        return
    seen.add(run.path)
    yield from _rounds_of(run, settings, depth + 1)
    before, after = (run.evaluation(each) for each in (0, max(run.evaluated, default=0)))
    rates = [each.sampled.rate for each in (before, after) if each is not None]
    values = " -> ".join(f"{rate.value:.3f}" for rate in rates if rate is not None)
    yield Origin(depth + 1, "run", run.id, f"held-out pass@1 {values}" if values else "")
    yield from _release(run.origin.version, run.origin.release, run.config.family, settings, depth + 2)
    if run.origin.held_out != run.origin.release:
        yield Origin(depth + 2, "held-out", run.origin.held_out.rpartition("/")[2])
    yield from _policy(str(run.policy), settings, depth + 2, seen)


def _run_of(name: str, settings: Settings) -> tuple[TrainRun, int] | None:
    """The run that made a policy, and after how many steps; 0 is its last."""
    path = Path(name).absolute()
    step = re.fullmatch(r"step-(\d+)", path.name)
    if step and path.parent.name == CHECKPOINTS and (path.parent.parent / RUN_FILE).is_file():
        return open_run(path.parent.parent), int(step[1])
    runs = name == "latest" or (path / RUN_FILE).is_file() or (settings.cache / FOLDER / name / RUN_FILE).is_file()
    return (find(name, settings), 0) if runs else None


def _a_beginning(policy: Path) -> bool:
    return policy.is_dir() and policy.parent.name != CHECKPOINTS


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
        yield from _plan(config.plan, settings, depth + 1)
    for kind, name in (("held-out", config.held_out), ("earlier", config.earlier)):
        if name is not None:
            yield Origin(depth + 1, kind, name)


def _plan(id: str, settings: Settings, depth: int) -> Iterator[Origin]:
    if id == plans.EVEN:
        yield Origin(depth, "plan", plans.UNIFORM, "all strata alike")
        return
    try:
        plan = plans.load(Store(settings.store), id)
    except TouchstoneError as error:
        yield Origin(depth, "plan", id, f"cannot be read any more: {error}")
        return
    yield Origin(depth, "plan", id, f"drawn from run {plan.run} on release {plan.release}")
    if plan.parent is not None:
        yield from _plan(plan.parent, settings, depth + 1)
