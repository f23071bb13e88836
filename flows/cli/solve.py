"""`touchstone solve`: one attempt at a task, turn by turn."""

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.console import Json, emit, err, merged, out, read_json
from flows.cli.tasks import TaskId, Where, open_release
from flows.cli.trajectory import TurnLog
from infra.settings import Settings
from pipeline import replay as replays
from pipeline.curate import corpus
from pipeline.grading import grade
from pipeline.sampling import NOBODYS_FAILURE
from rl.rollout import unwatched
from rl.solve import ORACLE, SolveOptions
from rl.solve import solve as attempt
from schemas.answer import canonical_answer
from schemas.config import Served


def solve(
    task_id: TaskId,
    policy: Annotated[
        str, typer.Option(help="`oracle`, which follows a script; or a model: `starter`, `memory`, a folder.")
    ] = "oracle",
    url: Annotated[str | None, typer.Option(help="Where the model is served already: http://host:8000/v1.")] = None,
    seed: Annotated[int | None, typer.Option(help="Equal seeds make equal attempts (0).")] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Show every turn as it happens.")] = False,
    full: Annotated[bool, typer.Option("--full", help="With --watch: every line whole.")] = False,
    release: Where = "latest",
    config: Annotated[Path | None, typer.Option(help="JSON file of further `SolveOptions` settings.")] = None,
    as_json: Json = False,
) -> None:
    """One attempt at a task: what the policy called, what it was shown, and whether its answer is right.

    Exit code 1 where the model or a tool broke; a wrong answer is no error.

    Example: `touchstone solve 0f3a9c1d2b4e5f60 --policy oracle --watch`
    """
    options = SolveOptions.model_validate(merged(read_json(config) if config else {}, {"seed": seed}))
    settings = Settings.from_env()
    opened = open_release(release)
    task = opened.find(task_id).task
    world = corpus(replays.config_of(task, opened), settings.cache)
    log = TurnLog(err if as_json else out, full=full)
    if watch:
        log.begin(task, options.tools.servers)
    if policy != ORACLE and url is None:
        err.print(f"{policy}: starting its server, half a minute or more", style="dim")
    done = attempt(
        task,
        Served(model=policy, url=url),
        options,
        world=world,
        settings=settings,
        watch=log.turn if watch else unwatched,
    )
    verdict = None if done.answer is None else grade(task.answer, done.answer)
    value = {
        **done.model_dump(mode="json"),
        "gold": canonical_answer(task.answer),
        "verdict": verdict and verdict.verdict.value,
    }
    emit(value, as_json, lambda: log.end(done, canonical_answer(task.answer), verdict))
    if done.stop in NOBODYS_FAILURE:
        raise typer.Exit(1)
