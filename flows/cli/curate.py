"""`touchstone curate`: one family from nothing to a release."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.console import Json, draw, emit, merged, out, progress_bars, read_json
from flows.cli.local import curated
from flows.cli.render import funnel_table, summary
from infra.settings import Settings, location
from infra.store import Store
from pipeline import curate as pipeline
from pipeline.curate import ABOUT_A_WORLD
from rl.engines import Engines
from schemas.config import CurateConfig
from schemas.manifest import Ending


def curate(
    family: Annotated[str, typer.Argument(help="hard_search or math.", show_default=False)],
    candidates: Annotated[
        int | None, typer.Option(help="Candidates to generate (300 unless --accept is given).")
    ] = None,
    accept: Annotated[int | None, typer.Option(help="Go on until this many tasks are kept.")] = None,
    budget: Annotated[int | None, typer.Option(help="Go on while models have spent fewer tokens than this.")] = None,
    seed: Annotated[int | None, typer.Option(help="Equal seeds make equal candidates (0).")] = None,
    plan: Annotated[str | None, typer.Option(help="To follow: latest, uniform, or a plan's file or id.")] = None,
    out_dir: Annotated[
        str | None,
        typer.Option(
            "--out", help="A folder for the run and its release, or s3://bucket/prefix for the release alone."
        ),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="JSON file of further `CurateConfig` settings.")] = None,
    as_json: Json = False,
) -> None:
    """Generate candidates, filter them, measure what is left by Pass@N, publish what is kept.

    Stopped at any point, the same command goes on where it was and repeats no model call.

    Example: `touchstone curate hard_search --candidates 300 --seed 7 --out first`
    """
    flags = {"family": family, "candidates": candidates, "accept": accept, "budget": budget, "seed": seed, "plan": plan}
    checked = CurateConfig.model_validate(merged(read_json(config) if config else {}, flags))
    settings = Settings.from_env()
    store = Store(settings.store if out_dir is None else location("--out", out_dir))
    runs = (settings.cache if out_dir is None or store.local is None else store.local) / "runs"
    with Engines(settings, checked.concurrency) as engines, progress_bars() as report:
        done = curated(checked, settings=settings, runs=runs, store=store, engines=engines, report=report)
        run = asyncio.run(done)
    published = pipeline.publish([run], store)
    release = published.release

    def render() -> None:
        draw(funnel_table(family, release.manifest.funnel[family]))
        out.print(_ended(checked, release.manifest.endings[family], sum(release.splits(family).values())))
        out.print(f"{'published' if published.new else 'published before:'} {release.version}  {release.url}")
        out.print(f'load it with: datasets.load_dataset("{release.url}", "{family}")')
        if (row := next(release.rows(family), None)) is not None:
            where = "" if out_dir is None else f" --release {out_dir}"
            out.print(f"look at one:  touchstone show {row.task.task_id}{where}")
            if family in ABOUT_A_WORLD:
                out.print(f"watch it:     touchstone solve {row.task.task_id}{where} --watch")
                out.print(f"train on it:  touchstone train {release.url} --minutes 8")

    emit(summary(release), as_json, render)


def _ended(config: CurateConfig, ending: Ending, kept: int) -> str:
    goal = f" of the {config.accept} that were asked for" if config.accept is not None else ""
    return f"{kept} tasks{goal}; it ended because {_BECAUSE[ending]}"


_BECAUSE = {
    Ending.CANDIDATES: "all candidates were made",
    Ending.ACCEPTED: "as many were kept",
    Ending.BUDGET: "its tokens were spent",
    Ending.STOPPED: "it was stopped",
}
