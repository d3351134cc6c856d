"""What people say about the past, as a half-open interval in UTC.

A small grammar of our own, because date libraries answer many of these with a wrong instant
(`last 3 days` three days ahead, `this week` next Friday) and none with an interval.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from mimo.errors import Invalid
from mimo.frozen import frozen

EXAMPLES = "`today`, `yesterday`, `last week`, `3 days ago`, `between monday and wednesday`"

_UNITS = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
    "month": timedelta(days=30),
    "year": timedelta(days=365),
}
_UNIT = r"(?P<unit>minute|hour|day|week|month|year)s?"
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAY = "|".join(_DAYS)


@frozen
class Interval:
    """A span of time `[since, until)`; an open end is None."""

    since: datetime | None = None
    until: datetime | None = None


def _end(now: datetime) -> datetime:
    """Returns the end of a span that reaches to now, which itself belongs to it.

    Memories are dated to the second, so the span ends a second later.
    """
    return now + timedelta(seconds=1)


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _today(_: re.Match[str], now: datetime) -> Interval:
    return Interval(since=_midnight(now), until=_end(now))


def _yesterday(_: re.Match[str], now: datetime) -> Interval:
    return Interval(since=now - timedelta(days=1), until=_end(now))


def _this(match: re.Match[str], now: datetime) -> Interval:
    start = _midnight(now)
    match match["unit"]:
        case "week":
            start -= timedelta(days=start.weekday())
        case "month":
            start = start.replace(day=1)
        case _:
            start = start.replace(month=1, day=1)
    return Interval(since=start, until=_end(now))


def _back(match: re.Match[str], now: datetime) -> Interval:
    count = int(match["count"]) if match["count"] else 1
    try:
        return Interval(since=now - count * _UNITS[match["unit"]], until=_end(now))
    except OverflowError:
        raise Invalid(f"`{match[0]}` is before the calendar begins") from None


def _weekday(name: str, now: datetime) -> datetime:
    """Returns the start of the most recent day of that name, today included."""
    return _midnight(now) - timedelta(days=(now.weekday() - _DAYS.index(name)) % 7)


def _one_weekday(match: re.Match[str], now: datetime) -> Interval:
    start = _weekday(match["day"], now)
    return Interval(since=start, until=min(_end(now), start + timedelta(days=1)))


def _between_weekdays(match: re.Match[str], now: datetime) -> Interval:
    first, last = _weekday(match["first"], now), _weekday(match["last"], now)
    if first > last:
        first -= timedelta(days=7)
    return Interval(since=first, until=last + timedelta(days=1))


def _between_dates(match: re.Match[str], _: datetime) -> Interval:
    first, last = instant(match["first"]), instant(match["last"], end=True)
    return Interval(since=min(first, last), until=max(first, last))


def _date(match: re.Match[str], _: datetime) -> Interval:
    return Interval(since=instant(match["first"]), until=instant(match["first"], end=True))


_ISO = r"\d{4}-\d{2}-\d{2}(?:[t ][\d:.]+(?:z|[+-]\d{2}:?\d{2})?)?"
_RULES: tuple[tuple[str, Callable[[re.Match[str], datetime], Interval]], ...] = (
    (r"today", _today),
    (r"yesterday", _yesterday),
    (r"this (?P<unit>week|month|year)", _this),
    (rf"(?:the )?(?:last|past) (?:(?P<count>\d{{1,6}}) )?{_UNIT}", _back),
    (rf"(?:since )?(?P<count>\d{{1,6}}) {_UNIT} ago", _back),
    (rf"(?:since )?an? (?P<count>){_UNIT} ago", _back),
    (rf"(?:(?:on|last) )?(?P<day>{_DAY})", _one_weekday),
    (rf"(?:between|from) (?P<first>{_DAY}) (?:and|to) (?P<last>{_DAY})", _between_weekdays),
    (rf"(?:between|from) (?P<first>{_ISO}) (?:and|to) (?P<last>{_ISO})", _between_dates),
    (rf"(?:on )?(?P<first>{_ISO})", _date),
)


def interval(expression: str, *, now: datetime) -> Interval:
    """Returns the span of time that `expression` names, seen from `now` (UTC).

    Raises `Invalid`, quoting the expression, where it is not understood.
    """
    words = " ".join(expression.lower().split())
    for pattern, rule in _RULES:
        if match := re.fullmatch(pattern, words):
            return rule(match, now)
    raise Invalid(
        f"`{expression}` is not a time that is understood",
        hint=f"say it like {EXAMPLES}, or give from_date and to_date",
        details={"expression": expression},
    )


def instant(text: str, *, end: bool = False) -> datetime:
    """Returns the instant that an ISO 8601 text names, in UTC; a bare text means UTC.

    With `end`, a date without a time stands for the end of that day, so that an interval that is
    named by two dates includes the second one. Raises `Invalid` where it is no such text.
    """
    try:
        moment = datetime.fromisoformat(text.strip().upper())
    except ValueError:
        raise Invalid(
            f"`{text}` is not a date", hint="dates are ISO 8601, such as 2026-11-20"
        ) from None
    if end and len(text.strip()) == len("2026-11-20"):
        moment += timedelta(days=1)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def window(
    time_filter: str | None, from_date: str | None, to_date: str | None, *, now: datetime
) -> Interval:
    """Returns the interval in which all of the given conditions hold."""
    base = interval(time_filter, now=now) if time_filter else Interval()
    since = max((t for t in (base.since, _maybe(from_date)) if t), default=None)
    until = min((t for t in (base.until, _maybe(to_date, end=True)) if t), default=None)
    return Interval(since=since, until=until)


def _maybe(text: str | None, *, end: bool = False) -> datetime | None:
    return instant(text, end=end) if text else None
