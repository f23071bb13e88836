"""Text made comparable: what two spellings of one thing have in common, and nothing more."""

import re
import unicodedata

_INVISIBLE = re.compile("[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe0f\ufeff]")
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h"})
_SUPERSCRIPTS = {c: str(i) for i, c in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")} | {"⁻": "-", "⁺": "+", "ⁿ": "n"}
_RAISED = re.compile(f"[{''.join(_SUPERSCRIPTS)}]+")
_VULGAR = re.compile(r"(?<=\d)\s*(?=[¼-¾⅐-⅞])")
_SYMBOLS = str.maketrans(
    {
        "−": "-",
        "–": "-",
        "—": "-",
        "⁄": "/",
        "∕": "/",
        "÷": "/",
        "×": "*",
        "·": "*",
        "⋅": "*",
        "∗": "*",
        "≤": "<=",
        "≥": ">=",
        "∞": "oo",
        "π": " pi ",
    }
)
_TYPOGRAPHIC = str.maketrans("‐–—−‘’“”", "----''\"\"")
_WRAPPER = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathit|mbox|operatorname)\s*\{([^{}]*)\}")
_DEGREE = re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\\circ\b)")
_SPACING = re.compile(
    r"\\[,;:!> ]|\\q?quad\b|(?<=\S)~|\\left(?![a-z])|\\right(?![a-z])|\\(?:big|Big|bigg|Bigg)[lr]?(?![a-z])|\\displaystyle"
)


def visible(text: str) -> str:
    """Without the characters that nobody sees: soft hyphens, joiners, direction marks."""
    return _INVISIBLE.sub("", text)


def _lowered(text: str) -> str:
    """With powers as `^(...)`, which would become plain digits otherwise."""
    return _RAISED.sub(lambda m: "^(" + "".join(_SUPERSCRIPTS[c] for c in m[0]) + ")", text)


def plain(text: str) -> str:
    """One line of math or quantity: full-width and vulgar characters folded, powers as `^(...)`, LaTeX wrappers gone."""
    text = _lowered(_DEGREE.sub("°", text))
    text = unicodedata.normalize("NFKC", _VULGAR.sub(" ", text)).translate(_SYMBOLS)
    text = _SPACING.sub(" ", _WRAPPER.sub(r" \1 ", text))
    for latex, mark in (
        ("\\$", "$"),
        ("\\%", "%"),
        ("\\{", "{"),
        ("\\}", "}"),
        ("\\cdot", "*"),
        ("{,}", ","),
        ("\\times", "*"),
        ("\\div", "/"),
    ):
        text = text.replace(latex, mark)
    return " ".join(text.split())


def literal(text: str) -> str:
    """Text without case, spacing, typography and LaTeX wrappers; every other character stays."""
    folded = unicodedata.normalize("NFKC", _lowered(_WRAPPER.sub(r"\1", visible(text)))).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).translate(_TYPOGRAPHIC).split())


def fold(name: str) -> str:
    """A name without case, accents, articles and punctuation; symbols that tell names apart (C, C++, C#) stay.

    "J. S. Bach" and "J.S. Bach" fold alike, and so do "U.S.A." and "USA"; "Vitamin A" keeps its A.
    """
    text = _WRAPPER.sub(r"\1", visible(name))
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold()).translate(_LETTERS)
    text = re.sub("[\u0300-\u036f]", "", text).replace("&", " and ")
    text = re.sub(r"(?<=\d),(?=\d{3}\b)|['’‘`´ʻʼ]", "", text)
    text = re.sub(r"(?<=\d)\.(?=\d)", "\0", text)
    text = re.sub(r"(?<![^\s(])[-−](?=\d)", "\1", text)
    text = "".join(" " if unicodedata.category(c)[0] in "PZC" and c not in "#%\0\1" else c for c in text)
    words = [w for w in text.replace("\0", ".").replace("\1", "-").split() if w != "the"]
    if len("".join(words[1:])) > 1 and words[0] in {"a", "an"}:  # "A, D" is two choices and not "a D"
        words = words[1:]
    joined = re.sub(r"(?<!\S)((?:[a-z] )+[a-z])(?!\S)", lambda m: m[1].replace(" ", ""), " ".join(words))
    return joined or " ".join(name.casefold().split())
