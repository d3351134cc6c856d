"""The one home of parsedatetime, which is asked only where the grammar has no answer.

It knows more ways to say a moment, and guesses wildly: much of what it answers lies in the future,
is read from a part of the text, or comes from the machine's own clock. So an answer counts only if
the text tells one time of the clock and was read whole, it has a date and a time, it has passed,
and it moves along with the time that it is seen from, which neither a guess by another clock nor a
date in American order does.
"""

import re
from datetime import UTC, datetime, timedelta

from mimo.domain.when.span import LENGTHS, Span, point

_MOST_CHARACTERS = 60
_CLOCK = r"\d ?(?:am|pm)\b|\d:\d\d\b|\bnoon\b|\bmidnight\b"
_SHIFT = timedelta(days=28)
"""Back to the same weekday, and often to another month."""


def read(text: str, now: datetime) -> Span | None:
    """Returns the minute that a phrase surely names, seen from `now`; None for any other."""
    if len(text) > _MOST_CHARACTERS or not text.isascii() or len(re.findall(_CLOCK, text)) != 1:
        return None
    seen = now.astimezone(UTC).replace(tzinfo=None, microsecond=0)
    try:
        moment, before = _parsed(text, seen), _parsed(text, seen - _SHIFT)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None
    if moment is None or before is None or moment > seen or moment - before != _SHIFT:
        return None
    return point(moment.replace(tzinfo=UTC), LENGTHS["minute"])


def _parsed(text: str, seen: datetime) -> datetime | None:
    """Returns the moment if the whole text was read as a date with a time of day."""
    import parsedatetime

    constants = parsedatetime.Constants("en_US", usePyICU=False)
    calendar = parsedatetime.Calendar(constants, version=parsedatetime.VERSION_CONTEXT_STYLE)
    found = calendar.nlp(text, sourceTime=seen)
    if not found or len(found) != 1 or found[0][4] != text:
        return None
    moment, context = calendar.parseDT(text, sourceTime=seen)
    return moment if context.hasDate and context.hasTime else None
