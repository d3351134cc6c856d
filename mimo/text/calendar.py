"""Names of months, weekdays and numbers, and how times and ages are written."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta, tzinfo

MONTHS = (
    "january february march april may june july august september october november december".split()
)
WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen twenty"
).split()

_STEPS = (
    (timedelta(days=365), "year"),
    (timedelta(days=30), "month"),
    (timedelta(days=7), "week"),
    (timedelta(days=1), "day"),
    (timedelta(hours=1), "hour"),
    (timedelta(minutes=1), "minute"),
)


def month_number(name: str) -> int:
    """Returns the number of a month (1 to 12) from its name or an abbreviation of it."""
    return next(n for n, full in enumerate(MONTHS, 1) if full.startswith(name.lower()[:3]))


def iso_utc(moment: datetime, timespec: str = "auto") -> str:
    """Returns a moment in ISO 8601, in UTC with `Z`: `2026-11-26T10:04:21Z`.

    A moment that is not in the calendar of UTC keeps its zone.
    """
    return in_zone(moment, UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


def in_zone(moment: datetime, zone: tzinfo | None) -> datetime:
    """Returns a moment in a zone; as it is near the ends of the calendar, where none is in it."""
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment


def is_day(moment: datetime) -> bool:
    """Returns whether a moment is a date without a time: midnight in UTC, that day in each zone."""
    return moment.tzinfo is UTC and moment.time() == time()


def zone_name(moment: datetime) -> str:
    """Returns the name of a moment's zone: `Europe/Berlin`, or an abbreviation without a name."""
    return getattr(moment.tzinfo, "key", None) or abbreviation(moment)


def abbreviation(moment: datetime) -> str:
    """Returns the abbreviation of a moment's zone: `CET`; `UTC+03` for a zone that has only it."""
    name = moment.tzname() or "UTC"
    return f"UTC{name}" if name[0] in "+-" else name


def age(moment: datetime, now: datetime) -> str:
    """Returns how long ago `moment` was: `3 days ago`, `just now`, `in the future`."""
    passed = now - moment
    if passed < timedelta(0):
        return "in the future"
    for step, name in _STEPS:
        if count := passed // step:
            return f"{count} {name}{'s' if count > 1 else ''} ago"
    return "just now"
