"""Spans of time in UTC, and the calendar by which words about the past are counted."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from mimo.frozen import frozen

LATEST = datetime.max.replace(tzinfo=UTC)
DAY = timedelta(days=1)
WEEK = timedelta(days=7)

LENGTHS = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": DAY,
    "week": WEEK,
    "fortnight": 2 * WEEK,
    "month": timedelta(days=30),
    "quarter": timedelta(days=91),
    "year": timedelta(days=365),
}
"""How far back each unit reaches where units are counted from now."""


@frozen
class Interval:
    """A span of time `[since, until)`; an open end is None."""

    since: datetime | None = None
    until: datetime | None = None


class Span(NamedTuple):
    """What one phrase names: `[since, until)`."""

    since: datetime
    until: datetime
    bound: datetime
    """Where something ends that the phrase ends: the end of a day, but a moment itself."""
    recurs: bool = False
    """Whether it is the latest of many, such as a weekday or a month without its year."""


class Refused(Exception):
    """A phrase is understood, but names no time of the past; says why, and what to do."""

    def __init__(self, reason: str, hint: str = "") -> None:
        """Keep what follows the quoted expression in the message."""
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


def end(now: datetime) -> datetime:
    """Returns the end of a span that reaches to now, which itself belongs to it.

    Memories are dated to the second, so the span ends a second later.
    """
    return later(now, timedelta(seconds=1))


def later(moment: datetime, length: timedelta) -> datetime:
    """Returns the moment so much later, the last one of the calendar where that is beyond it."""
    try:
        return moment + length
    except OverflowError:
        return LATEST


def midnight(moment: datetime) -> datetime:
    """Returns the start of the day."""
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def start_of(unit: str, moment: datetime) -> datetime:
    """Returns the start of the calendar's minute, hour, day, week (Monday), …, year around it."""
    match unit:
        case "second":
            return moment.replace(microsecond=0)
        case "minute":
            return moment.replace(second=0, microsecond=0)
        case "hour":
            return moment.replace(minute=0, second=0, microsecond=0)
    day = midnight(moment)
    match unit:
        case "week":
            return day - day.weekday() * DAY
        case "month":
            return day.replace(day=1)
        case "quarter":
            return day.replace(month=day.month - (day.month - 1) % 3, day=1)
        case "year":
            return day.replace(month=1, day=1)
    return day


def months(start: datetime, count: int) -> datetime:
    """Returns the first of the month so many months after `start`, itself a first.

    Raises `OverflowError` before the year 1; after 9999 it is the last moment there is.
    """
    number = start.year * 12 + start.month - 1 + count
    year, month = divmod(number, 12)
    if year < 1:
        raise OverflowError
    return LATEST if year > 9999 else start.replace(year=year, month=month + 1)


def period(start: datetime, unit: str) -> Span:
    """Returns the whole unit of the calendar that begins at `start`."""
    counted = {"month": 1, "quarter": 3, "half": 6, "year": 12}.get(unit)
    until = months(start, counted) if counted else later(start, LENGTHS[unit])
    return Span(start, until, until)


def previous(unit: str, now: datetime, back: int) -> Span:
    """Returns the calendar's unit that lies `back` before the present one (0)."""
    this = start_of(unit, now)
    counted = {"month": 1, "quarter": 3, "year": 12}.get(unit)
    return period(months(this, -back * counted) if counted else this - back * LENGTHS[unit], unit)


def point(moment: datetime, length: timedelta) -> Span:
    """Returns a moment that is named to a precision of `length`."""
    return Span(moment, later(moment, length), moment)


def begun(span: Span, now: datetime) -> Span:
    """Returns the part of a span that has passed; raises `Refused` where it lies ahead."""
    if span.since > now:
        raise Refused("has not begun yet", "memories are of the past: name a time that has begun")
    return span._replace(until=min(span.until, end(now)), bound=min(span.bound, end(now)))
