"""Spans of time and the arithmetic of the calendar, in the zone of their moments.

Adding to a moment moves the hands of the clock, as Python does within a zone: the next midnight may
be 23 or 25 hours away. `after` counts hours that pass, and moments are compared as such, because a
clock that is set back shows an hour twice.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

from mimo.frozen import NamedTuple

_LATEST = datetime.max.replace(tzinfo=UTC)
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)

LENGTHS = {
    "second": SECOND,
    "minute": timedelta(minutes=1),
    "hour": HOUR,
    "day": DAY,
    "week": 7 * DAY,
    "month": 30 * DAY,
    "quarter": 91 * DAY,
    "year": 365 * DAY,
}
"""Length of each unit in `3 months ago`."""
MONTHS_OF = {"month": 1, "quarter": 3, "half": 6, "year": 12}
"""Calendar months of each unit in `this quarter`."""
_SMALL = ("second", "minute", "hour")
"""Units shorter than a day."""


class Span(NamedTuple):
    """The time that one phrase names: `[since, until)`."""

    since: datetime
    until: datetime
    bound: datetime
    """The end of `until <phrase>`: the end of a day, but a moment itself."""
    recurs: bool = False
    """Whether it is the latest of many, such as a weekday or a month without its year."""

    def end_from(self, since: datetime) -> datetime:
        """Returns the end of `from <since> to <phrase>`; a moment from itself to itself counts."""
        moments = {moment.astimezone(UTC) for moment in (since, self.since, self.bound)}
        return self.until if len(moments) == 1 else self.bound


class Refused(Exception):
    """An expression is understood but names no past time; `reason` follows it in the message."""

    def __init__(self, reason: str, hint: str = "") -> None:
        """Keeps the reason and the hint."""
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


def until_now(now: datetime) -> datetime:
    """Returns the end of a span that reaches to now and includes it.

    Memories are dated to the second, so the span ends a second later.
    """
    return after(now, SECOND)


def later(moment: datetime, length: timedelta) -> datetime:
    """Returns a later time of the clock, at most the last one of the calendar."""
    try:
        return moment + length
    except OverflowError:
        return _LATEST


def after(moment: datetime, length: timedelta) -> datetime:
    """Returns the moment after a length that passes, at most the last one of the calendar.

    The length may be negative. Raises `OverflowError` before the year 1.
    """
    try:
        return (moment.astimezone(UTC) + length).astimezone(moment.tzinfo)
    except OverflowError:
        if length < timedelta():
            raise
        return _LATEST


def is_later(moment: datetime, than: datetime) -> bool:
    """Returns whether a moment comes after another one."""
    return moment.astimezone(UTC) > than.astimezone(UTC)


def midnight(moment: datetime) -> datetime:
    """Returns the moment at which the day of another one begins."""
    return moment.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


def new_year(year: int, zone: tzinfo | None) -> datetime:
    """Returns the start of a year. Raises `Refused` outside the calendar."""
    if not 1 <= year <= 9999:
        raise Refused("is not a year of the calendar", "years are 1 to 9999")
    return datetime(year, 1, 1, tzinfo=zone)


def start_of(unit: str, moment: datetime) -> datetime:
    """Returns the start of the calendar unit around a moment; a week begins on Monday."""
    if unit in _SMALL:
        hour = moment.replace(minute=0, second=0, microsecond=0)
        minute = moment.replace(second=0, microsecond=0)
        return {"hour": hour, "minute": minute}.get(unit, moment.replace(microsecond=0))
    day = midnight(moment)
    if unit == "week":
        return day - moment.weekday() * DAY
    if unit in MONTHS_OF:
        month = (moment.month - 1) // MONTHS_OF[unit] * MONTHS_OF[unit] + 1
        return day.replace(month=month, day=1)
    return day


def months_later(start: datetime, count: int) -> datetime:
    """Returns the first of the month so many months after `start`, which is a first as well.

    Raises `OverflowError` before the year 1; after 9999 it is the last moment of the calendar.
    """
    year, month = divmod(start.year * 12 + start.month - 1 + count, 12)
    if year < 1:
        raise OverflowError
    return _LATEST if year > 9999 else start.replace(year=year, month=month + 1)


def period(start: datetime, unit: str) -> Span:
    """Returns the whole calendar unit that begins at `start`."""
    count = MONTHS_OF.get(unit)
    step = after if unit in _SMALL else later
    until = months_later(start, count) if count else step(start, LENGTHS[unit])
    return Span(start, until, until)


def previous(unit: str, now: datetime, back: int) -> Span:
    """Returns the calendar unit `back` before the present one (0)."""
    start, count = start_of(unit, now), MONTHS_OF.get(unit)
    if count:
        return period(months_later(start, -back * count), unit)
    length = back * LENGTHS[unit]
    return period(after(start, -length) if unit in _SMALL else start - length, unit)


def point(moment: datetime, length: timedelta) -> Span:
    """Returns a moment that is named to a precision of `length`."""
    return Span(moment, after(moment, length), moment)


def clock_span(moment: datetime, length: timedelta) -> Span:
    """Returns a time of the clock, named to a precision of `length`.

    On the day when the clock is set back, it reaches from the first to the second such time.
    """
    second = moment.replace(fold=1)
    is_set_back = second.astimezone(UTC) > moment.astimezone(UTC)
    return Span(moment, after(second if is_set_back else moment, length), moment)


def begun(span: Span, now: datetime) -> Span:
    """Returns the part of a span that has passed; raises `Refused` if it has not begun."""
    if is_later(span.since, now):
        raise Refused("has not begun yet", "memories are of the past: name a time that has begun")
    latest = until_now(now)
    until, bound = (latest if is_later(limit, latest) else limit for limit in span[1:3])
    return span._replace(until=until, bound=bound)
