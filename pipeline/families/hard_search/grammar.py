"""English for a query, and the frames a question is put in. `parse.py` reads it back.

A relation's own `clue` says one clue: "borders Mali". Its end may be a name, an interval ("between 1 and 2 km²"), a
description ("the country that has Niamey as its capital": only one fits) or a class ("a country that borders Chad").
A long end goes last: "has as its capital a city that ...". An end that is said to be another's is shared with it: "has the
same currency as Niger".
"""

import re
from dataclasses import dataclass

from pipeline.corpora.pages import join, say_band
from pipeline.corpora.world import World
from schemas.query import Band, Clue, EntityRef, Query
from schemas.world import Relation


@dataclass(frozen=True, slots=True)
class Frame:
    """`opening` + clues + `closing`, with {noun} and {a_noun} filled in; every clue is `item`, joined by `between`.

    `between` is `None` for "A, B and C". `nested` says whether a clue may hold a description of several clues: in a
    running list one could not tell where it ends.
    """

    opening: str
    closing: str
    item: str = "{clue}"
    between: str | None = None
    nested: bool = False


FRAMES = (
    Frame("Which {noun} ", "? Give the name of the {noun}."),
    Frame("What is the name of the {noun} that ", "?"),
    Frame("Name the {noun} that ", "."),
    Frame("One {noun} meets all of these conditions: ", ". What is the name of this {noun}?", "it {clue}", "; ", True),
    Frame("Exactly one {noun} fits this description. ", " What is the name of this {noun}?", "It {clue}.", " ", True),
)

END = "{}"
"""Stands for the end in a template."""


def question(world: World, query: Query, frame: Frame, as_of: str | None) -> str:
    """The question in this frame. `as_of` is the year that dated facts are true of; `None` where none is asked about."""
    clues = [say(world, clue) for clue in query.clues]
    items = [frame.item.format(clue=clue) for clue in clues]
    told = join(items) if frame.between is None else frame.between.join(items)
    words = {"noun": query.type, "a_noun": with_article(query.type)}
    text = frame.opening.format(**words) + told + frame.closing.format(**words)
    return text if as_of is None else dated(text, as_of)


def dated(text: str, year: str) -> str:
    return f"As of {year}, {text[0].lower()}{text[1:]}"


def say(world: World, clue: Clue) -> str:
    """One clue as the words after "that": "borders Mali"."""
    relation = world.relations[clue.relation]
    if (other := sharer(clue)) is not None and relation.shared_clue is not None:
        return relation.shared_clue.replace("{s}", world.entities[other].name)
    template = template_of(relation, clue.inverse)
    if isinstance(clue.target, Query):
        template = for_long_ends(template) or template
    return template.replace(END, say_end(world, clue))


def say_end(world: World, clue: Clue) -> str:
    match clue.target:
        case Band(low=low, high=high):
            return say_band(low, high, world.relations[clue.relation].unit)
        case EntityRef(entity=entity):
            return world.entities[entity].name
        case Query() as inner:
            noun = f"the {inner.type}" if len(world.possible(inner)) == 1 else with_article(inner.type)
            return f"{noun} that {join([say(world, c) for c in inner.clues])}"


def template_of(relation: Relation, inverse: bool) -> str:
    """The relation's clue in one direction, with `END` where its end stands."""
    if not inverse:
        return relation.clue.replace("{o}", END)
    assert relation.inverse_clue is not None, f"{relation.name} is never asked from its far end"
    return relation.inverse_clue.replace("{s}", END)


def asked_inversely(relation: Relation) -> bool:
    """Whether the relation has a clue of its own from its far end; a symmetric one, such as borders, says it twice."""
    return relation.inverse_clue is not None and relation.inverse_clue.replace("{s}", "{o}") != relation.clue


def takes_description(relation: Relation, inverse: bool) -> bool:
    """Whether its end may be given as "the country that ..."."""
    return for_long_ends(template_of(relation, inverse)) is not None


def for_long_ends(template: str) -> str | None:
    """The template with its end last: "has {} as its capital" becomes "has as its capital {}". `None` where none is."""
    if template.endswith(END):
        return template
    moved = re.fullmatch(r"(\w+) \{\} ((?:as|among) .+)", template)
    return f"{moved[1]} {moved[2]} {END}" if moved else None


def sharer(clue: Clue) -> str | None:
    """The entity of which the same fact has the same end: in "has the same currency as Niger" it is Niger."""
    inner = clue.target
    if clue.inverse or not isinstance(inner, Query) or len(inner.clues) != 1:
        return None
    only = inner.clues[0]
    back = only.inverse and only.relation == clue.relation
    return only.target.entity if back and isinstance(only.target, EntityRef) else None


def fits(query: Query, frame: Frame) -> bool:
    """Whether a reader can tell where each description of this query ends."""
    inner = [c.target for c in query.clues if isinstance(c.target, Query)]
    if frame.nested:
        return all(fits_inside(q) for q in inner)
    return all(ends_alone(q) for q in inner) and all(short(c) for c in query.clues[:-1])


def fits_inside(query: Query) -> bool:
    """A description within a description stands last and has one clue."""
    return all(short(c) for c in query.clues[:-1]) and (
        not isinstance(last := query.clues[-1].target, Query) or ends_alone(last)
    )


def short(clue: Clue) -> bool:
    """Whether nothing in the clue could take in what follows it."""
    return not isinstance(clue.target, Query) or sharer(clue) is not None


def ends_alone(query: Query) -> bool:
    """One clue, and so on down: what follows cannot be read as part of it."""
    return len(query.clues) == 1 and (not isinstance(t := query.clues[0].target, Query) or ends_alone(t))


def with_article(noun: str) -> str:
    """ "a country", "an element", "a US state", "a unit"."""
    vowel = noun[:1].lower() in "aeiou" and not noun.startswith(("US", "UK", "U.S.", "unit", "uni", "eu", "Eu", "one"))
    return f"{'an' if vowel else 'a'} {noun}"
