"""Clock and calendar arithmetic."""

from datetime import date, timedelta
from random import Random

from pipeline.families.math.templates.base import Parameters, Template, is_small, misses, number
from schemas.answer import AnswerSpec, DateAnswer
from schemas.task import NearMiss

_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def _draw_elapsed(rng: Random) -> Parameters:
    if is_small(rng):
        start, hours, minutes = rng.randint(6, 12) * 60, rng.randint(1, 4), rng.randint(1, 59)
        return {"start": start, "end": start + 60 * hours + minutes}
    start = rng.randint(6 * 60, 14 * 60)
    return {"start": start, "end": start + rng.randint(75, 420)}


def _clock(minutes: int) -> str:
    return f"{minutes // 60}:{minutes % 60:02d}"


def _ask_elapsed(p: Parameters, rng: Random) -> str:
    start, end = _clock(p["start"]), _clock(p["end"])
    return rng.choice(
        (
            f"A train leaves at {start} and arrives at {end} on the same day (24-hour clock). How many minutes does the journey take?",
            f"A workshop opens at {start} and closes at {end} (24-hour clock). For how many minutes is it open?",
        )
    )


def _elapsed(p: Parameters) -> AnswerSpec:
    return number(p["end"] - p["start"], "minutes")


def _elapsed_on_the_clock(p: Parameters) -> AnswerSpec:
    """Turn the hands a minute at a time until the clock shows the end."""
    hour, minute = divmod(p["start"], 60)
    turned = 0
    while (hour, minute) != divmod(p["end"], 60):
        turned, minute = turned + 1, minute + 1
        if minute == 60:
            hour, minute = hour + 1, 0
    return number(turned, "minutes")


def _work_elapsed(p: Parameters) -> list[str]:
    (h, m), (k, n) = divmod(p["start"], 60), divmod(p["end"], 60)
    whole = (k - h) * 60
    lines = [f"hours: {k} - {h} = {k - h}", f"in minutes: {k - h} * 60 = {whole}"]
    if m == n:
        return lines
    gap = f"{n} - {m} = {n - m}" if n > m else f"{m} - {n} = {m - n}"
    return [*lines, f"minutes: {gap}", f"in all: {whole} {'+' if n > m else '-'} {abs(n - m)} = {whole + n - m}"]


def _slip_elapsed(p: Parameters) -> list[NearMiss]:
    (h, m), (k, n) = divmod(p["start"], 60), divmod(p["end"], 60)
    right = p["end"] - p["start"]
    return misses(
        right,
        (100 * (k - h) + n - m, "an hour of 100 minutes"),
        (right + 60, "an hour too many"),
        (right - 2 * (n - m), "minutes the wrong way"),
        (right + 1, "off by one"),
    )


def _draw_calendar(rng: Random) -> Parameters:
    start = date(2001, 1, 1) + timedelta(days=rng.randrange(9000))
    if is_small(rng):
        start = start.replace(day=rng.randint(1, 20))
        return {"start": start.isoformat(), "days": rng.randint(3, 28 - start.day)}
    return {"start": start.isoformat(), "days": rng.randint(9, 75)}


def _long(day: date) -> str:
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def _ask_calendar(p: Parameters, rng: Random) -> str:
    start = _long(date.fromisoformat(p["start"]))
    return rng.choice(
        (
            f"What is the date {p['days']} days after {start}? Give day, month and year.",
            f"A parcel is sent on {start} and arrives {p['days']} days later. On which date does it arrive? Give day, month and year.",
        )
    )


def _calendar(p: Parameters) -> AnswerSpec:
    return DateAnswer(value=(date.fromisoformat(p["start"]) + timedelta(days=p["days"])).isoformat())


def _calendar_by_leaves(p: Parameters) -> AnswerSpec:
    """Tear off a leaf a day, by the lengths of the months and the Gregorian leap rule."""
    year, month, day = map(int, p["start"].split("-"))
    for _ in range(p["days"]):
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        length = 30 if month in (4, 6, 9, 11) else 31 if month != 2 else 29 if leap else 28
        day += 1
        if day > length:
            day, month = 1, month + 1
        if month > 12:
            month, year = 1, year + 1
    return DateAnswer(value=f"{year:04d}-{month:02d}-{day:02d}")


def _work_calendar(p: Parameters) -> list[str]:
    """Whole months first, then days."""
    start, left = date.fromisoformat(p["start"]), p["days"]
    lines = []
    day = start
    while True:
        first = date(day.year + day.month // 12, day.month % 12 + 1, 1)
        to_first = (first - day).days
        if left < to_first:
            break
        left, day = left - to_first, first
        lines.append(f"{to_first} days to {_long(first)}, {left} left")
    return [*lines, f"{_long(day)} + {left} days = {_long(day + timedelta(days=left))}"]


def _slip_calendar(p: Parameters) -> list[NearMiss]:
    right = date.fromisoformat(p["start"]) + timedelta(days=p["days"])
    shifted = ((1, "one day too late"), (-1, "one day too early"), (365, "a year off"))
    return misses(_long(right), *((_long(right + timedelta(days=n)), why) for n, why in shifted))


def _draw_schedule(rng: Random) -> Parameters:
    if is_small(rng):
        return {"lessons": rng.randint(2, 6), "length": rng.choice((10, 20, 30, 40, 50)), "pause": rng.randint(2, 10)}
    return {"lessons": rng.randint(3, 9), "length": rng.choice((25, 35, 40, 45, 50, 55)), "pause": rng.randint(5, 20)}


def _ask_schedule(p: Parameters, rng: Random) -> str:
    what = rng.choice(("lessons", "sessions", "matches"))
    return (
        f"A day has {p['lessons']} {what} of {p['length']} minutes each, with a break of {p['pause']} minutes between two {what}. "
        f"How many minutes pass from the start of the first to the end of the last?"
    )


def _schedule(p: Parameters) -> AnswerSpec:
    return number(p["lessons"] * p["length"] + (p["lessons"] - 1) * p["pause"], "minutes")


def _schedule_hour_by_hour(p: Parameters) -> AnswerSpec:
    """Walk through the day: a lesson, then a break unless it was the last."""
    clock, given = 0, 0
    while True:
        clock, given = clock + p["length"], given + 1
        if given == p["lessons"]:
            return number(clock, "minutes")
        clock += p["pause"]


def _work_schedule(p: Parameters) -> list[str]:
    n, a, b = p["lessons"], p["length"], p["pause"]
    return [
        f"{n} times {a}: {n} * {a} = {n * a}",
        f"{n - 1} breaks: {n - 1} * {b} = {(n - 1) * b}",
        f"in all: {n * a} + {(n - 1) * b} = {n * a + (n - 1) * b}",
    ]


def _slip_schedule(p: Parameters) -> list[NearMiss]:
    n, a, b = p["lessons"], p["length"], p["pause"]
    right = n * a + (n - 1) * b
    return misses(right, (n * (a + b), "a break after the last"), (n * a, "no breaks"), (right - b, "a break too few"))


TEMPLATES = (
    Template(
        "elapsed_minutes",
        "time",
        _draw_elapsed,
        _ask_elapsed,
        _elapsed,
        _elapsed_on_the_clock,
        _work_elapsed,
        _slip_elapsed,
    ),
    Template(
        "date_after",
        "time",
        _draw_calendar,
        _ask_calendar,
        _calendar,
        _calendar_by_leaves,
        _work_calendar,
        _slip_calendar,
    ),
    Template(
        "schedule",
        "time",
        _draw_schedule,
        _ask_schedule,
        _schedule,
        _schedule_hour_by_hour,
        _work_schedule,
        _slip_schedule,
    ),
)
