"""Several rounds of curate, train, evaluate and steer, each step written down when it is done.

Invariants: the held-out tasks are fixed before the first round; what a finished step came to is in its round's file, and no step
that is in one is done again; steps themselves go on from where they were, so whatever stopped the rounds, the same call goes on.
"""

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from infra.files import locked, write_whole
from infra.models import refuse_missing
from infra.settings import Settings
from infra.store import KeyMissing, Store, explained
from pipeline import plans
from pipeline import release as releases
from pipeline.apart import HeldOut
from rl import steer
from rl.train.checkpoints import Checkpoints
from rl.train.run import TrainRun, create, find
from schemas.base import Record, content_hash
from schemas.config import CurateConfig, Served, describe_errors
from schemas.errors import TouchstoneError
from schemas.rounds import Round, RoundsConfig
from schemas.task import Family
from schemas.training import TrainConfig

FOLDER = "rounds"
_CONFIG, _HELD_OUT = "rounds.json", "held-out.json"

Tell = Callable[[int, str], None]
"""Told (round, step) when a step begins; round 0 makes the held-out tasks."""


class RoundsError(TouchstoneError):
    """No rounds, or ones that cannot go on."""


class Steps(Protocol):
    """How the long steps are done: in this process, or as flows."""

    async def curate(self, config: CurateConfig) -> str:
        """Curate and publish; gives the release's version."""
        ...

    async def train(self, run: TrainRun) -> None:
        """Evaluate, learn, evaluate again and report."""
        ...


class _HeldOut(Record):
    release: str


@dataclass(frozen=True, slots=True)
class Rounds:
    """The folder of some rounds. Equal settings are the same ones, however many there are to be."""

    path: Path
    config: RoundsConfig

    @property
    def held_out(self) -> str | None:
        """Version of the release with the held-out tasks, `None` before it is made. Raises `RoundsError`."""
        path = self.path / _HELD_OUT
        try:
            return _HeldOut.model_validate_json(path.read_bytes()).release if path.exists() else None
        except ValidationError as error:
            raise RoundsError(
                f"{path}: is damaged ({describe_errors(error, '; ')}); begin anew with another seed"
            ) from error

    def round(self, number: int) -> Round:
        """As far as it is. Raises `RoundsError` for a file that is damaged."""
        path, why = self._file(number), "it is of another round"
        try:
            found = Round.model_validate_json(path.read_bytes()) if path.exists() else Round(number=number)
        except ValidationError as error:
            found, why = None, describe_errors(error, "; ")
        if found is None or found.number != number:
            raise RoundsError(f"{path}: is damaged ({why}); correct it, or remove it to do the round again")
        return found

    @property
    def rounds(self) -> list[Round]:
        """All that were begun, however many there are to be now."""
        numbers = (re.fullmatch(r"round-(\d{4})\.json", path.name) for path in self.path.glob("round-*.json"))
        return [self.round(number) for number in sorted(int(found[1]) for found in numbers if found)]

    def write(self, round: Round) -> Round:
        write_whole(self._file(round.number), round.model_dump_json(indent=1).encode())
        return round

    def hold_out(self, version: str) -> str:
        write_whole(self.path / _HELD_OUT, _HeldOut(release=version).model_dump_json().encode())
        return version

    def _file(self, number: int) -> Path:
        return self.path / f"round-{number:04d}.json"


def begin(config: RoundsConfig, settings: Settings) -> Rounds:
    """The rounds of these settings, new or as they were left.

    Raises `UnavailableModel` for a policy that is not there, `FolderInUse` where another process works on them.
    """
    refuse_missing(config.policy)
    key = content_hash(config.model_dump(mode="json", exclude={"rounds"}), length=12)
    rounds = Rounds(settings.cache / FOLDER / f"rounds-{key}", config)
    described = config.model_dump(mode="json", exclude_unset=True)
    with explained(str(rounds.path)):
        rounds.path.mkdir(parents=True, exist_ok=True)
    with locked(rounds.path):
        write_whole(rounds.path / _CONFIG, json.dumps(described, indent=1).encode())
    return rounds


def opened(name: str, settings: Settings) -> Rounds:
    """Rounds by their folder or id, or the `latest`. Raises `RoundsError`."""
    folder = settings.cache / FOLDER
    if name == "latest":
        found = sorted(folder.glob(f"*/{_CONFIG}"), key=lambda path: path.stat().st_mtime)
        if not found:
            raise RoundsError(f"{folder}: holds no rounds; begin some with `touchstone couple`")
        return opened(str(found[-1].parent), settings)
    path = Path(name) if "/" in name or Path(name).is_dir() else folder / name
    try:
        with explained(str(path)):
            config = RoundsConfig.model_validate_json((path / _CONFIG).read_bytes())
    except KeyMissing:
        raise RoundsError(f"{path}: holds no rounds; begin some with `touchstone couple`") from None
    except ValidationError as error:
        raise RoundsError(
            f"{path / _CONFIG}: is damaged or of another version ({describe_errors(error, '; ')}); `touchstone couple` with "
            "the settings of these rounds writes it anew, or remove the folder"
        ) from error
    return Rounds(path.absolute(), config)


async def go_on(rounds: Rounds, steps: Steps, settings: Settings, tell: Tell = lambda *_: None) -> None:
    """Do whatever of the rounds is not done. Raises `FolderInUse` where another process works on them."""
    store = Store(settings.store)
    with locked(rounds.path):
        held_out = await _held_out(rounds, store, steps, tell)
        known = await asyncio.to_thread(_apart, store, held_out, rounds.config.curate.family)
        before: Round | None = None
        for number in range(1, rounds.config.rounds + 1):
            now = rounds.round(number)
            if now.release is None:
                tell(number, "curate")
                version = await steps.curate(curation(rounds, number, before, held_out))
                now = rounds.write(now.model_copy(update={"release": version}))
            if now.policy is None:
                await asyncio.to_thread(
                    _refuse_contaminated, store, str(now.release), rounds.config.curate.family, known
                )
                run = await asyncio.to_thread(create, training(rounds, now, before, held_out), settings)
                _measured_before(run, before, settings)
                tell(number, "train")
                await steps.train(run)
                last = Checkpoints(run.path, run.config.checkpoint)
                policy = str(last.path(last.last)) if last.last else str(run.policy)
                now = rounds.write(now.model_copy(update={"run": run.id, "policy": policy}))
            if now.plan is None:
                tell(number, "steer")
                run = find(str(now.run), settings)
                plan = await asyncio.to_thread(steer.drawn, run, settings, rounds.config.steering)
                await asyncio.to_thread(plans.keep, store, plan)
                now = rounds.write(now.model_copy(update={"plan": plan.id}))
            before = now


async def _held_out(rounds: Rounds, store: Store, steps: Steps, tell: Tell) -> str:
    if (version := rounds.held_out) is not None:
        return version
    config = rounds.config
    if config.held_out is not None:  # the latest is what it is now, and stays that
        found = await asyncio.to_thread(releases.resolve, store, config.held_out)
        return rounds.hold_out(found.removeprefix(f"{store.root}/releases/"))
    tell(0, "curate")
    made = {
        "seed": config.seed,
        "candidates": config.held_out_candidates,
        "accept": None,
        "budget": None,
        "test_share": 1.0,
    }
    return rounds.hold_out(await steps.curate(_settings(config.curate, solver=Served(model=config.policy), **made)))


def curation(rounds: Rounds, number: int, before: Round | None, held_out: str) -> CurateConfig:
    """What round `number` curates, after the round `before` it."""
    config = rounds.config
    changes = {
        "seed": config.seed + number,
        "held_out": held_out,
        "test_share": 0.0,
        "solver": Served(model=config.policy if before is None else str(before.policy)),
    }
    if before is not None and config.again:
        changes["earlier"] = before.release
    if before is not None and config.steered:
        changes |= {"plan": before.plan, "aims": ()}
    return _settings(config.curate, **changes)


def training(rounds: Rounds, now: Round, before: Round | None, held_out: str) -> TrainConfig:
    """What the round trains, on what it has curated."""
    config = rounds.config
    given = config.train.model_dump(exclude_unset=True)
    given |= {
        "release": now.release,
        "policy": config.policy if before is None else before.policy,
        "seed": config.seed,
        "family": config.curate.family,
        "evaluation": {**given.get("evaluation", {}), "release": held_out},
    }
    return TrainConfig.model_validate(given)


def _settings(config: CurateConfig, **changes: object) -> CurateConfig:
    return CurateConfig.model_validate(config.model_dump(exclude_unset=True) | changes)


def _release(store: Store, version: str) -> releases.Release:
    return releases.load(releases.resolve(store, version))


def _apart(store: Store, version: str, family: Family) -> HeldOut:
    tasks = [row.task for row in _release(store, version).rows(family, "test")]
    if not tasks:
        raise RoundsError(
            f"{version}: has no {family} rows in its split test, so nothing is held out; name another release"
        )
    return HeldOut.of(tasks)


def _refuse_contaminated(store: Store, version: str, family: Family, held_out: HeldOut) -> None:
    release = _release(store, version)
    for row in release.rows(family):
        if shared := held_out.shared(row.task):
            raise RoundsError(
                f"{release.version}: task {row.task.task_id} has the {shared.replace('_', ' ')} as a held-out one; what is "
                "measured on these would mean nothing: curate with `held_out`"
            )


def _measured_before(run: TrainRun, before: Round | None, settings: Settings) -> None:
    """Learning begins with the policy that the round before ended with, and that was measured: on the same tasks, alike."""
    if before is None or before.run is None or run.evaluation(0) is not None:
        return
    earlier = find(before.run, settings)
    _, last = earlier.before_and_after
    if last is not None:
        write_whole(run.evaluation_file(0), last.model_dump_json(indent=1).encode())
