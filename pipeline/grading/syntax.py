"""A strict reader of algebra in plain text or LaTeX. It reads the whole text or none of it, and evaluates nothing.

`parse` yields nested tuples: `("num", "1.5")`, `("sym", "x")`, `("add"|"mul"|"div"|"pow", a, b)`, `("neg", a)`,
`("fn", name, a)`. Whoever evaluates them must be killable: a tree of ten nodes can stand for a number of any size.
"""

import re
from typing import Any

from pipeline.grading.text import plain

Node = tuple[Any, ...]
DEEPEST = 60
FUNCTIONS = frozenset(
    {
        "sin",
        "cos",
        "tan",
        "cot",
        "sec",
        "csc",
        "asin",
        "acos",
        "atan",
        "arcsin",
        "arccos",
        "arctan",
        "sinh",
        "cosh",
        "tanh",
        "exp",
        "ln",
        "log",
        "sqrt",
        "abs",
        "factorial",
        "floor",
        "ceil",
    }
)
CONSTANTS = frozenset({"pi", "e", "E", "i", "I", "oo", "infty", "inf", "infinity"})
_INVERTIBLE = frozenset({"sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh"})
_FRACTIONS = frozenset({"frac", "dfrac", "tfrac", "cfrac"})
_TOKEN = re.compile(
    r"\s*(?P<num>\d+(?:\.\d+)?|\.\d+)|\s*\\?(?P<word>[A-Za-z]+(?:_\{?[A-Za-z0-9]+\}?)?)|\s*(?P<op>\*\*|√|[-+*/^!(){}\[\]|])|\s*$"
)
_LOG = re.compile(r"log_\d+")
_CLOSING = {"(": ")", "{": "}", "[": "]"}


class Unreadable(ValueError):
    """Not one algebraic expression in the declared variables."""


def parse(text: str, variables: tuple[str, ...] = ()) -> Node:
    """The expression that all of `text` is. Raises `Unreadable` for anything else, undeclared letters included."""
    reader = _Reader(_tokens(plain(text)), variables)
    node = reader.sum(0)
    if reader.peek():
        raise Unreadable(f"stray {reader.peek()}")
    return node


def _tokens(text: str) -> list[tuple[str, str]]:
    found = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.end() == at:
            raise Unreadable(f"stray {text[at]}")
        at = match.end()
        if match.lastgroup:
            found.append((match.lastgroup, re.sub(r"_\{(\w+)\}", r"_\1", match[match.lastgroup])))
    return found


def _deeper(depth: int) -> int:
    if depth >= DEEPEST:
        raise Unreadable("nested too deeply")
    return depth + 1


class _Reader:
    """Recursive descent; a sum of products of signed powers of atoms."""

    def __init__(self, tokens: list[tuple[str, str]], variables: tuple[str, ...]) -> None:
        self.tokens = [part for token in tokens for part in self._split(token, variables)]
        self.variables = variables
        self.at = 0

    @staticmethod
    def _split(token: tuple[str, str], variables: tuple[str, ...]) -> list[tuple[str, str]]:
        """`xy` as `x`, `y` and `sinx` as `sin`, `x` where only the parts are known."""
        kind, word = token
        if kind != "word" or word in variables or word in FUNCTIONS | CONSTANTS | _FRACTIONS or _LOG.fullmatch(word):
            return [token]
        if all(letter in variables for letter in word):
            return [("word", letter) for letter in word]
        known = FUNCTIONS | CONSTANTS | set(variables)
        longest = max(map(len, known))
        parts = []
        while word:
            part = next((word[:size] for size in range(longest, 0, -1) if word[:size] in known), None)
            if part is None:
                raise Unreadable(f"unknown {word}")
            parts.append(("word", part))
            word = word[len(part) :]
        return parts

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def take(self, *expected: str) -> str:
        if not self.peek() or (expected and self.peek() not in expected):
            raise Unreadable(f"{self.peek() or 'the end'} where {' or '.join(expected) or 'a term'} is due")
        self.at += 1
        return self.tokens[self.at - 1][1]

    def sum(self, depth: int) -> Node:
        node = self.product(depth)
        while self.peek() in ("+", "-"):
            sign = self.take()
            right = self.product(depth)
            node = ("add", node, right if sign == "+" else ("neg", right))
        return node

    def product(self, depth: int) -> Node:
        node = self.signed(depth)
        while True:
            if self.peek() in ("*", "/"):
                node = ("mul" if self.take() == "*" else "div", node, self.signed(depth))
            elif self._starts_factor():
                node = ("mul", node, self.power(depth))
            else:
                return node

    def _starts_factor(self) -> bool:
        """Juxtaposition multiplies, but no number follows anything unless a sign stands between: `2 3` is no product."""
        if self.at >= len(self.tokens):
            return False
        kind, word = self.tokens[self.at]
        return kind == "word" or word in ("(", "{", "[", "√")

    def signed(self, depth: int) -> Node:
        if self.peek() in ("+", "-"):
            return ("neg", self.signed(_deeper(depth))) if self.take() == "-" else self.signed(_deeper(depth))
        return self.power(depth)

    def power(self, depth: int) -> Node:
        base = self.atom(depth)
        while self.peek() == "!":
            self.take()
            base = ("fn", "factorial", base)
        if self.peek() in ("^", "**"):
            self.take()
            return ("pow", base, self.exponent(depth))
        return base

    def exponent(self, depth: int) -> Node:
        depth = _deeper(depth)
        return ("neg", self.exponent(depth)) if self.peek() == "-" and self.take() else self.power(depth)

    def atom(self, depth: int) -> Node:
        if self.at >= len(self.tokens):
            raise Unreadable("ends where a term is due")
        kind, word = self.tokens[self.at]
        if kind == "num":
            self.take()
            return ("num", word)
        if word in _CLOSING:
            return self.group(depth)
        if word == "|":
            self.take("|")
            node = self.sum(_deeper(depth))
            self.take("|")
            return ("fn", "abs", node)
        self.take()
        if word in _FRACTIONS:
            return ("div", self.argument(depth), self.argument(depth))
        if word == "√" or (word not in self.variables and (word in FUNCTIONS or _LOG.fullmatch(word))):
            return self.function("sqrt" if word == "√" else word, depth)
        if kind == "word":
            return ("sym", word)
        raise Unreadable(f"stray {word}")

    def argument(self, depth: int) -> Node:
        """A group, or as in TeX the one digit or letter that comes next: `\\frac{84}2`, `\\frac12`."""
        if self.peek() in _CLOSING:
            return self.group(depth)
        kind, word = self.tokens[self.at] if self.at < len(self.tokens) else ("op", "")
        if kind == "num" and word.isdigit():
            self.tokens[self.at : self.at + 1] = [("num", digit) for digit in word]
        return self.atom(_deeper(depth))

    def group(self, depth: int) -> Node:
        opening = self.take("(", "{", "[")
        node = self.sum(_deeper(depth))
        self.take(_CLOSING[opening])
        return node

    def function(self, name: str, depth: int) -> Node:
        """`sqrt(x)`, `\\sqrt[3]{x}`, `sin 2x`, `\\sin^2(x)`, `\\sin^{-1} x`, `\\log_2 x`; bare arguments are numbers and variables only."""
        name, _, base = name.partition("_")
        if name == "sqrt" and self.peek() == "[":
            root = self.group(depth)
            return ("pow", self.group(depth), ("div", ("num", "1"), root))
        exponent = None
        if self.peek() == "^" and name != "sqrt":
            self.take()
            exponent = self.exponent(depth)
        if self.peek() in ("(", "{"):
            argument = self.group(depth)
        else:
            argument = self.power(_deeper(depth))
            while self.at < len(self.tokens) and self.peek() in self.variables and name != "sqrt":
                argument = ("mul", argument, self.power(_deeper(depth)))
        if exponent == ("neg", ("num", "1")) and name in _INVERTIBLE:
            name, exponent = f"a{name}", None
        node: Node = ("fn", name, argument)
        if base:
            node = ("div", node, ("fn", name, ("num", base)))
        return ("pow", node, exponent) if exponent else node
