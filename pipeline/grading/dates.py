"""Dates as written in English or ISO, with the precision they were written at."""

import re
from typing import NamedTuple

from pipeline.grading.text import plain
from schemas.answer import is_day

_MONTHS = {
    name: i
    for i, names in enumerate(
        ("january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
         "september sept sep", "october oct", "november nov", "december dec"), start=1)
    for name in names.split()
}  # fmt: skip
_MONTH = rf"(?P<month>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_ERA = r"(?P<era>\s*(?:b\.?\s?c(?:\.?\s?e)?|c\.?\s?e|a\.?\s?d))?"
_YEAR = rf"(?P<pre>a\.?d\.?\s+)?(?P<year>\d{{1,4}}){_ERA}"
_FORMS = [
    re.compile(form)
    for form in (
        r"(?P<year>-?\d{4})(?:-(?P<month>\d{2})(?:-(?P<day>\d{2}))?)?",
        r"(?P<year>\d{4})[/.-](?P<month>\d{1,2})[/.-](?P<day>\d{1,2})",
        r"(?P<month>\d{1,2})/(?P<year>\d{4})",
        rf"(?:the\s+)?{_DAY}[\s-]+(?:of\s+)?{_MONTH},?[\s-]+{_YEAR}",
        rf"{_MONTH}\s+(?:the\s+)?{_DAY},?\s+{_YEAR}",
        rf"{_MONTH},?\s+(?:of\s+)?{_YEAR}",
        rf"(?:the\s+year\s+)?{_YEAR}",
    )
]
_SLASHED = re.compile(r"(?P<a>\d{1,2})[/.-](?P<b>\d{1,2})[/.-](?P<year>\d{4})")
_WEEKDAY = re.compile(r"^(?:on\s+|in\s+)?(?:(?:mon|tue|wed|thu|fri|sat|sun)(?:(?:s|nes|rs|ur)?day|\.?),?\s+)?")


class Day(NamedTuple):
    """An astronomical year (1 BC is 0); `None` where the text does not go down to month or day."""

    year: int
    month: int | None = None
    day: int | None = None

    def covers(self, other: "Day") -> bool:
        """Whether `other` lies in this year, month or day and is written at least as precisely."""
        return all(mine is None or mine == theirs for mine, theirs in zip(self, other, strict=True))


def readings(text: str) -> list[Day]:
    """Every day that `text` may mean: none where it is no date, two where day and month cannot be told apart."""
    line = _WEEKDAY.sub("", plain(text).casefold()).strip(" .")
    slashed = _SLASHED.fullmatch(line)
    if slashed:
        a, b, year = int(slashed["a"]), int(slashed["b"]), int(slashed["year"])
        return sorted({day for day in (Day(year, a, b), Day(year, b, a)) if _exists(day)})
    for form in _FORMS:
        match = form.fullmatch(line)
        if match:
            day = _day(match.groupdict())
            return [day] if day and _exists(day) else []
    return []


def _day(parts: dict[str, str | None]) -> Day | None:
    written = parts["year"] or ""
    era = (parts.get("era") or "").strip().replace(".", "")
    if len(written.lstrip("-")) < 3 and not era and not parts.get("pre"):
        return None  # '87 is not a year
    year = 1 - int(written) if era.startswith("b") else int(written)
    month, day = parts.get("month"), parts.get("day")
    return Day(year, _MONTHS.get(month) or int(month) if month else None, int(day) if day else None)


def _exists(day: Day) -> bool:
    return is_day(*(part for part in day if part is not None))
