"""Time expressions such as `last week` or `지난주` -> half-open intervals in UTC.

The zone of `now` is the one in which a day begins at midnight.

The grammar is our own, because date libraries answer much of it with a wrong instant (`last 3
days` three days ahead, `this week` next Friday) and none with an interval. parsedatetime reads the
days that are counted from another one: `3 days before yesterday`. `vocabulary` turns an
expression into words, `grammar` turns words into a span, `dates` reads the places in the calendar,
and `spans` has its arithmetic. They are loaded on first use: most commands are not given a time.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, TypeVar

from mimo.errors import Invalid
from mimo.frozen import frozen
from mimo.text.calendar import MONTHS, in_zone, zone_name

if TYPE_CHECKING:
    from mimo.when.spans import Span

T = TypeVar("T")

EXAMPLES = "`today`, `last week`, `3 days ago`, `october`, `between monday and wednesday`, `지난주`"

_LEAST = timedelta(microseconds=1)
_SECOND_MOMENT = datetime.min.replace(tzinfo=UTC) + _LEAST
"""The first moment of the calendar that another one precedes."""
_LITTLE = timedelta(minutes=1)
"""Two moments that are not further apart are the same time of a day in a message."""
_MAX_LENGTH = 60
"""Characters of an expression that a message quotes."""


@frozen
class Interval:
    """A span of time `[since, until)`; an open end is None."""

    since: datetime | None = None
    until: datetime | None = None


def interval(expression: str, *, now: datetime) -> Interval:
    """Returns the interval that `expression` names, seen from `now`.

    Raises `Invalid`, quoting the expression, if it is not understood.
    """
    from mimo.when import grammar

    return _read(
        expression,
        lambda words: (named := grammar.whole(words, now) if words else None) and in_utc(named),
        "is not a time that is understood",
        f"say it like {EXAMPLES} (English and Korean are read), or give `from_date` and `to_date`",
    )


def window(
    time_filter: str | None, from_date: str | None, to_date: str | None, *, now: datetime
) -> Interval:
    """Returns the interval in which all of the given conditions hold.

    `from_date` and `to_date` are dates, or any phrase that names one; the day of `to_date` counts.
    Raises `Invalid` if a condition is not understood or no time meets them all.
    """
    base = Interval() if time_filter is None else interval(time_filter, now=now)
    start = _span(from_date, now).since if from_date is not None else None
    to_span = _span(to_date, now) if to_date is not None else None
    end = to_span and (to_span.end_from(start) if start else to_span.bound)
    since = max((moment for moment in (base.since, start) if moment), default=None)
    until = min((moment for moment in (base.until, end) if moment), default=None)
    if since and until and since >= until:
        conditions = [text for text in (time_filter, from_date, to_date) if text is not None]
        raise Invalid(
            f"no time meets {' and '.join(map(quoted, conditions))}",
            hint="the start must come before the end",
        )
    return Interval(since=since, until=until)


def in_utc(interval: Interval) -> Interval:
    """Returns the same interval with its ends in UTC."""
    since, until = interval.since, interval.until
    return Interval(
        since=since and since.astimezone(UTC),
        until=until and until.astimezone(UTC),
    )


def shown(interval: Interval, now: datetime) -> str:
    """Returns an interval as days in the zone of `now`: `10 to 16 Nov, UTC`, `since 1 Oct, UTC`.

    The year is omitted if it is the present one. A part of a day has its times. An end that is
    counted back from now, as in `last week`, has none, unless it is within one day.
    """
    return f"{_days(interval, now)}, {zone_name(now)}"


def _days(interval: Interval, now: datetime) -> str:
    end = interval.until and max(interval.until, _SECOND_MOMENT)
    since, until, stop = (
        moment and in_zone(moment, now.tzinfo)
        for moment in (interval.since, end, end and end - _LEAST)
    )
    is_timed = [bool(moment and _is_timed(moment, now)) for moment in (since, until)]
    if stop is None or until is None:
        return f"since {_day(since, now, timed=is_timed[0])}" if since else "at any time"
    if since is None:
        return f"until {_day(until if is_timed[1] else stop, now, timed=is_timed[1])}"
    if since.date() == stop.date():
        times = f", {since:%H:%M} to {stop:%H:%M}"
        return _day(stop, now) + (times if since.time() != time() or is_timed[1] else "")
    if any(is_timed):
        return f"{_day(since, now, timed=True)} to {_day(stop, now, timed=True)}"
    if since.year != stop.year:
        return f"{since.day} {_month(since)} {since.year} to {stop.day} {_month(stop)} {stop.year}"
    if since.month == stop.month:
        return f"{since.day} to {_day(stop, now)}"
    return f"{since.day} {_month(since)} to {_day(stop, now)}"


def _is_timed(moment: datetime, now: datetime) -> bool:
    """Returns whether a moment is neither the start of a day nor counted back from now.

    An end of the calendar is not a time of a day. Time may have passed since the moment was read.
    """
    if moment.time() == time() or not 1 < moment.year < 9999:
        return False
    passed = (now.replace(tzinfo=None) - moment.replace(tzinfo=None)) % timedelta(days=1)
    return _LITTLE < passed < timedelta(days=1) - _LITTLE


def _day(moment: datetime, now: datetime, *, timed: bool = False) -> str:
    year = "" if moment.year == now.year else f" {moment.year}"
    return f"{moment.day} {_month(moment)}{year}{f', {moment:%H:%M}' if timed else ''}"


def _month(moment: datetime) -> str:
    return MONTHS[moment.month - 1][:3].title()


def _span(text: str, now: datetime) -> Span:
    """Returns the span of one phrase."""
    from mimo.when import grammar

    def read(words: tuple[str, ...]) -> Span | None:
        span = grammar.limit_of(words, now)
        if span is None:
            return None
        since, until, bound = (moment.astimezone(UTC) for moment in span[:3])
        return span._replace(since=since, until=until, bound=bound)

    hint = "dates are ISO 8601, such as 2026-11-20; phrases such as `yesterday` work as well"
    return _read(text, read, "is not a date", hint)


def _read(text: str, read: Callable[[tuple[str, ...]], T | None], problem: str, hint: str) -> T:
    """Returns the result of a reader of words; raises `Invalid`, quoting the text, for None."""
    from mimo.when.spans import Refused
    from mimo.when.vocabulary import words_of

    try:
        if (result := read(words_of(text) or ())) is not None:
            return result
    except Refused as error:
        problem, hint = error.reason, error.hint
    except OverflowError:
        problem, hint = "is outside the calendar", "name a time in the years 1 to 9999"
    raise Invalid(f"{quoted(text)} {problem}", hint=hint, details={"expression": text})


def quoted(text: str) -> str:
    """Returns an expression in backticks, shortened if it is long."""
    return f"`{text if len(text) <= _MAX_LENGTH else text[: _MAX_LENGTH - 1] + '…'}`"
