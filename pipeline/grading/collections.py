"""Sets, tuples, multisets and intervals: how an answer writes several things, and which of them it means."""

import re
from typing import NamedTuple

from pipeline.grading.text import plain

MOST_ITEMS = 100
_NAME = re.compile(r"^([a-zA-Z](?:_\w+)?)\s*=(?!=)\s*")
_NAMES = re.compile(r"^\(([a-zA-Z](?:_\w+)?(?:\s*,\s*[a-zA-Z](?:_\w+)?)+)\)\s*=(?!=)\s*")
_MEMBER = re.compile(r"^[a-zA-Z]\s*(?:\\in\b|∈|in\b)\s*")
_PADDED = re.compile(r"[+-]?0\d+")
_EMPTY = re.compile(r"\\(?:emptyset|varnothing)\b|[∅⌀]")
_EITHER_SIGN = re.compile(r"\\pm\b|±")
_SOLUTIONS = re.compile(r"^[a-zA-Z]\s*=[^=]*(?:\bor\b\s*[a-zA-Z]\s*=[^=]*)+$")
_INFINITY = re.compile(r"\\?(?:oo|infty|infinity|inf)\b")
_ORDER = r"(<=|<|>=|>|\\leq?(?:slant)?|\\geq?(?:slant)?|\\[lg]t)"
_DOUBLE = re.compile(rf"^(?P<a>[^<>]+?)\s*{_ORDER}\s*[a-zA-Z]\s*{_ORDER}\s*(?P<b>[^<>]+)$")
_SINGLE = re.compile(rf"^(?P<a>[^<>]+?)\s*{_ORDER}\s*(?P<b>[^<>]+)$")


class Interval(NamedTuple):
    low: str
    high: str
    closed: tuple[bool, bool]


def items(text: str, shape: str) -> list[str] | None:
    """The members that `text` lists, or `None` where it writes another kind of thing than `shape`.

    Braces write a set or multiset, parentheses a tuple, brackets a tuple or multiset; a bare list writes any of them. A set of solutions
    may say "x = 1 or x = 2", and "±1" is two members; a tuple may name its places if the names ascend.
    """
    line = plain(text)
    if shape == "tuple":
        named = _NAMES.match(line)
        if named and _ascend(re.split(r"\s*,\s*", named[1])):
            line = line[named.end() :]
    else:
        line = _EMPTY.sub("{}", _MEMBER.sub("", line))
    opening = {"set": "{", "multiset": "{[", "tuple": "(["}[shape]
    if line[:1] in tuple("([{") and _matching(line) == len(line) - 1:
        if line[0] not in opening:
            return None
        line = line[1:-1]
    elif shape != "tuple" and _SOLUTIONS.match(line):
        line = re.sub(r"\bor\b", ",", line)
    parts = [p.strip() for p in _split(line)]
    if not line.strip():
        return []
    if any(not p for p in parts) or len(parts) > MOST_ITEMS:
        return None
    names = [m[1] for p in parts if (m := _NAME.match(p))]
    if shape == "tuple" and names and not (len(names) == len(parts) and _ascend(names)):
        return None
    parts = [_NAME.sub("", p) for p in parts]
    if any(_PADDED.fullmatch(p) for p in parts):
        return None  # "1,000" is one number and no list of 1 and 0
    if shape == "tuple":
        return parts
    return [_EITHER_SIGN.sub(sign, p) for p in parts for sign in ("+-" if _EITHER_SIGN.search(p) else "+")]


def interval(text: str) -> Interval | None:
    """The interval that `text` writes: `[1, 2)`, `(-oo, 3]`, `x > 2`, `1 < x <= 5`. Infinite ends are open."""
    line = _MEMBER.sub("", plain(text))
    if line[:1] in tuple("([") and line[-1:] in tuple(")]"):
        ends = _split(line[1:-1])
        return _ends(ends[0], ends[1], line[0] == "[", line[-1] == "]") if len(ends) == 2 else None
    double = _DOUBLE.match(line)
    if double:
        first, second = (_sign(double[i]) for i in (2, 3))
        if first[0] != second[0]:
            return None
        low, high = (double["a"], double["b"]) if first[0] == "<" else (double["b"], double["a"])
        shut = ("=" in first, "=" in second)
        return _ends(low, high, *(shut if first[0] == "<" else shut[::-1]))
    single = _SINGLE.match(line)
    if not single:
        return None
    a, sign, b = single["a"].strip(), _sign(single[2]), single["b"].strip()
    if re.fullmatch("[a-zA-Z]", b):
        a, b, sign = b, a, sign.translate(str.maketrans("<>", "><"))
    if not re.fullmatch("[a-zA-Z]", a):
        return None
    shut_end = "=" in sign
    return _ends("-oo", b, False, shut_end) if sign[0] == "<" else _ends(b, "oo", shut_end, False)


def _ascend(names: list[str]) -> bool:
    return names == sorted(set(names))


def _ends(low: str, high: str, low_closed: bool, high_closed: bool) -> Interval:
    low, high = low.strip(), high.strip()
    return Interval(low, high, (low_closed and not _INFINITY.search(low), high_closed and not _INFINITY.search(high)))


def _sign(text: str) -> str:
    if text.startswith("\\"):
        return ("<" if text[1] == "l" else ">") + ("" if text[2] == "t" else "=")
    return text


def _split(line: str) -> list[str]:
    """Parts at commas, semicolons and "and" outside of brackets."""
    parts, depth, last = [], 0, 0
    for match in re.finditer(r"[(\[{]|[)\]}]|[,;]\s*and\b|[,;]|\band\b", line):
        mark = match[0]
        if mark in "([{":
            depth += 1
        elif mark in ")]}":
            depth -= 1
        elif depth == 0:
            parts.append(line[last : match.start()])
            last = match.end()
    return [*parts, line[last:]]


def _matching(line: str) -> int:
    """Index of the bracket that closes the first character, -1 if none does."""
    depth = 0
    for i, c in enumerate(line):
        depth += (c in "([{") - (c in ")]}")
        if depth == 0:
            return i
    return -1
