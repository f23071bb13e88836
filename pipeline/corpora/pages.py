"""Pages from facts: one sentence a relation, one line a sentence, so that false facts can be told as well as true ones."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from schemas.base import content_hash
from schemas.world import Document, Entity, Fact, Object, Relation, Source


def render(
    entities: Iterable[Entity], relations: Iterable[Relation], facts: Iterable[Fact], sources: Sequence[Source]
) -> tuple[list[Document], list[Fact]]:
    """One page an entity, and the facts with the span of the sentence that states each.

    A page opens with what the entity is; then come its facts in the order relations are declared. A dated sentence opens
    with the date of its source. Facts come back in page order.
    """
    by_id = {e.id: e for e in entities}
    declared = {r.name: r for r in relations}
    rank = {name: i for i, name in enumerate(declared)}
    said: dict[str, dict[str, list[Fact]]] = defaultdict(lambda: defaultdict(list))
    for fact in facts:
        said[fact.subject][fact.relation].append(fact)
    documents: list[Document] = []
    placed: list[Fact] = []
    for entity in by_id.values():
        lines = [f"{_opened(entity.name)} is {_article(entity.type)} {entity.type}."]
        at = len(lines[0]) + 1
        links: dict[str, None] = {}
        for name, group in sorted(said[entity.id].items(), key=lambda item: rank[item[0]]):
            line = sentence(entity, declared[name], [f.object for f in group], by_id, sources[group[0].source])
            placed += [Fact(f.subject, f.relation, f.object, f.source, at, at + len(line)) for f in group]
            links.update(dict.fromkeys(f.object for f in group if isinstance(f.object, str)))
            lines.append(line)
            at += len(line) + 1
        text = "\n".join(lines)
        documents.append(
            Document(id=entity.id, title=entity.title, text=text, links=tuple(links), hash=content_hash(text))
        )
    return documents, placed


def sentence(
    subject: Entity, relation: Relation, objects: Sequence[Object], entities: Mapping[str, Entity], source: Source
) -> str:
    """The sentence a page states these facts with; "[one|several]" in its grammar chooses by the number of objects."""
    names = [entities[o].name if isinstance(o, str) else say_number(o, relation.unit) for o in objects]
    grammar = _CHOICE.sub(lambda choice: choice[1 if len(objects) == 1 else 2], relation.sentence)
    told = grammar.format(s=subject.name, o=join(names))
    if relation.dated and source.as_of:
        told = f"As of {source.as_of[:4]}, {told}"
    return _opened(told[:-1] if told.endswith("..") else told)


def join(names: Sequence[str]) -> str:
    """ "A", "A and B", "A, B and C"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def say_number(value: float, unit: str | None) -> str:
    """A number with its unit, as sentences write it: "1,267,000 km²", "41 years", "1962" for a year."""
    if unit == "year":
        return f"{value:.0f}"
    digits = f"{int(value):,}" if float(value).is_integer() else f"{value:,}"
    return digits if unit is None else digits + ("" if unit in _TIGHT else " ") + unit


def say_band(low: float | None, high: float | None, unit: str | None) -> str:
    """An interval where a sentence would have its number: "between 1 and 2 km²", "3 km² or more", "1901 or earlier"."""
    more, less = {"year": ("later", "earlier"), "people": ("more", "fewer")}.get(unit or "", ("more", "less"))
    if low is not None and high is not None:
        first, last = say_number(low, "year" if unit == "year" else None), say_number(high, unit)
        return f"{'a year ' if unit == 'year' else ''}between {first} and {last}"
    if low is not None:
        return f"{say_number(low, unit)} or {more}"
    assert high is not None
    return f"{say_number(high, unit)} or {less}"


_CHOICE = re.compile(r"\[([^|\]]*)\|([^\]]*)\]")
_TIGHT = frozenset({"%", "°"})


def _opened(text: str) -> str:
    return text[:1].upper() + text[1:]


def _article(noun: str) -> str:
    return "an" if noun[:1].lower() in "aeio" else "a"
