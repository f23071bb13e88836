"""`touchstone train` and `touchstone report`: a policy learns on a release, and what came of it."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.console import Json, draw, emit, err, merged, out, read_json
from flows.cli.dashboard import Dashboard
from flows.cli.render import summary as release_summary
from flows.cli.render import table
from flows.cli.tasks import open_release
from infra.settings import Settings, folder
from pipeline.card import page as card
from rl.train import report as reports
from rl.train.account import Account, account
from rl.train.run import TrainRun, TrainRunError, create, find
from schemas.training import TrainConfig


def train(
    release: Annotated[
        str | None, typer.Argument(help="What to train on: a path, a version, or `latest`, which is the default.")
    ] = None,
    minutes: Annotated[float | None, typer.Option(help="Of training; held-out tasks are evaluated beside.")] = None,
    steps: Annotated[
        int | None, typer.Option(help="Of the optimiser. Without any limit: one pass over the tasks.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Equal seeds draw equal tasks (0).")] = None,
    config: Annotated[Path | None, typer.Option(help="JSON file of further `TrainConfig` settings.")] = None,
    out_dir: Annotated[str | None, typer.Option("--out", help="Where the run goes instead of the store.")] = None,
    resume: Annotated[
        str | None,
        typer.Option(help="A run to go on with: its id, its folder, or `latest`. --minutes and --steps may grow."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Train a policy on a release by reinforcement, with held-out tasks evaluated before and after.

    Stopped at any point, the same command goes on where it was: nothing that was admitted is lost.

    Example: `touchstone train latest --minutes 8`
    """
    from rl.train import coach  # torch: only this command waits for it

    settings = Settings.from_env()
    if out_dir is not None:
        settings = replace(settings, cache=folder("--out", out_dir))
    limits = {"minutes": minutes, "steps": steps}
    if resume is None:
        flags = {"release": release, "seed": seed, **limits}
        run = create(TrainConfig.model_validate(merged(read_json(config) if config else {}, flags)), settings)
    else:
        for name, value in (("RELEASE", release), ("--seed", seed), ("--config", config)):
            if value is not None:
                raise TrainRunError(f"{name}={value}: a run goes on with the settings that it began with; leave it out")
        run = _with_limits(find(resume, settings), limits)
    err.print(f"{run.id}: {run.origin.policy} on {run.origin.version}", style="dim")
    with Dashboard(run.id) as dashboard:
        asyncio.run(coach.train(run, settings=settings, watch=dashboard))
    _tell(run, asyncio.run(account(run)), as_json)


def report(
    name: Annotated[str, typer.Argument(help="A run: its id, folder, or `latest`; or a release.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Write a run's report as it stands and say where; print a release's card.

    Example: `touchstone report latest`
    """
    if name == "latest" or Path(name).name.startswith("train-"):
        run = find(name, Settings.from_env())
        _tell(run, asyncio.run(reports.write(run)), as_json)
        return
    release = open_release(name)
    emit(release_summary(release), as_json, lambda: out.print(card(release.manifest, release.url)))


def _with_limits(run: TrainRun, limits: dict[str, float | int | None]) -> TrainRun:
    given = {name: value for name, value in limits.items() if value is not None}
    return replace(run, config=TrainConfig.model_validate(run.config.model_dump(exclude_unset=True) | given))


def _tell(run: TrainRun, told: Account, as_json: bool) -> None:
    page = run.path / reports.FILE

    def render() -> None:
        out.print(reports.sentence(told))
        if rows := reports.scores(told.before, told.after):
            draw(table(f"{told.policy} on {told.release}", reports.Score._fields, rows))
        draw(table("attempts", ("what became of them", "count"), reports.fates(told)))
        out.print(reports.closes(told))
        out.print(f"report:    {page}")
        out.print(f"go on:     touchstone train --resume {run.path} --minutes ...")
        out.print(f"evaluate:  touchstone evaluate {run.path}")

    emit({**reports.summary(told), "path": str(run.path), "report": str(page)}, as_json, render)
