"""What a world holds, as plain values for the command line, and a page by its title."""

from collections import Counter
from typing import Any

from pipeline.corpora.world import World
from schemas.errors import TouchstoneError
from schemas.world import Document


class PageError(TouchstoneError):
    """A page that was asked for and does not exist."""


def describe(world: World) -> dict[str, Any]:
    """JSON-ready: `name`, `hash`, `pages`, `entities`, `facts`, `types` (count each), `relations` (see `relation_rows`),
    `sources` and the build `report`."""
    return {
        "name": world.name,
        "hash": world.hash,
        "pages": len(world.documents),
        "entities": len(world.entities),
        "facts": len(world.facts),
        "types": {type: len(world.of_type(type)) for type in world.types},
        "relations": relation_rows(world),
        "sources": [s.model_dump(mode="json") for s in world.sources],
        "report": dict(world.report),
    }


def relation_rows(world: World) -> list[dict[str, Any]]:
    """A row a relation: `relation`, `subject`, `object` (type or unit), `facts`, `gaps` and what is `declared` of it."""
    facts = Counter(f.relation for f in world.facts)
    gaps = Counter(relation for _, relation in world.gaps)
    return [
        {
            "relation": r.name,
            "subject": r.subject_type,
            "object": r.object_type or r.unit or "number",
            "facts": facts[r.name],
            "gaps": gaps[r.name],
            "declared": " ".join(flag for flag in ("functional", "complete", "dated") if getattr(r, flag)),
        }
        for r in world.relations.values()
    ]


def page(world: World, title_or_id: str) -> Document:
    """The page with this id or this title, in any case. Raises `PageError` with the titles a search finds for it."""
    if title_or_id in world.documents:
        return world.documents[title_or_id]
    wanted = title_or_id.strip().casefold()
    for document in world.documents.values():
        if document.title.casefold() == wanted:
            return document
    near = ", ".join(hit.title for hit in world.index.search(title_or_id, 3))
    raise PageError(
        f"{title_or_id}: no such page; " + (f"near it are {near}" if near else "search for part of its title")
    )
