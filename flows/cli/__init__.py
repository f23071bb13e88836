"""The `touchstone` command: one file a group of commands, no decision of its own."""

import typer

from flows.cli.console import run
from flows.cli.couple import couple, lineage, steer
from flows.cli.curate import curate
from flows.cli.demo import demo
from flows.cli.evaluate import evaluate
from flows.cli.policy import app as policy
from flows.cli.solve import solve
from flows.cli.tasks import grade_cases, replay, show
from flows.cli.tools import tools
from flows.cli.train import report, train
from flows.cli.world import app as world

app = typer.Typer(
    help="Verified, hard, tool-requiring questions; an agent trained on them; and the loop between the two.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
app.add_typer(world, name="world", help="Build and inspect the corpus that questions are made from.")
app.add_typer(policy, name="policy", help="Build the starter policy.")
app.command("curate")(curate)
app.command("solve")(solve)
app.command("evaluate")(evaluate)
app.command("train")(train)
app.command("report")(report)
app.command("couple")(couple)
app.command("steer")(steer)
app.command("lineage")(lineage)
app.command("tools")(tools)
app.command("show")(show)
app.command("replay")(replay)
app.command("grade")(grade_cases)
app.command("demo")(demo)


def main() -> None:
    run(app)
