"""From a training run that is over to the plan of what is made next."""

import pyarrow.parquet as pq  # type: ignore[import-untyped]
from pydantic import ValidationError

from infra.settings import Settings
from infra.store import KeyMissing, Store, explained
from pipeline import plans
from pipeline.curate import corpus
from pipeline.families import generator
from pipeline.release import Release
from pipeline.steering import next_plan
from rl.analytics import advice
from rl.train.run import FAILURES_FILE, TrainRun
from schemas.arrow import FAILURES, SchemaError
from schemas.config import CurateConfig, describe_errors
from schemas.errors import TouchstoneError
from schemas.measured import Failure
from schemas.steering import Line, Plan, SteeringOptions


class SteerError(TouchstoneError):
    """Statistics that no plan can be drawn from."""


def drawn(run: TrainRun, settings: Settings, options: SteeringOptions) -> Plan:
    """The plan after a run and the release it trained on; nothing is written.

    Raises `SteerError`, `PlanError` for what the release followed and is gone, `ReleaseError` where the release is gone.
    """
    release = run.release
    before = _before(run, release, settings)
    failures = read(run)
    counts = release.manifest.strata
    if unknown := sorted({row.stratum for row in failures} - set(counts)):
        raise SteerError(
            f"{run.path / FAILURES_FILE}: counts {unknown[0]}, which release {release.version} has no task of; it is of "
            "another run, write it anew with `touchstone report`"
        )
    plan = next_plan(before, counts, failures, options)
    return plan.model_copy(update={"advice": {outcome.value: n for outcome, n in advice(failures).items()}})


def read(run: TrainRun) -> list[Failure]:
    """What attempts of a run came to. Raises `SteerError`."""
    path = run.path / FAILURES_FILE
    try:
        with explained(str(path)):
            failures = FAILURES.unpack(pq.read_table(path))
    except KeyMissing:
        raise SteerError(f"{path}: is not there; `touchstone report {run.path}` writes it") from None
    except (ValueError, SchemaError) as error:  # pyarrow's own are values
        why = describe_errors(error, "; ") if isinstance(error, ValidationError) else error
        raise SteerError(f"{path}: cannot be read ({why}); write it anew with `touchstone report`") from error
    if odd := [row.version for row in failures if row.version and not row.version.isdecimal()]:
        raise SteerError(
            f"{path}: counts weights of version {odd[0]!r}, and versions are numbers; write it anew with `touchstone report`"
        )
    if not failures:
        raise SteerError(f"{path}: counts no attempt; train first, there is nothing to steer by")
    return failures


def _before(run: TrainRun, release: Release, settings: Settings) -> Plan:
    """What the release followed: a plan, with what was believed then, or shares as they came out."""
    family = run.config.family
    try:
        config = CurateConfig.model_validate(release.manifest.configs[family])
    except KeyError:
        raise SteerError(f"{release.url}: has no {family}, which {run.id} says it trained on; train anew") from None
    except ValidationError as error:
        raise SteerError(f"{release.url}: is of another version ({describe_errors(error, '; ')})") from error
    world = corpus(config, settings.cache)
    hash = world.hash if world else ""
    make = generator(config.model_copy(update={"aims": ()}), world)
    if config.plan not in (None, plans.EVEN):
        plan = plans.load(Store(settings.store), str(config.plan))
        plans.fitting(plan, family, make.version, hash)
        found = {"parent": plan.id, "release": release.version, "run": run.id, "group": run.config.rollout.group}
        return plan.model_copy(update=found)
    if hash not in ("", *release.manifest.worlds.values()):
        raise SteerError(
            f"{release.version}: asks about {', '.join(release.manifest.worlds)} as it was then, and it is {hash} now; "
            "curate anew, then train and steer"
        )
    made = {name: counts for name, counts in release.manifest.strata.items() if name in make.strata and counts.asked}
    if not made:
        raise SteerError(f"{release.version}: has no candidate of a stratum that can be asked for; curate more")
    spent = {name: counts.tokens for name, counts in made.items()}
    if not any(spent.values()):  # no model was asked
        spent = {name: counts.asked for name, counts in made.items()}
    total = sum(spent.values())
    return Plan(
        family=family,
        generator=make.version,
        world=hash,
        release=release.version,
        run=run.id,
        group=run.config.rollout.group,
        lines=tuple(Line(stratum=name, share=spent.get(name, 0) / total) for name in make.strata),
    )
