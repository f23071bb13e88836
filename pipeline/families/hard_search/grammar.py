"""English for a query, and the frames a question is put in. `parse.py` reads it back.

A relation's own `clue` says one clue: "borders Mali". Its end may be a name, an interval ("between 1 and 2 km²"), a
description ("the country that has Niamey as its capital": only one fits) or a class ("a country that borders Chad").
"""

from dataclasses import dataclass

from pipeline.corpora.pages import join, say_band
from pipeline.corpora.world import World
from schemas.query import Band, Clue, EntityRef, Query


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
    Frame("Find {a_noun} from what is known about it. ", " What is the name of this {noun}?", "It {clue}.", " ", True),
)

SAME = "the same {noun} as {name}"
"""A description by the very relation it is the end of: "uses the same currency as Niger"."""


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
    end = say_end(world, clue)
    relation = world.relations[clue.relation]
    if clue.inverse:
        assert relation.inverse_clue is not None
        return relation.inverse_clue.replace("{s}", end)
    return relation.clue.replace("{o}", end)


def say_end(world: World, clue: Clue) -> str:
    match clue.target:
        case Band(low=low, high=high):
            return say_band(low, high, world.relations[clue.relation].unit)
        case EntityRef(entity=entity):
            return world.entities[entity].name
        case Query() as inner:
            if (same := same_as(world, clue)) is not None:
                return SAME.format(noun=inner.type, name=world.entities[same].name)
            noun = f"the {inner.type}" if len(world.possible(inner)) == 1 else with_article(inner.type)
            return f"{noun} that {join([say(world, c) for c in inner.clues])}"


def same_as(world: World, clue: Clue) -> str | None:
    """The entity `s` where the end is described as the end of the same fact of `s`; else `None`."""
    inner = clue.target
    if (
        not isinstance(inner, Query)
        or len(inner.clues) != 1
        or clue.inverse
        or not world.relations[clue.relation].functional
    ):
        return None
    only = inner.clues[0]
    back = only.inverse and only.relation == clue.relation and isinstance(only.target, EntityRef)
    return only.target.entity if back and isinstance(only.target, EntityRef) else None


def fits(query: Query, frame: Frame) -> bool:
    """Whether a reader can tell where each description of this query ends."""
    inner = [c.target for c in query.clues if isinstance(c.target, Query)]
    if frame.nested:
        return all(fits_inside(q) for q in inner)
    return all(ends_alone(q) for q in inner) and not any(isinstance(c.target, Query) for c in query.clues[:-1])


def fits_inside(query: Query) -> bool:
    """A description within a description stands last and has one clue."""
    return all(isinstance(c.target, EntityRef | Band) for c in query.clues[:-1]) and (
        not isinstance(last := query.clues[-1].target, Query) or ends_alone(last)
    )


def ends_alone(query: Query) -> bool:
    """One clue, and so on down: what follows cannot be read as part of it."""
    return len(query.clues) == 1 and (not isinstance(t := query.clues[0].target, Query) or ends_alone(t))


def with_article(noun: str) -> str:
    """ "a country", "an element", "a US state", "a unit"."""
    vowel = noun[:1].lower() in "aeiou" and not noun.startswith(("US", "UK", "U.S.", "unit", "uni", "eu", "Eu", "one"))
    return f"{'an' if vowel else 'a'} {noun}"
