"""Rejects a task whose evidence is not word for word in its documents, or leaves a clue unsaid."""

from collections.abc import Sequence

from pipeline.binding import facts_behind, names_of
from pipeline.corpora.pages import say_number
from pipeline.corpora.world import World
from pipeline.filters.base import Certifier, Filter, need
from pipeline.filters.form import AS_OF, RELATIVE_TIME
from pipeline.filters.leaks import mentions
from schemas.answer import EntityAnswer
from schemas.certificate import Certificate
from schemas.query import Clue, Query
from schemas.task import Evidence, Task
from schemas.world import Fact

VERSION = "1"


def evidence(task: Task, world: World) -> Certificate:
    """Every quote stands at its span of the very text it was read from, and every clue has a quote that states its fact.

    "Last year" in a quote means the year its page was written in, which no reader knows.
    """
    certify = Certifier(task, "evidence", VERSION)
    if not isinstance(task.constraints, Query) or not isinstance(task.answer, EntityAnswer):
        raise TypeError(f"a {task.constraints.kind} with an {task.answer.kind} answer has no page to be read from")
    for item in task.evidence:
        if fault := _misquoted(item, world):
            return certify.reject(fault, document=item.document, start=item.start, quote=item.quote[:200])
    for clue in task.constraints.clues:
        if (unsaid := _unsaid(clue, task.answer.entity, task.evidence, world)) is not None:
            return certify.reject("clue_without_evidence", clue=unsaid.model_dump(mode="json"))
    return certify.keep(quotes=len(task.evidence))


def _misquoted(item: Evidence, world: World) -> str | None:
    document = world.documents.get(item.document)
    if document is None:
        return "document_missing"
    if document.hash != item.document_hash:
        return "document_changed"
    if document.text[item.start : item.end] != item.quote:
        return "misquoted"
    return "relative_time" if RELATIVE_TIME.search(item.quote) and not AS_OF.search(item.quote) else None


def _unsaid(clue: Clue, entity: str, quotes: Sequence[Evidence], world: World) -> Clue | None:
    """The clue, or one nested in it, for which no fact about `entity` is stated; `None` when all are.

    A nested clue is said when one and the same entity is stated to be the target and to satisfy the inner clues.
    """
    missing: Clue = clue
    for fact, end in facts_behind(clue, entity, world):
        if not any(_states(quote, fact, world) for quote in quotes):
            continue
        if not isinstance(clue.target, Query):
            return None
        inner = [_unsaid(nested, end, quotes, world) for nested in clue.target.clues]
        if (first := next((found for found in inner if found is not None), None)) is None:
            return None
        missing = first
    return missing


def _states(quote: Evidence, fact: Fact, world: World) -> bool:
    """Whether the quote covers the fact's sentence on its subject's page and names both its ends."""
    if quote.document != fact.subject or quote.end <= fact.start or fact.end <= quote.start:
        return False
    if isinstance(fact.object, str):
        said = any(mentions(quote.quote, name) for name in names_of(fact.object, world))
    else:
        said = mentions(quote.quote, say_number(fact.object, world.relations[fact.relation].unit))
    return said and any(mentions(quote.quote, name) for name in names_of(fact.subject, world))


FILTER = Filter("evidence", VERSION, lambda task, given: evidence(task, need(given.world, "world")))
