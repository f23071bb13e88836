"""What a corpus consists of: entities, their pages, relations and sourced facts."""

from dataclasses import dataclass

from schemas.base import Record

Object = str | float
"""The far end of a fact: an entity id, or a number in the relation's unit (years are numbers)."""


class Source(Record):
    """Where facts come from. `as_of` is an ISO date or year, `None` where the source states none."""

    package: str
    version: str
    licence: str
    as_of: str | None = None


class Entity(Record):
    """A thing with a page. `title` is unique in its world; `name` is how a sentence says it; `aliases` are other correct answers."""

    id: str
    type: str
    title: str
    name: str
    aliases: tuple[str, ...] = ()


class Document(Record):
    """The page of one entity, or one document of a user's own corpus. `links` are document ids."""

    id: str
    title: str
    text: str
    links: tuple[str, ...] = ()
    hash: str


class Relation(Record):
    """A declared kind of fact, with the grammar that says it.

    `functional`: a subject has at most one object. `complete`: every entity of `subject_type` has all of its objects
    recorded, so absence is a denial. `dated`: the value moves with time, so a question must state `Source.as_of`.
    `sentence` says it on a page, with {s} and {o} (several objects are joined as "A, B and C"). `clue` completes
    "the <type> that ...", with {o}; `inverse_clue` does so for the object, with {s}. `shared_clue` says that the subject has
    an object in common with {s}: "has the same currency as {s}". `None` means never asked that way.
    """

    name: str
    subject_type: str
    object_type: str | None = None
    """Type of the object entity; `None` for a number."""
    unit: str | None = None
    """Unit of a number: "people", "km²", "year"; `None` where the number is a plain count or the object an entity."""
    functional: bool
    complete: bool
    dated: bool = False
    sentence: str
    clue: str
    inverse_clue: str | None = None
    shared_clue: str | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """One sourced statement. `source` indexes the world's sources; characters `start:end` of the subject's page state it."""

    subject: str
    relation: str
    object: Object
    source: int
    start: int = 0
    end: int = 0
