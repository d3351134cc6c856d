"""Time expressions such as `last week` or `지난주` -> half-open intervals in UTC.

The grammar is our own, because date libraries answer much of it with a wrong instant (`last 3
days` three days ahead, `this week` next Friday) and none with an interval. `vocabulary` turns an
expression into words, `grammar` turns words into a span. Both are loaded on first use: most
commands are not given a time.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from mimo.errors import Invalid
from mimo.frozen import frozen

if TYPE_CHECKING:
    from mimo.when.grammar import Span

T = TypeVar("T")

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

    return _read(
        expression,
        lambda words: grammar.whole(words, now) if words else None,
        "is not a time that is understood",
        f"say it like {EXAMPLES}, or give from_date and to_date",
    )


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


def _span(text: str, now: datetime | None = None) -> Span:
    """Returns the span of one phrase; without `now`, that of one ISO 8601 text."""
    from mimo.when import grammar

    def read(words: tuple[str, ...]) -> Span | None:
        if now is not None:
            return grammar.phrase(words, now)
        return grammar.literal(words[0]) if len(words) == 1 else None

    hint = "dates are ISO 8601, such as 2026-11-20; phrases such as `yesterday` work as well"
    return _read(text, read, "is not a date", hint)


def _read(text: str, read: Callable[[tuple[str, ...]], T | None], problem: str, hint: str) -> T:
    """Returns the result of a reader of words; raises `Invalid`, quoting the text, for None."""
    from mimo.when.grammar import Refused
    from mimo.when.vocabulary import words_of

    try:
        if (result := read(words_of(text) or ())) is not None:
            return result
    except Refused as error:
        problem, hint = error.reason, error.hint
    except OverflowError:
        problem, hint = "is outside the calendar", "name a time in the years 1 to 9999"
    raise Invalid(f"{_quoted(text)} {problem}", hint=hint, details={"expression": text})


def _quoted(text: str) -> str:
    return f"`{text if len(text) <= _SHOWN else text[: _SHOWN - 1] + '…'}`"
