"""Equality of expressions by sympy. Runs in a worker process only: the text is a model's and may ask for anything.

Run as a module it is that worker: a line of JSON in, a line of JSON out (see `workers.py`).
"""

import json
import math
import resource
import sys
from typing import Any

import sympy as sp  # type: ignore[import-untyped]

from pipeline.grading.syntax import Node, Unreadable, parse

_POINTS = 8
_FUNCTIONS: dict[str, Any] = {
    "arcsin": sp.asin, "arccos": sp.acos, "arctan": sp.atan, "ln": sp.log, "log": sp.log, "abs": sp.Abs, "ceil": sp.ceiling,
}  # fmt: skip
_CONSTANTS: dict[str, Any] = {"pi": sp.pi, "e": sp.E, "E": sp.E, "i": sp.I, "I": sp.I} | dict.fromkeys(
    ("oo", "infty", "inf", "infinity"), sp.oo
)


def evaluate(node: Node, variables: tuple[str, ...]) -> Any:
    """The sympy expression of a parsed one. Numbers are exact: decimals become fractions."""
    match node:
        case ("num", digits):
            return sp.Rational(digits)
        case ("sym", name):
            return sp.Symbol(name) if name in variables else _CONSTANTS[name]
        case ("neg", a):
            return -evaluate(a, variables)
        case ("fn", name, a):
            return (_FUNCTIONS.get(name) or getattr(sp, name))(evaluate(a, variables))
    a, b = evaluate(node[1], variables), evaluate(node[2], variables)
    return {"add": lambda: a + b, "mul": lambda: a * b, "div": lambda: a / b, "pow": lambda: a**b}[node[0]]()


def compare(gold: str, text: str, variables: tuple[str, ...], tolerance: float | None) -> str:
    """`equal`, `different`, `unproved` or `unreadable`. Two equations are equal if their sides' differences are proportional."""
    try:
        sides = [[evaluate(parse(side, variables), variables) for side in t.split("=")] for t in (gold, text)]
    except Unreadable:
        return "unreadable"
    if [len(s) for s in sides] == [2, 2]:
        left, right = (s[0] - s[1] for s in sides)
        if sp.expand(left) == 0 or sp.expand(right) == 0:
            return "different"
        ratio = sp.cancel(left / right)
        return "equal" if ratio.is_number and ratio != 0 else "different"
    if [len(s) for s in sides] != [1, 1]:
        return "different"
    return _same(sides[0][0], sides[1][0], tolerance)


def _same(gold: Any, value: Any, tolerance: float | None) -> str:
    if gold == value:
        return "equal"
    if value.has(sp.zoo, sp.nan) or gold.is_infinite or value.is_infinite:
        return "different"
    if gold.is_Rational and value.is_Rational and tolerance is None:
        return "different"
    difference = gold - value
    if not difference.free_symbols:
        if tolerance is not None:
            return "equal" if abs(sp.N(difference, 40)) <= tolerance * abs(sp.N(gold, 40)) else "different"
        zero = difference.equals(0)
        return {True: "equal", False: "different"}.get(zero, "unproved")
    if sp.expand(difference) == 0:
        return "equal"
    return _same_function(difference)


def _same_function(difference: Any) -> str:
    """Probe at fixed rational points where it is defined, then prove; agreement without a proof stays unproved."""
    names = sorted(difference.free_symbols, key=str)
    defined = 0
    for k in range(1, 4 * _POINTS):
        point = {s: sp.Rational(7 * k + 11 * j + 3, 13 + k) for j, s in enumerate(names)}
        here = sp.N(difference.subs(point), 40)
        if not here.is_number or here.has(sp.nan, sp.zoo, sp.oo):
            continue
        defined += 1
        if abs(here) > sp.Float("1e-25"):
            return "different"
        if defined == _POINTS:
            break
    if defined == 0:
        return "unproved"
    return "equal" if sp.simplify(difference) == 0 else "unproved"


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    variables = tuple(request["variables"])
    return {
        "table": [
            [compare(gold, text, variables, request["tolerance"]) for text in request["texts"]]
            for gold in request["golds"]
        ]
    }


def main(memory: int) -> None:
    """Serve requests until the input closes, growing by at most `memory` bytes. After a `MemoryError` it ends."""
    with open("/proc/self/statm") as statm:
        grown = int(statm.read().split()[0]) * resource.getpagesize() + memory
    resource.setrlimit(resource.RLIMIT_AS, (grown, grown))
    print("{}", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        # The kernel ends an endless computation, in C code too and also if nobody is left to kill us.
        spent = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(spent + request["seconds"]), resource.RLIM_INFINITY))
        try:
            reply = _answer(request)
        except MemoryError:
            print(json.dumps({"error": "memory"}), flush=True)
            return
        except Exception as error:
            reply = {"error": f"sympy:{type(error).__name__}"}
        # What this request left of its time is none of the next one's.
        resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
