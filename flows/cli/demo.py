"""`touchstone demo`: the main job on the embedded default, shown step by step."""

import asyncio
import time
from typing import Annotated

import typer
from datasets import disable_progress_bars, load_dataset  # type: ignore[import-untyped]

from flows.cli.console import draw, err, out, progress_bars
from flows.cli.couple import play, tell
from flows.cli.local import curated
from flows.cli.render import funnel_table, table, task_panel
from infra.settings import Settings
from infra.store import Store
from pipeline import curate as pipeline
from pipeline.release import Release, own
from rl.engines import Engines
from schemas.config import CurateConfig
from schemas.rounds import RoundsConfig
from schemas.row import Kept, Rejected
from schemas.task import FAMILIES

NAMES = {"types": ["country", "US state", "element"], "min_clues": 3, "max_clues": 3}
"""What the starter has names for."""
BY_HEART = {"p0": 0.05, "p1": 0.6, "alpha": 0.2, "beta": 0.2, "limit": 4}
"""A short test of that: a model this small knows none of it."""
ROUNDS = {
    "rounds": 2,
    "held_out_candidates": 240,
    "curate": {"family": "hard_search", "candidates": 360, "hard_search": NAMES, "triviality": BY_HEART},
    "train": {
        "minutes": 3,
        "rollout": {"slots": 128},
        "optimiser": {"rate": 3e-4, "warmup": 3},
        "reward": {"gamma": 0.8},
        "tools": {"replicas": 0},
    },
}


def demo(
    short: Annotated[bool, typer.Option("--short", help="Only the curation, of both families.")] = False,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Two rounds: curate, train, and let what the policy failed at decide what the second round makes.

    Example: `touchstone demo`
    """
    if short:
        curation(seed)
    else:
        loop(seed)


def loop(seed: int) -> None:
    """Held-out tasks first, then the rounds, then what they came to."""
    settings = Settings.from_env()
    started = time.monotonic()
    tell(play(RoundsConfig.model_validate({**ROUNDS, "seed": seed}), settings), settings)
    out.print(
        f"\n{(time.monotonic() - started) / 60:.1f} minutes\n"
        f"next:\n"
        f"  touchstone steer --dry-run           the plan that a third round would follow\n"
        f"  touchstone couple --rounds 3         the same with everything at its defaults\n"
        f"  touchstone demo --short              curation alone, with what is in a release\n"
        f"  make up                              then: prefect deployment run couple/rounds -p rounds=2 --watch",
        highlight=False,
    )


def curation(seed: int, candidates: int = 200) -> None:
    """Hard search and math from nothing, published, loaded back, and shown."""
    settings = Settings.from_env()
    store = Store(settings.store)
    runs, minutes = [], {}
    with Engines(settings) as engines:
        for family in FAMILIES:
            started = time.monotonic()
            err.rule(family)
            with progress_bars() as report:
                config = CurateConfig(family=family, candidates=candidates, seed=seed)
                where = settings.cache / "runs"
                done = curated(config, settings=settings, runs=where, store=store, engines=engines, report=report)
                runs.append(asyncio.run(done))
            minutes[family] = (time.monotonic() - started) / 60
    release = pipeline.publish(runs, store).release
    for name, steps in release.manifest.funnel.items():
        draw(funnel_table(name, steps))
    _load_back(release)
    _show_some(release)
    draw(table("minutes", ("family", "minutes"), [(family, f"{spent:.1f}") for family, spent in minutes.items()]))
    out.print(
        f"\nnext:\n"
        f"  touchstone show <task id>            a task with every certificate\n"
        f"  touchstone solve <task id> --watch   an attempt at it, turn by turn (hard search)\n"
        f"  touchstone replay <task id>          the task made again from its lineage\n"
        f"  touchstone train latest --minutes 8  the policy learns on this release\n"
        f"  touchstone curate hard_search --candidates 500 --seed 1\n"
        f"  make up                              then: prefect deployment run curate/hard-search --watch\n"
        f'  python -c "from datasets import load_dataset; print(load_dataset({release.url!r}, {FAMILIES[0]!r}))"',
        highlight=False,
    )


def _load_back(release: Release) -> None:
    disable_progress_bars()
    rows = []
    for family in release.manifest.funnel:
        data = load_dataset(
            "parquet", data_files=release.data_files(family), storage_options=release.store.storage_options
        )
        rows += [(family, split, data[split].num_rows, n) for split, n in release.splits(family).items()]
    draw(table(f"{release.url} loaded back", ("config", "split", "rows loaded", "rows in the manifest"), rows))


def _show_some(release: Release, count: int = 3) -> None:
    kept = [row for family in release.manifest.funnel for row in release.rows(family)]
    shown: list[Kept | Rejected] = [*kept[: count - 1], kept[-1], next(iter(release.rejected()))]
    for row in shown:
        draw(task_panel(row, own(row, release.certificates(row.task.task_id))))
