"""Totals that change: several additions and subtractions, one after the other."""

from random import Random

from pipeline.families.math.templates.base import Parameters, Template, is_small, misses, number
from schemas.answer import AnswerSpec
from schemas.task import NearMiss

_SCENES = {
    "passengers": ("A bus leaves the depot with {a} passengers.", "{n} get on", "{n} get off", "How many passengers are on the bus now?"),
    "books": ("A school library has {a} books on a shelf.", "{n} are returned", "{n} are borrowed", "How many books are on the shelf now?"),
    "points": ("A team has {a} points.", "it wins {n}", "it loses {n}", "How many points does the team have now?"),
    "apples": ("A grocer has {a} apples.", "{n} arrive", "{n} are sold", "How many apples does the grocer have now?"),
    "litres": ("A tank holds {a} litres of water.", "{n} litres flow in", "{n} litres flow out", "How many litres are in the tank now?"),
}  # fmt: skip
_ORDER = ("First", "Then", "After that", "Next", "Finally")


def _draw_changes(rng: Random) -> Parameters:
    small = is_small(rng)
    start = total = rng.randint(*((6, 40) if small else (25, 160)))
    changes: list[int] = []
    for i in range(3):
        change = rng.randint(*((2, 9) if small else (6, 60))) * (-1 if i == 1 else rng.choice((1, -1)))
        change = change if total + change > 0 else -change
        changes.append(change)
        total += change
    return {"thing": rng.choice(sorted(_SCENES)), "start": start, "changes": changes}


def _ask_changes(p: Parameters, rng: Random) -> str:
    opening, gain, loss, closing = _SCENES[p["thing"]]
    events = [(gain if c > 0 else loss).format(n=abs(c)) for c in p["changes"]]
    if rng.random() < 0.5:
        told = " ".join(f"{when} {what}." for when, what in zip(_ORDER, events, strict=False))
    else:
        told = f"{', '.join(events[:-1])} and then {events[-1]}."
        told = told[0].upper() + told[1:]
    return f"{opening.format(a=p['start'])} {told} {closing}"


def _total(p: Parameters) -> AnswerSpec:
    total: int = p["start"]
    for change in p["changes"]:
        total += change
    return number(total, p["thing"])


def _total_by_tally(p: Parameters) -> AnswerSpec:
    """Counters put down and taken away one at a time."""
    tally = ["|"] * p["start"] + ["|" for c in p["changes"] if c > 0 for _ in range(c)]
    del tally[: sum(-c for c in p["changes"] if c < 0)]
    return number(len(tally), p["thing"])


def _work_changes(p: Parameters) -> list[str]:
    lines, total = [], p["start"]
    for c in p["changes"]:
        lines.append(f"{total} {'+' if c > 0 else '-'} {abs(c)} = {total + c}")
        total += c
    return lines


def _slip_changes(p: Parameters) -> list[NearMiss]:
    total = p["start"] + sum(p["changes"])
    return misses(
        total,
        (total + 1, "one too many"),
        (total - p["changes"][-1], "the last change forgotten"),
        (total - 2 * p["changes"][1], "a loss taken for a gain"),
        (total + 10, "a carry too many"),
    )


_ERRANDS = ("pencil", "apple", "stamp", "candle", "ticket", "muffin", "notebook", "postcard")


def _draw_shopping(rng: Random) -> Parameters:
    small = is_small(rng)
    a, b = rng.sample(_ERRANDS, 2)
    counts = [rng.randint(2, 5 if small else 9) for _ in "ab"]
    prices = [rng.randint(2, 5 if small else 12) for _ in "ab"]
    spent = sum(n * c for n, c in zip(counts, prices, strict=True))
    purse = rng.choice([p for p in (20, 30, 40, 50, 60) if p > spent]) if small else spent + rng.randint(5, 90)
    return {"things": [a, b], "counts": counts, "prices": prices, "purse": purse}


def _ask_shopping(p: Parameters, rng: Random) -> str:
    who = rng.choice(("Mia", "Omar", "Lena", "Tariq", "Ruth", "Ivan"))
    (a, b), (n, m), (c, d) = p["things"], p["counts"], p["prices"]
    return (
        rng.choice(
            (
                f"{who} has ${p['purse']} and buys {n} {a}s for ${c} each and {m} {b}s for ${d} each. How many dollars are left?",
                f"A {a} costs ${c} and a {b} costs ${d}. {who} buys {n} {a}s and {m} {b}s out of ${p['purse']}. "
                f"How many dollars does {who} have left?",
            )
        )
        .replace("A apple", "An apple")
        .replace("a apple", "an apple")
    )


def _left(p: Parameters) -> AnswerSpec:
    (n, m), (c, d) = p["counts"], p["prices"]
    return number(p["purse"] - n * c - m * d, "dollars")


def _left_coin_by_coin(p: Parameters) -> AnswerSpec:
    """Pay for every single thing until none is left."""
    purse: int = p["purse"]
    for count, price in zip(p["counts"], p["prices"], strict=True):
        for _ in range(count):
            purse -= price
    return number(purse, "dollars")


def _work_shopping(p: Parameters) -> list[str]:
    (a, b), (n, m), (c, d) = p["things"], p["counts"], p["prices"]
    rest = p["purse"] - n * c
    return [
        f"{a}s: {n} * {c} = {n * c}",
        f"{b}s: {m} * {d} = {m * d}",
        f"left: {p['purse']} - {n * c} = {rest}",
        f"left: {rest} - {m * d} = {rest - m * d}",
    ]


def _slip_shopping(p: Parameters) -> list[NearMiss]:
    (n, m), (c, d) = p["counts"], p["prices"]
    left = p["purse"] - n * c - m * d
    return misses(
        left,
        (p["purse"] - left, "what was spent"),
        (left + m * d, "the second thing forgotten"),
        (p["purse"] - c - d, "one of each"),
        (left + 1, "one too many"),
    )


def _draw_bill(rng: Random) -> Parameters:
    small = is_small(rng)
    counts, prices = ([rng.randint(2, 6 if small else 12) for _ in "ab"] for _ in "cp")
    return {"things": rng.sample(_ERRANDS, 2), "counts": counts, "prices": prices}


def _ask_bill(p: Parameters, rng: Random) -> str:
    (a, b), (n, m), (c, d) = p["things"], p["counts"], p["prices"]
    return rng.choice(
        (
            f"{n} {a}s cost ${c} each and {m} {b}s cost ${d} each. How many dollars do they cost together?",
            f"A class buys {n} {a}s for ${c} each and {m} {b}s for ${d} each. How many dollars does it pay?",
        )
    )


def _bill(p: Parameters) -> AnswerSpec:
    return number(sum(n * c for n, c in zip(p["counts"], p["prices"], strict=True)), "dollars")


def _bill_item_by_item(p: Parameters) -> AnswerSpec:
    return number(sum([price for n, price in zip(p["counts"], p["prices"], strict=True) for _ in range(n)]), "dollars")


def _work_bill(p: Parameters) -> list[str]:
    (a, b), (n, m), (c, d) = p["things"], p["counts"], p["prices"]
    return [
        f"{a}s: {n} * {c} = {n * c}",
        f"{b}s: {m} * {d} = {m * d}",
        f"together: {n * c} + {m * d} = {n * c + m * d}",
    ]


def _slip_bill(p: Parameters) -> list[NearMiss]:
    (n, m), (c, d) = p["counts"], p["prices"]
    right = n * c + m * d
    return misses(right, (n * c, "one thing only"), ((n + m) * (c + d), "sums multiplied"), (right + c, "one too many"))


TEMPLATES = (
    Template(
        "shopping_total", "totals", _draw_bill, _ask_bill, _bill, _bill_item_by_item, _work_bill, _slip_bill, share=4
    ),
    Template(
        "running_total", "totals", _draw_changes, _ask_changes, _total, _total_by_tally, _work_changes, _slip_changes
    ),
    Template(
        "shopping_change",
        "totals",
        _draw_shopping,
        _ask_shopping,
        _left,
        _left_coin_by_coin,
        _work_shopping,
        _slip_shopping,
    ),
)
