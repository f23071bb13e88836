"""A world's facts as tables, and its two readings of a query as joins: a second way to every answer.

Shares no code with `World.certain` and `World.possible` on purpose. Sets are faster to sample with; this is there to disagree.
"""

import polars as pl

from pipeline.corpora.world import World
from schemas.query import Band, Clue, EntityRef, Query


class Tables:
    """Entities (`id`, `type`), facts (`subject`, `relation`, `entity` or `number`) and gaps (`subject`, `relation`)."""

    def __init__(self, world: World) -> None:
        entities = [(e.id, e.type) for e in world.entities.values()]
        facts = [
            (f.subject, f.relation, f.object if isinstance(f.object, str) else None, _number(f.object))
            for f in world.facts
        ]
        text, number = pl.String, pl.Float64
        self.entities = pl.DataFrame(entities, {"id": text, "type": text}, orient="row")
        columns = {"subject": text, "relation": text, "entity": text, "number": number}
        self._facts = pl.DataFrame(facts, columns, orient="row").partition_by("relation", as_dict=True)
        self._no_facts = pl.DataFrame(schema=columns)
        self._gaps = pl.DataFrame(sorted(world.gaps), {"subject": text, "relation": text}, orient="row")
        self._declared = world.relations

    def certain(self, query: Query) -> frozenset[str]:
        """Entities that facts prove to satisfy every clue."""
        return frozenset(self._certain(query)["id"])

    def possible(self, query: Query) -> frozenset[str]:
        """Entities that no fact refutes."""
        return frozenset(self._possible(query)["id"])

    def _certain(self, query: Query) -> pl.DataFrame:
        found = self._of_type(query.type)
        for clue in query.clues:
            ends = self._certain(clue.target) if isinstance(clue.target, Query) else None
            found = found.join(self._matching(clue, ends), on="id", how="semi")
        return found

    def _possible(self, query: Query) -> pl.DataFrame:
        found = self._of_type(query.type)
        for clue in query.clues:
            ends = self._possible(clue.target) if isinstance(clue.target, Query) else None
            matching = self._matching(clue, ends)
            if not clue.inverse:
                refuted = self._closed(clue.relation).join(matching, on="id", how="anti")
                found = found.join(refuted, on="id", how="anti")
            elif self._ends(clue, ends).join(self._closed(clue.relation), on="id", how="anti").is_empty():
                found = found.join(matching, on="id", how="semi")
        return found

    def _matching(self, clue: Clue, ends: pl.DataFrame | None) -> pl.DataFrame:
        """Entities with a fact that leads to the clue's target (from it, for an inverse clue)."""
        facts = self._facts.get((clue.relation,), self._no_facts)
        if isinstance(clue.target, Band):
            low, high = clue.target.low, clue.target.high
            inside = pl.lit(True) if low is None else pl.col("number") >= low
            inside &= pl.lit(True) if high is None else pl.col("number") <= high
            return facts.filter(pl.col("number").is_not_null() & inside).select(id="subject")
        near, far = ("entity", "subject") if clue.inverse else ("subject", "entity")
        return facts.join(self._ends(clue, ends), left_on=far, right_on="id", how="semi").select(id=near).drop_nulls()

    def _ends(self, clue: Clue, ends: pl.DataFrame | None) -> pl.DataFrame:
        if isinstance(clue.target, EntityRef):
            return pl.DataFrame({"id": [clue.target.entity]})
        assert ends is not None
        return ends.select("id")

    def _closed(self, relation: str) -> pl.DataFrame:
        """Entities for which no unknown object of the relation can exist."""
        declared = self._declared[relation]
        known = self._facts.get((relation,), self._no_facts).select(id="subject").unique()
        if not declared.complete:
            return known if declared.functional else known.clear()
        gaps = self._gaps.filter(pl.col("relation") == relation)
        if declared.functional:
            gaps = gaps.join(known, left_on="subject", right_on="id", how="anti")
        return self.entities.join(gaps, left_on="id", right_on="subject", how="anti").select("id")

    def _of_type(self, type: str) -> pl.DataFrame:
        return self.entities.filter(pl.col("type") == type).select("id")


def _number(value: str | float) -> float | None:
    return None if isinstance(value, str) else float(value)
