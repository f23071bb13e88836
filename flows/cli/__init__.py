"""The `touchstone` command: one file a group of commands, no decision of its own."""

import typer

from flows.cli import curate, demo, policy, tasks, world
from flows.cli.console import run

app = typer.Typer(
    help="Verified, hard, tool-requiring questions; an agent trained on them; and the loop between the two.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
app.add_typer(world.app, name="world", help="Build and inspect the corpus that questions are made from.")
app.add_typer(policy.app, name="policy", help="Build the starter policy.")
app.command("curate")(curate.curate)
app.command("show")(tasks.show)
app.command("replay")(tasks.replay)
app.command("grade")(tasks.grade_cases)
app.command("demo")(demo.demo)


def main() -> None:
    run(app)
