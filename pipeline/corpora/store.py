"""Worlds on disk: Parquet tables, the search index and `world.json`, which is written last.

A world is staged beside its place and renamed into it, so a reader sees a whole one or none, and two builders at once
agree: whoever comes second takes what is there.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import polars as pl

from infra import search
from infra.search import SearchIndex
from pipeline.corpora.world import World
from schemas.errors import TouchstoneError
from schemas.world import Document, Entity, Fact, Relation, Source

LAYOUT = f"1/{search.LAYOUT}"
"""Changes whenever stored worlds must be built anew though their content is the same."""


class WorldError(TouchstoneError):
    """A stored world that cannot be used."""


def save(world: World, path: Path, recipe: Mapping[str, str]) -> None:
    """Store the world at `path`; `recipe` says what it was made of. Keeps a complete world that is there already.

    Raises `WorldError` where it cannot be written.
    """
    stage = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    try:
        stage.mkdir(parents=True)
        for name, table in _tables(world).items():
            table.write_parquet(stage / f"{name}.parquet")
        SearchIndex.build(world.documents.values(), stage / "index")
        (stage / "world.json").write_text(json.dumps(_header(world, recipe), indent=1, ensure_ascii=False), "utf-8")
        if path.exists() and header(path) is None:
            shutil.rmtree(path, ignore_errors=True)
        try:
            os.rename(stage, path)
        except OSError:
            if header(path) is None:
                raise
    except (OSError, pl.exceptions.PolarsError, ValueError) as error:  # the search index says ValueError of a full disk
        raise WorldError(f"{path}: cannot be written: {error}; make room there or name another place") from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def header(path: Path) -> dict[str, Any] | None:
    """`world.json` of a stored world, `None` where there is no complete one."""
    try:
        content: dict[str, Any] = json.loads((path / "world.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return content


def load(path: Path) -> World:
    """The world stored at `path`. Raises `WorldError` where it is not whole."""
    about = header(path)
    if about is None:
        raise WorldError(f"{path}: no complete world here; run `touchstone world build`")
    try:
        tables = {name: pl.read_parquet(path / f"{name}.parquet") for name in _SCHEMAS}
        index = SearchIndex.open(path / "index")
    except Exception as error:
        raise WorldError(f"{path}: {error}; delete it and run `touchstone world build`") from error
    world = World(
        about["name"],
        entities=[
            Entity.model_construct(id=i, type=t, title=h, name=n, aliases=tuple(a))
            for i, t, h, n, a in tables["entities"].iter_rows()
        ],
        relations=[Relation.model_validate(r) for r in about["relations"]],
        facts=[
            Fact(subject, relation, entity if entity is not None else number, source, start, end)
            for subject, relation, entity, number, source, start, end in tables["facts"].iter_rows()
        ],
        documents=[
            Document.model_construct(id=i, title=t, text=x, links=tuple(k), hash=h)
            for i, t, x, k, h in tables["documents"].iter_rows()
        ],
        sources=[Source.model_validate(s) for s in about["sources"]],
        report=about["report"],
        gaps=[(s, r) for s, r in about["gaps"]],
        index=index,
        folder=path,
    )
    world.__dict__["hash"] = about["hash"]
    return world


@contextmanager
def folder_of(world: World) -> Iterator[Path]:
    """The folder that holds the world. One that is only in memory is stored for as long as the block runs."""
    if world.folder is not None:
        yield world.folder
        return
    with tempfile.TemporaryDirectory(prefix="touchstone-") as scratch:
        folder = Path(scratch) / "world"
        save(world, folder, {})
        yield folder


_TEXTS = pl.List(pl.String)
_SCHEMAS: dict[str, dict[str, Any]] = {
    "entities": {"id": pl.String, "type": pl.String, "title": pl.String, "name": pl.String, "aliases": _TEXTS},
    "facts": {
        "subject": pl.String,
        "relation": pl.String,
        "entity": pl.String,
        "number": pl.Float64,
        "source": pl.Int32,
        "start": pl.Int32,
        "end": pl.Int32,
    },
    "documents": {"id": pl.String, "title": pl.String, "text": pl.String, "links": _TEXTS, "hash": pl.String},
}


def _tables(world: World) -> dict[str, pl.DataFrame]:
    rows: dict[str, list[tuple[Any, ...]]] = {
        "entities": [(e.id, e.type, e.title, e.name, list(e.aliases)) for e in world.entities.values()],
        "facts": [
            (
                f.subject,
                f.relation,
                f.object if isinstance(f.object, str) else None,
                None if isinstance(f.object, str) else float(f.object),
                f.source,
                f.start,
                f.end,
            )
            for f in world.facts
        ],
        "documents": [(d.id, d.title, d.text, list(d.links), d.hash) for d in world.documents.values()],
    }
    return {name: pl.DataFrame(rows[name], schema=schema, orient="row") for name, schema in _SCHEMAS.items()}


def _header(world: World, recipe: Mapping[str, str]) -> dict[str, Any]:
    return {
        "name": world.name,
        "hash": world.hash,
        "recipe": dict(recipe),
        "relations": [r.model_dump(mode="json") for r in world.relations.values()],
        "sources": [s.model_dump(mode="json") for s in world.sources],
        "report": world.report,
        "gaps": sorted(world.gaps),
    }
