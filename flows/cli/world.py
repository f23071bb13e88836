"""`touchstone world`: build and inspect the corpus."""

from typing import Annotated

import typer

from flows.cli.console import Json, draw, emit, err, out
from flows.cli.render import table
from infra.settings import Settings
from pipeline.corpora import World, build_world, describe, load_world
from pipeline.corpora import page as find_page
from schemas.world import Document

app = typer.Typer(no_args_is_help=True)

Name = Annotated[str, typer.Option("--world", help="`atlas`, or a JSONL or Parquet file of your own documents.")]


@app.command()
def build(as_json: Json = False) -> None:
    """Compile the default world, atlas, from the installed source packages.

    Example: `touchstone world build`
    """
    with err.status("compiling atlas"):
        world = build_world("atlas", Settings.from_env().cache)
    _describe(world, as_json)


@app.command()
def show(
    page: Annotated[str | None, typer.Argument(help="Title or id of a page; without one, the world itself.")] = None,
    world: Name = "atlas",
    as_json: Json = False,
) -> None:
    """What a world holds, or one of its pages. The first use of atlas builds it.

    Example: `touchstone world show Niger`
    """
    with err.status("loading the world"):
        loaded = load_world(world, Settings.from_env().cache)
    if page is None:
        _describe(loaded, as_json)
    else:
        _show_page(find_page(loaded, page), as_json)


def _show_page(document: Document, as_json: bool) -> None:
    def render() -> None:
        out.print(document.title, style="bold")
        out.print(document.text, highlight=False)

    emit(document.model_dump(mode="json"), as_json, render)


def _describe(world: World, as_json: bool) -> None:
    about = describe(world)

    def render() -> None:
        out.print(f"{about['name']}  {about['hash']}  {about['pages']:,} pages  {about['facts']:,} facts")
        for title in (name for name in ("relations", "sources") if about[name]):
            rows = about[title]
            columns = list(rows[0])
            draw(table(title, columns, [["" if row[c] is None else row[c] for c in columns] for row in rows]))
        draw(table("pages by type", ("type", "pages"), list(about["types"].items())))
        draw(table("build", ("count", "value"), list(about["report"].items())))

    emit(about, as_json, render)
