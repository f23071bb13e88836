"""Plain numbers and quantities, read exactly and without a computer algebra system."""

import re
from fractions import Fraction
from typing import NamedTuple

from pipeline.grading.syntax import CONSTANTS
from pipeline.grading.text import plain
from pipeline.grading.units import PLAIN, Unit, unit

LONGEST = 4_300
"""Characters of an answer that anyone will read as mathematics: any gold, and no more digits than Python turns into a number."""

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d{1,3}(?:[ \u202f]\d{3})+(?!\d)|\d{1,3}(?:['’]\d{3})+|\d+)"
_SEPARATOR = re.compile(r"[, \u202f'’]")
_DECIMAL = rf"(?:{_DIGITS}(?:\.\d+)?|\.\d+)"
_POWER_OF_TEN = r"(?:\s*(?:[eE]|[*x]\s*10\s*\^)\s*[({]?\s*(?P<exponent>[+-]?\d{1,4})\s*[)}]?)?"
_FRACTION = r"(?:\\[dt]?frac\s*\{\s*(?P<sign2>-?)\s*(?P<a>\d+)\s*\}\s*\{\s*(?P<b>\d+)\s*\}|(?P<c>\d+)\s*/\s*(?P<d>\d+))"
_CURRENCY = r"(?P<currency>US\$|[$€£])"
_QUANTITY = re.compile(
    rf"{_CURRENCY}?\s*(?P<sign>[+-]?)\s*{_CURRENCY.replace('currency', 'currency2')}?\s*"
    rf"(?:(?:(?P<whole>{_DIGITS})(?:\s+|(?=\\)))?{_FRACTION}|(?P<decimal>{_DECIMAL}){_POWER_OF_TEN})"
    r"(?![\d.,]*\d)\s*(?P<magnitude>(?i:thousand|million|billion|trillion))?(?P<unit>[^\d+*=<>(){}\[\]!|,;]*(?:\^?\s*[({]?[23][)}]?|\^\s*\{?\\circ\}?)?)"
)
_MAGNITUDES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_ASSIGNED = re.compile(r"^\(?[a-zA-Z](?:_\w+|\([a-zA-Z]\))?\)?\s*=(?!=)\s*|^=\s*")
_INFINITY = re.compile(r"([+-]?)\s*\\?(?:oo|infty|infinity|inf)")
_ROUGHLY = re.compile(r"^(?:about|around|approximately|approx\.?|roughly|≈|~|\\approx)\s*", re.IGNORECASE)


class Quantity(NamedTuple):
    value: Fraction
    unit: Unit


def quantity(text: str) -> Quantity | None:
    """The number that the whole of `text` is, with its unit; `None` where any of it is something else.

    Reads thousands separators in groups of three, decimals, `7/3`, `1 1/2`, `\\frac{7}{3}`, `1.5e3`, `1.5*10^3`,
    "3.5 million", currency signs in front, and "x =" before it. A comma is never a decimal point.
    """
    if len(text) > LONGEST:
        return None
    match = _QUANTITY.fullmatch(stripped(text))
    if match is None:
        return None
    value = _value(match)
    if value is None:
        return None
    currency = match["currency"] or match["currency2"]
    stated = match["unit"].strip(" \\")
    if (currency and stated) or stated in CONSTANTS or (stated and not re.search(r"[^\W\d_]|[%°$€£]", stated)):
        return None
    return Quantity(value, unit(currency or stated))


def stripped(text: str) -> str:
    """`text` as one plain line, without "x =" in front and without parentheses around it all."""
    text = _ASSIGNED.sub("", plain(text)).strip()
    if text.startswith("(") and text.endswith(")") and not re.search(r"[(),]", text[1:-1]):
        text = text[1:-1].strip()
    return text


def _value(match: re.Match[str]) -> Fraction | None:
    if match["decimal"] is not None:
        value = Fraction(_SEPARATOR.sub("", match["decimal"]))
        if match["exponent"]:
            value *= Fraction(10) ** int(match["exponent"])
    else:
        over, under = match["a"] or match["c"], match["b"] or match["d"]
        if int(under) == 0:
            return None
        value = Fraction(int(over), int(under))
        if match["whole"]:
            value += int(_SEPARATOR.sub("", match["whole"]))
        if match["sign2"]:
            value = -value
    if match["magnitude"]:
        value *= _MAGNITUDES[match["magnitude"].lower()]
    return -value if match["sign"] == "-" else value


def extended(text: str) -> Fraction | float | None:
    """A plain number exactly, an infinity as a float, `None` for anything else."""
    infinite = _INFINITY.fullmatch(plain(text))
    if infinite:
        return float(f"{infinite[1]}inf")
    found = quantity(text)
    return found.value if found is not None and found.unit == PLAIN else None


def without_hedge(text: str) -> str:
    """Without a leading "about": it says nothing against an answer that a tolerance was declared for."""
    return _ROUGHLY.sub("", text.strip())


def close(value: Fraction, gold: Fraction, tolerance: float | None) -> bool:
    """Exact, or within `tolerance` of the gold, relatively; at a gold of 0 only 0 is close."""
    if tolerance is None:
        return value == gold
    return abs(value - gold) <= Fraction(tolerance) * abs(gold)
