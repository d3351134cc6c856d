"""Time expressions such as `last week` or `지난주` -> half-open intervals in UTC.

The grammar is our own, because date libraries answer much of it with a wrong instant (`last 3
days` three days ahead, `this week` next Friday) and none with an interval. `vocabulary` turns an
expression into words, `grammar` turns words into a span. Both are loaded on first use: most
commands are not given a time.
"""

from datetime import datetime
from typing import TYPE_CHECKING

from mimo.errors import Invalid
from mimo.frozen import frozen

if TYPE_CHECKING:
    from mimo.when.grammar import Span

EXAMPLES = "`today`, `last week`, `3 days ago`, `october`, `between monday and wednesday`, `지난주`"

_SHOWN = 60
"""Characters of an expression that a message quotes."""


@frozen
class Interval:
    """A span of time `[since, until)`; an open end is None."""

    since: datetime | None = None
    until: datetime | None = None


def interval(expression: str, *, now: datetime) -> Interval:
    """Returns the interval that `expression` names, seen from `now` (UTC).

    Raises `Invalid`, quoting the expression, if it is not understood.
    """
    from mimo.when import grammar
    from mimo.when.vocabulary import words_of

    words = words_of(expression)
    try:
        interval = grammar.whole(words, now) if words else None
    except (OverflowError, grammar.Refused) as error:
        raise _refused(expression, error) from None
    if interval is None:
        raise Invalid(
            f"{_quoted(expression)} is not a time that is understood",
            hint=f"say it like {EXAMPLES}, or give from_date and to_date",
            details={"expression": expression},
        )
    return interval


def instant(text: str, *, end: bool = False) -> datetime:
    """Returns the instant that an ISO 8601 text names, in UTC; a text without a zone means UTC.

    With `end`, a day, a week or a month gives its end, so that an interval between two dates
    includes the second one. Raises `Invalid` for any other text.
    """
    span = _span(text)
    return span.bound if end else span.since


def window(
    time_filter: str | None, from_date: str | None, to_date: str | None, *, now: datetime
) -> Interval:
    """Returns the interval in which all of the given conditions hold.

    `from_date` and `to_date` are dates, or any phrase that names one; the day of `to_date` counts.
    Raises `Invalid` if a condition is not understood or no time meets them all.
    """
    base = Interval() if time_filter is None else interval(time_filter, now=now)
    starts = [base.since, _span(from_date, now).since if from_date is not None else None]
    ends = [base.until, _span(to_date, now).bound if to_date is not None else None]
    since = max((moment for moment in starts if moment), default=None)
    until = min((moment for moment in ends if moment), default=None)
    if since and until and since > until:
        conditions = [text for text in (time_filter, from_date, to_date) if text is not None]
        raise Invalid(
            f"no time meets {' and '.join(map(_quoted, conditions))}",
            hint="the start must come before the end",
        )
    return Interval(since=since, until=until)


def _span(text: str, now: datetime | None = None) -> "Span":
    """Returns the span of one phrase; without `now`, that of one ISO 8601 text."""
    from mimo.when import grammar
    from mimo.when.vocabulary import words_of

    words = words_of(text) or ()
    try:
        if now is not None:
            span = grammar.phrase(words, now)
        else:
            span = grammar.literal(words[0]) if len(words) == 1 else None
    except (OverflowError, grammar.Refused) as error:
        raise _refused(text, error) from None
    if span is None:
        raise Invalid(
            f"{_quoted(text)} is not a date",
            hint="dates are ISO 8601, such as 2026-11-20; phrases such as `yesterday` work as well",
            details={"expression": text},
        )
    return span


def _quoted(text: str) -> str:
    return f"`{text if len(text) <= _SHOWN else text[: _SHOWN - 1] + '…'}`"


def _refused(expression: str, error: Exception) -> Invalid:
    reason = getattr(error, "reason", "is outside the calendar")
    hint = getattr(error, "hint", "name a time in the years 1 to 9999")
    return Invalid(f"{_quoted(expression)} {reason}", hint=hint, details={"expression": expression})
