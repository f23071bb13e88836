"""`touchstone policy`: the starter policy's recipe."""

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from flows.cli.console import Json, emit, err, out, read_json
from infra.settings import ASSETS, Settings, folder

app = typer.Typer(no_args_is_help=True)


@app.callback()
def policy() -> None:
    """The starter policy: small enough to train and serve on a laptop."""


@app.command()
def build(
    out_dir: Annotated[str, typer.Option("--out", help="The folder where the model goes.")] = str(ASSETS / "starter"),
    config: Annotated[Path | None, typer.Option(help="JSON file of `BuildConfig` settings.")] = None,
    as_json: Json = False,
) -> None:
    """Train the starter policy from nothing: tokenizer, oracle episodes on counterfactual worlds, supervised learning.

    Takes up to two hours on two cores. The committed weights under `data/starter/` were made by it.

    Example: `touchstone policy build --out mine`
    """
    target = folder("--out", out_dir)
    from rl.starter.build import BuildConfig, build  # torch: only this command waits for it

    checked = BuildConfig.model_validate(read_json(config) if config else {})
    with Progress(console=err) as bars:
        bar = bars.add_task("starter", total=1.0)
        score = build(
            checked,
            target,
            Settings.from_env().cache,
            lambda what, share: bars.update(bar, description=what, completed=share),
        )
    emit(
        {"folder": str(target), "pass_at_1": score.rate, "n": score.n},
        as_json,
        lambda: out.print(f"{target}: validation pass@1 {score.rate:.2f} of {score.n} attempts"),
    )
