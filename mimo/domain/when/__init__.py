"""What people say about the past, as a half-open interval in UTC.

A small grammar of our own, in English and Korean, because date libraries answer much of it with a
wrong instant (`last 3 days` three days ahead, `this week` next Friday) and none with an interval.
An expression becomes words of the grammar (`words`); phrases name spans (`relative`, `dates`,
`daytime`); a whole expression is a phrase or a span between two (`ranges`).
"""

from datetime import datetime

from mimo.domain.when.span import Interval, Refused, Span
from mimo.errors import Invalid

__all__ = ["EXAMPLES", "Interval", "instant", "interval", "window"]

EXAMPLES = "`today`, `last week`, `3 days ago`, `october`, `between monday and wednesday`, `지난주`"

_SHOWN = 60
"""Characters of an expression that a message quotes."""


def interval(expression: str, *, now: datetime) -> Interval:
    """Returns the span of time that `expression` names, seen from `now` (UTC).

    Raises `Invalid`, quoting the expression, where it is not understood.
    """
    # Most commands name no time and need not load the grammar.
    from mimo.domain.when import ranges
    from mimo.domain.when.words import words_of

    words = words_of(expression)
    try:
        found = ranges.read(words, now) if words else None
    except (OverflowError, Refused) as error:
        raise _refused(expression, error) from None
    if found is None:
        raise _not_understood(expression, now)
    return found


def instant(text: str, *, end: bool = False) -> datetime:
    """Returns the instant that an ISO 8601 text names, in UTC; a bare text means UTC.

    With `end`, a day, a week or a month stands for its end, so that an interval that is named by
    two dates includes the second one. Raises `Invalid` where it is no such text.
    """
    from mimo.domain.when.dates import literal
    from mimo.domain.when.words import words_of

    words = words_of(text) or ()
    try:
        span = literal(words[0]) if len(words) == 1 else None
    except (OverflowError, Refused) as error:
        raise _refused(text, error) from None
    if span is None:
        raise _no_date(text)
    return span.bound if end else span.since


def window(
    time_filter: str | None, from_date: str | None, to_date: str | None, *, now: datetime
) -> Interval:
    """Returns the interval in which all of the given conditions hold.

    `from_date` and `to_date` are dates, or any phrase that names one; the day of `to_date` counts.
    Raises `Invalid` where one is not understood or no time meets them all.
    """
    base = Interval() if time_filter is None else interval(time_filter, now=now)
    starts = [base.since, _bound(from_date, now).since if from_date is not None else None]
    ends = [base.until, _bound(to_date, now).bound if to_date is not None else None]
    since = max((moment for moment in starts if moment), default=None)
    until = min((moment for moment in ends if moment), default=None)
    if since and until and since > until:
        given = " and ".join(
            _quoted(text) for text in (time_filter, from_date, to_date) if text is not None
        )
        raise Invalid(f"no time meets {given}", hint="the start must come before the end")
    return Interval(since=since, until=until)


def _bound(text: str, now: datetime) -> Span:
    """Returns what bounds an interval on one side."""
    from mimo.domain.when import ranges
    from mimo.domain.when.words import words_of

    words = words_of(text)
    try:
        span = ranges.phrase(words, now) if words else None
    except (OverflowError, Refused) as error:
        raise _refused(text, error) from None
    if span is None:
        raise _no_date(text)
    return span


def _quoted(text: str) -> str:
    return f"`{text if len(text) <= _SHOWN else text[: _SHOWN - 1] + '…'}`"


def _refused(expression: str, error: Exception) -> Invalid:
    details = {"expression": expression}
    if isinstance(error, Refused):
        message = f"{_quoted(expression)} {error.reason}"
        return Invalid(message, hint=error.hint, details=details)
    return Invalid(
        f"{_quoted(expression)} lies outside the calendar",
        hint="name a time in the years 1 to 9999",
        details=details,
    )


def _no_date(text: str) -> Invalid:
    return Invalid(
        f"{_quoted(text)} is not a date",
        hint="dates are ISO 8601, such as 2026-11-20; `yesterday` and its like are understood, too",
        details={"expression": text},
    )


def _not_understood(expression: str, now: datetime) -> Invalid:
    from mimo.domain.when.nearest import suggestion

    near = suggestion(expression, now)
    details = {"expression": expression} | ({"suggestion": near} if near else {})
    meant = f"did you mean `{near}`? " if near else ""
    return Invalid(
        f"{_quoted(expression)} is not a time that is understood",
        hint=f"{meant}say it like {EXAMPLES}, or give from_date and to_date",
        details=details,
    )
