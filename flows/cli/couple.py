"""`touchstone couple`, `steer` and `lineage`: rounds, the plan between two of them, and where a policy comes from."""

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from flows.cli.console import Json, draw, emit, err, merged, out, read_json
from flows.cli.local import Here
from flows.cli.render import table
from infra.settings import Settings
from infra.store import Store
from pipeline import plans
from rl import history as histories
from rl import lineage as lineages
from rl import rounds as loop
from rl import steer as steering
from rl.train.report import FILE
from rl.train.run import find
from schemas.rounds import RoundsConfig
from schemas.steering import Plan, SteeringOptions


def couple(
    rounds: Annotated[int | None, typer.Option(help="How many in all (2); more later goes on after them.")] = None,
    seed: Annotated[int | None, typer.Option(help="Equal seeds make equal candidates (0).")] = None,
    config: Annotated[Path | None, typer.Option(help="JSON file of further `RoundsConfig` settings.")] = None,
    as_json: Json = False,
) -> None:
    """Rounds of curate, train, evaluate and steer: what the agent fails at decides what is made next.

    Stopped at any point, the same command goes on where it was.

    Example: `touchstone couple --rounds 3`
    """
    checked = RoundsConfig.model_validate(merged(read_json(config) if config else {}, {"rounds": rounds, "seed": seed}))
    settings = Settings.from_env()
    tell(play(checked, settings), settings, as_json)


def play(config: RoundsConfig, settings: Settings) -> loop.Rounds:
    """Do the rounds in this process."""
    begun = loop.begin(config, settings)

    def said(number: int, step: str) -> None:
        err.rule(f"round {number} of {config.rounds}: {step}" if number else "held-out tasks")

    asyncio.run(loop.go_on(begun, Here(settings), settings, said))
    return begun


def tell(rounds: loop.Rounds, settings: Settings, as_json: bool = False) -> None:
    """What the rounds came to, what moves next, and where to look."""
    told = histories.history(rounds, settings)

    def render() -> None:
        draw(
            table(f"rounds, held out: {told.held_out}", histories.COLUMNS[:8], [each.row()[:8] for each in told.rounds])
        )
        if told.plan is not None:
            draw_plan(told.plan)
        for each in told.rounds:
            out.print(
                f"round {each.round.number}:  {each.round.release}, {find(str(each.round.run), settings).path / FILE}"
            )
        if told.rounds:
            out.print(f"lineage:  touchstone lineage {told.rounds[-1].round.policy}")
        out.print(f"rounds:   {rounds.path}")

    value = {
        "rounds": rounds.path.name,
        "held_out": told.held_out,
        "table": [dict(zip(histories.COLUMNS, each.row(), strict=True)) for each in told.rounds],
        "plan": None if told.plan is None else _dumped(told.plan),
    }
    emit(value, as_json, render)


def steer(
    run: Annotated[str, typer.Argument(help="A training run: its id, folder, or `latest`.")] = "latest",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and write nothing.")] = False,
    config: Annotated[Path | None, typer.Option(help="JSON file of `SteeringOptions` settings.")] = None,
    as_json: Json = False,
) -> None:
    """Draw the plan of what is made next from what a policy failed at; curation follows it with `plan`.

    Example: `touchstone steer --dry-run`
    """
    options = SteeringOptions.model_validate(read_json(config) if config else {})
    settings = Settings.from_env()
    plan = steering.drawn(find(run, settings), settings, options)
    where = None if dry_run else plans.publish(Store(settings.store), plan)

    def render() -> None:
        draw_plan(plan)
        out.print(
            "nothing was written"
            if where is None
            else f'the latest plan now; curate with {{"plan": "latest"}}: {where}'
        )

    emit({**_dumped(plan), "url": where}, as_json, render)


def lineage(
    checkpoint: Annotated[str, typer.Argument(help="A checkpoint's folder; or a run: id, folder, `latest`.")],
    as_json: Json = False,
) -> None:
    """Where a trained policy comes from: runs, releases, plans and rounds, back to the first policy.

    Example: `touchstone lineage latest`
    """
    found = lineages.lineage(checkpoint, Settings.from_env())

    def render() -> None:
        for each in found:
            out.print(
                f"{'  ' * each.depth}{each.kind} {each.name}{f'  ({each.said})' if each.said else ''}", highlight=False
            )

    emit([asdict(each) for each in found], as_json, render)


def draw_plan(plan: Plan) -> None:
    """What moves, by how much, and why."""
    rows = [(stratum.removeprefix(f"{plan.family}/"), *others) for stratum, *others in plans.lines(plan)]
    draw(table(f"plan {plan.id} of {plan.family}, from {plan.release} and {plan.run}", plans.SHOWN, rows))
    for outcome, n in plan.advice.items():
        out.print(f"{outcome}: {n} attempts, no matter of content; the run's report says what may help")


def _dumped(plan: Plan) -> dict[str, Any]:
    return {"id": plan.id, **plan.model_dump(mode="json")}
