"""Units an answer may be stated in: a dimension and an exact factor to its base unit."""

import re
from fractions import Fraction
from typing import NamedTuple


class Unit(NamedTuple):
    """`factor` turns a number of this unit into the base unit of `dimension`."""

    dimension: str
    factor: Fraction


PLAIN = Unit("", Fraction(1))
_TABLE: dict[str, dict[str, str]] = {
    "length": {"mm": "1/1000", "cm": "1/100", "m": "1", "km": "1000",
               "in": "127/5000", "ft": "381/1250", "yd": "1143/1250", "mi": "201168/125"},
    "mass": {"mg": "1/1000000", "g": "1/1000", "kg": "1", "t": "1000", "oz": "45359237/1600000000", "lb": "45359237/100000000"},
    "time": {"ms": "1/1000", "s": "1", "min": "60", "h": "3600", "d": "86400", "wk": "604800"},
    "volume": {"ml": "1/1000", "cl": "1/100", "dl": "1/10", "l": "1"},
    "area": {"ha": "10000", "acre": "316160658/78125"},
    "dollar": {"$": "1", "cent": "1/100"},
    "euro": {"€": "1"},
    "pound sterling": {"£": "1"},
    "": {"%": "1/100"},
    "percent": {"percent": "1"},
    "degree": {"°": "1"},
    "celsius": {"°C": "1"},
    "fahrenheit": {"°F": "1"},
}  # fmt: skip
_UNITS = {symbol: Unit(d, Fraction(f)) for d, row in _TABLE.items() for symbol, f in row.items()}
_WORDS = {
    "millimeter": "mm", "centimeter": "cm", "meter": "m", "kilometer": "km",
    "inch": "in", "foot": "ft", "feet": "ft", "yard": "yd", "mile": "mi",
    "milligram": "mg", "gram": "g", "kilogram": "kg", "kilo": "kg", "tonne": "t", "ounce": "oz", "pound": "lb", "lbs": "lb",
    "millisecond": "ms", "second": "s", "sec": "s",
    "minute": "min", "mins": "min", "hour": "h", "hr": "h", "hrs": "h", "day": "d", "week": "wk",
    "milliliter": "ml", "mL": "ml", "centiliter": "cl", "deciliter": "dl", "liter": "l", "L": "l", "hectare": "ha",
    "dollar": "$", "USD": "$", "US$": "$", "euro": "€", "EUR": "€", "GBP": "£", "degree": "°", "deg": "°",
    "celsius": "°C", "degree celsius": "°C", "degrees celsius": "°C",
    "fahrenheit": "°F", "degree fahrenheit": "°F", "degrees fahrenheit": "°F",
    "per cent": "percent", "years old": "year", "year old": "year",
}  # fmt: skip
_PLURALS = {
    "people": "person",
    "children": "child",
    "men": "man",
    "women": "woman",
    "inches": "inch",
    "boxes": "box",
    "feet": "feet",
}
_POWER = re.compile(r"(?P<base>.*?[^\W\d])\s*(?:\^\s*[({]?\s*(?P<n>[23])\s*[)}]?|(?P<m>[23]))")
_SPELT = re.compile(r"(?P<power>square|sq\.?|cubic)\s+(?P<base>.+)", re.IGNORECASE)


def unit(text: str) -> Unit:
    """The unit that `text` names. A word outside the table is a unit of its own: it equals its plural and nothing else.

    `%` is the number 1/100, so 10 % is 0.1; `percent` is a unit, for questions that ask how many percent.
    """
    text = " ".join(text.split())
    if not text:
        return PLAIN
    for sign in ("/", " per "):
        if sign in text:
            over, under = (unit(part) for part in text.rsplit(sign, 1))
            return Unit(f"{over.dimension}/{under.dimension}", over.factor / under.factor)
    powered = _POWER.fullmatch(text)
    if powered:
        return _raised(_simple(powered["base"]), int(powered["n"] or powered["m"]))
    spelt = _SPELT.fullmatch(text)
    if spelt:
        return _raised(_simple(spelt["base"]), 3 if spelt["power"].lower() == "cubic" else 2)
    return _simple(text)


def _raised(base: Unit, power: int) -> Unit:
    if base.dimension == "length":
        # A litre is the base of volume, and a cubic metre holds a thousand.
        return Unit("area", base.factor**2) if power == 2 else Unit("volume", base.factor**3 * 1000)
    return Unit(f"{base.dimension}^{power}", base.factor**power)


def _simple(text: str) -> Unit:
    text = text.rstrip(".")
    lowered = text.lower()
    # Two letters of another case are another unit: Mg is no mg.
    for name in (text, *((lowered, _singular(lowered)) if len(text) > 2 else ())):
        symbol = _WORDS.get(name, name)
        if symbol in _UNITS:
            return _UNITS[symbol]
    return Unit(f"word {_singular(_WORDS.get(lowered, lowered))}", Fraction(1))


def _singular(word: str) -> str:
    if word in _PLURALS:
        return _PLURALS[word]
    word = re.sub(r"(?<=[a-z])tre(?=s?$)", "ter", word)
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 2 else word
