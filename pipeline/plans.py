"""Plans in a store, `plans/<id>.json`, and what curation makes of one. A plan is written once; who edits one has another.

`plan.md` of the same id beside it says the same to people. Which was drawn last is told by numbered pointers, as of releases.
"""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from infra.store import KeyExists, KeyMissing, Store, explained
from pipeline import pointers
from pipeline.families import Generator
from pipeline.markdown import table
from pipeline.steering import candidate_costs
from schemas.base import unique_keys
from schemas.config import FOLLOWED, LATEST, LATEST_IF_ANY, Aim, CurateConfig, describe_errors
from schemas.errors import TouchstoneError
from schemas.steering import Plan
from schemas.task import Family

UNIFORM = "uniform"
EVEN = f"{FOLLOWED}{UNIFORM}"
"""What stands in the config of a run that follows `uniform`."""
SHOWN = ("stratum", "budget", "was", "level", "why")


class PlanError(TouchstoneError):
    """No plan, or one that cannot be followed here."""


def publish(store: Store, plan: Plan) -> str:
    """Keep the plan as the latest one; gives where."""
    where = keep(store, plan)
    pointers.add(_plans(store), plan.id)
    return where


def keep(store: Store, plan: Plan) -> str:
    """Write a plan down, unless it is there; gives where."""
    plans = _plans(store)
    with contextlib.suppress(KeyExists):  # people may have written notes into theirs; what is followed is the JSON
        plans.put(f"{plan.id}.md", markdown(plan).encode())
    plans.ensure(f"{plan.id}.json", plan.model_dump_json(indent=1).encode())
    return plans.url(f"{plan.id}.json")


def latest(store: Store, family: Family) -> Plan | None:
    """The plan of a family that was drawn last; `None` where there is none. Raises `PlanError` for one that is damaged."""
    plans = _plans(store)
    for number in range(pointers.last(plans), 0, -1):
        if (id := pointers.read(plans, number)) is None:
            raise PlanError(f"{plans.url(pointers.key(number))}: is damaged; name a plan, or draw one anew")
        if (plan := load(store, id)).family == family:
            return plan
    return None


def load(store: Store, name: str) -> Plan:
    """A plan by its id or its file. Raises `PlanError`."""
    if not name.startswith(FOLLOWED) or "/" in name or name.endswith(".json"):
        return _read(name, lambda: Path(name).read_bytes())
    where = _plans(store).url(f"{name}.json")
    plan = _read(where, lambda: _plans(store).get(f"{name}.json"))
    if plan.id != name:
        raise PlanError(
            f"{where}: was edited, which makes another plan of it; move it, and give its new path as the plan"
        )
    return plan


def _read(where: str, data: Callable[[], bytes]) -> Plan:
    try:
        with explained(where):
            text = data().decode("utf-8-sig")
        return Plan.model_validate(json.loads(text, object_pairs_hook=unique_keys))
    except KeyMissing:
        raise PlanError(f"{where}: no such plan; draw one with `touchstone steer`, or follow `{UNIFORM}`") from None
    except (ValueError, RecursionError) as error:
        why = describe_errors(error, "; ") if isinstance(error, ValidationError) else error
        raise PlanError(f"{where}: is no plan ({why}); correct it") from error


def followed(config: CurateConfig, store: Store, make: Callable[[], Generator], world: str) -> CurateConfig:
    """The config with the aims of the plan that it names, and the plan's id in place of what it was called.

    The plan is kept in the store, wherever it came from. `world` is the content hash of the world that is asked about.
    Raises `PlanError` for a plan of another family, generator or world, and for aims beside it that are not its own.
    """
    if config.plan is None:
        return config
    if config.plan in (UNIFORM, EVEN):
        aims, name = tuple(Aim(stratum=stratum) for stratum in make().strata), EVEN
    else:
        plan = latest(store, config.family) if config.plan in (LATEST, LATEST_IF_ANY) else load(store, config.plan)
        if plan is None:
            if config.plan == LATEST_IF_ANY:
                return config.model_copy(update={"plan": None})
            raise PlanError(f"{store.root}: holds no plan of {config.family}; draw one with `touchstone steer`")
        generator = make()
        fitting(plan, config.family, generator.version, world)
        if unknown := sorted({line.stratum for line in plan.lines} - set(generator.strata)):
            raise PlanError(
                f"{plan.id}: has the stratum {unknown[0]}, which {config.family} does not make; take it out"
            )
        keep(store, plan)
        aims, name = aims_of(plan), plan.id
    if config.aims not in ((), aims):
        raise PlanError(f"plan={config.plan}: the aims beside it are not its own; leave out the one or the others")
    return config.model_copy(update={"aims": aims, "plan": name})


def fitting(plan: Plan, family: Family, generator: str, world: str) -> None:
    """Raises `PlanError` for a plan of another family, generator or world."""
    for what, has, given in (
        ("family", plan.family, family),
        ("generator", plan.generator, generator),
        ("world", plan.world, world),
    ):
        if has != given:
            raise PlanError(
                f"{plan.id}: is for the {what} {has or 'none'}, and this is {given or 'none'}; follow `{UNIFORM}`, and steer "
                "from its release"
            )


def aims_of(plan: Plan) -> tuple[Aim, ...]:
    """Candidates in the proportion of budget to cost, of strata with a share."""
    costs = candidate_costs(plan.lines)
    shares = plan.shares
    weights = [(line, shares[line.stratum] / cost) for line, cost in zip(plan.lines, costs, strict=True)]
    total = sum(weight for _, weight in weights)
    aims = (Aim(stratum=line.stratum, weight=round(weight / total, 6), level=line.level) for line, weight in weights)
    return tuple(aim for aim in aims if aim.weight)


def markdown(plan: Plan) -> str:
    """What moves, by how much and why, with the numbers."""
    drawn = f"release {plan.release}" + (f" and training run {plan.run}" if plan.run else "")
    parts = [
        f"# Plan {plan.id} of {plan.family}",
        f"Drawn from {drawn}; goes on from {plan.parent or 'no plan'}. Shares are of tokens that models spend.",
        table(SHOWN, lines(plan)),
    ]
    if plan.advice:
        parts += ["Failures at something other than what was asked, by which nothing moves:"]
        parts += [table(("outcome", "attempts"), plan.advice.items())]
    return "\n\n".join(parts) + "\n"


def lines(plan: Plan) -> list[tuple[str, str, str, str, str]]:
    """Rows for `SHOWN`, the largest share first."""
    shares = plan.shares
    ordered = sorted(plan.lines, key=lambda line: (-shares[line.stratum], line.stratum))
    return [
        (line.stratum, f"{shares[line.stratum]:.1%}", f"{line.was:.1%}", f"{line.level:+.2f}", line.why)
        for line in ordered
    ]


def _plans(store: Store) -> Store:
    return store.under("plans")
