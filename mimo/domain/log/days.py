"""Headings that are dates: `2026-12-12`, `December 12, 2026`, `Dec 12`, `12/31/2026`."""

import re
from datetime import UTC, date, datetime, timedelta
from functools import cache

_MONTHS = (
    "january february march april may june july august september october november december".split()
)


@cache
def _forms() -> tuple[re.Pattern[str], ...]:
    names = "|".join(f"{name[:3]}(?:{name[3:]})?" if name[3:] else name for name in _MONTHS)
    month = rf"(?P<name>{names}|sept)\.?"
    return tuple(
        re.compile(form, re.IGNORECASE)
        for form in (
            r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})(?:[T ].*)?",
            rf"{month}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(?P<year>\d{{4}}))?",
            rf"(?P<day>\d{{1,2}})\s+{month}(?:,?\s+(?P<year>\d{{4}}))?",
            r"(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{4})",
        )
    )


def read_day(heading: str, *, read_at: datetime) -> datetime | None:
    """Returns midnight UTC of the day that a heading names, or None where it names none.

    Without a year it is that of `read_at`, or the one before where the day would be still to come.
    """
    text = heading.strip().strip("*_ ")
    found = next((hit for form in _forms() if (hit := form.fullmatch(text))), None)
    if found is None:
        return None
    parts = found.groupdict()
    month = int(parts["month"]) if parts.get("month") else _number(parts["name"])
    day = int(parts["day"])
    if parts["year"]:
        return _midnight(int(parts["year"]), month, day)
    named = _midnight(read_at.year, month, day)
    is_to_come = named is not None and named > read_at + timedelta(days=1)
    return _midnight(read_at.year - 1, month, day) if is_to_come else named


def _number(name: str) -> int:
    return next(n for n, full in enumerate(_MONTHS, 1) if full.startswith(name.lower()[:3]))


def _midnight(year: int, month: int, day: int) -> datetime | None:
    try:
        found = date(year, month, day)
    except ValueError:
        return None
    return datetime(found.year, found.month, found.day, tzinfo=UTC)
