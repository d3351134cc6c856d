"""What people say about the past, as a half-open interval in UTC.

A small grammar of our own, in English and Korean, because date libraries answer much of it with a
wrong instant (`last 3 days` three days ahead, `this week` next Friday) and none with an interval.
An expression becomes words of the grammar (`words`); phrases name spans (`relative`, `dates`,
`daytime`); a whole expression is a phrase or a span between two (`ranges`).
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from unicodedata import normalize

from mimo.errors import Invalid
from mimo.when import dates
from mimo.when.span import LENGTHS, Interval, Refused, Span, end, point
from mimo.when.vocabulary import FILLERS, KNOWN, KOREAN, tidy, words_of

# The one home of parsedatetime, which is asked only where the grammar has no answer.


_MOST_CHARACTERS = 60
_CLOCK = r"\d ?(?:am|pm)\b|\d:\d\d\b|\bnoon\b|\bmidnight\b"
_SHIFT = timedelta(days=28)
"""Back to the same weekday, and often to another month."""


def read_anything(text: str, now: datetime) -> Span | None:
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


# A whole expression: one phrase, or a span that phrases bound (`since`, `between … and …`).


Words = tuple[str, ...]

_TO = frozenset({"to", "until", ".."})


def read(words: Words, now: datetime) -> Interval | None:
    """Returns what an expression means; None where it is not understood."""
    if span := _phrase(words, now):
        return Interval(since=span.since, until=span.until)
    found = _both_ends(words, now) or _one_end(words, now)
    if found is None and (span := _other(words, now)):
        return Interval(since=span.since, until=span.until)
    return found


def phrase(words: Words, now: datetime) -> Span | None:
    """Returns what a phrase that bounds something means; None where it is not understood."""
    return _phrase(words, now) or _other(words, now)


def _phrase(words: Words, now: datetime) -> Span | None:
    match words:
        case ():
            return None
        case ("in", *rest):
            words = tuple(rest)
            if dates.amount(words) is not None:
                return None
    return (
        dates.read_relative(words, now)
        or dates.read_date(words, now)
        or dates.read_daytime(words, now)
    )


def _other(words: Words, now: datetime) -> Span | None:
    return read_anything(" ".join(words), now)


def _both_ends(words: Words, now: datetime) -> Interval | None:
    for first_words, last_words in _splits(words):
        left = dates.in_month_of(last_words, first_words)
        right = dates.in_month_of(first_words, last_words)
        if (last := phrase(right, now)) and (first := phrase(left, now)):
            return _between(left, first, last)
    return None


def _splits(words: Words) -> Iterator[tuple[Words, Words]]:
    """Yields the two phrases that an expression with two ends may consist of."""
    match words:
        case ("between", *rest):
            yield from _cut(tuple(rest), {"and", ".."})
        case ("from" | "since", *rest):
            yield from _cut(tuple(rest), _TO)
        case (*rest, "사이"):
            yield from _cut(tuple(rest), {"와", "부터", ".."})
        case _:
            last = words[:-1] if words[-1:] == ("까지",) else words
            yield from _cut(last, {"부터", ".."})
            yield from ((a, b) for a, b in _cut(words, {"to"}) if dates.amount(a) is None)


def _cut(words: Words, at: set[str] | frozenset[str]) -> Iterator[tuple[Words, Words]]:
    """Yields what stands before and after the first word that parts them."""
    for place, word in enumerate(words):
        if word in at:
            yield words[:place], words[place + 1 :]
            return


def _between(words: Words, first: Span, last: Span) -> Interval:
    """Returns the time from the start of one to the end of the other.

    Of what recurs, the first end is the latest before the last one: `from friday to monday`.
    """
    if first.since > last.since and first.recurs:
        first = _phrase(words, last.since) or first
    if first.since > last.since:
        first, last = last, first
    return Interval(since=first.since, until=max(last.bound, first.since))


def _one_end(words: Words, now: datetime) -> Interval | None:
    match words:
        case ("since" | "from", *rest) | (*rest, "부터") | (*rest, "부터", ".."):
            return _since(phrase(tuple(rest), now), now)
        case (*rest, "이후" | "..") if dates.amount(tuple(rest)) is None:
            return _since(phrase(tuple(rest), now), now)
        case ("after", *rest):
            return _after(phrase(tuple(rest), now), now)
        case ("until", *rest) | (*rest, "까지"):
            return _until(phrase(tuple(rest), now))
        case ("..", *rest) if dates.amount(tuple(rest)) is None:
            return _until(phrase(tuple(rest), now))
        case ("before", *rest) | (*rest, "before"):
            return _before(phrase(tuple(rest), now))
        case (*rest, "ago"):
            return _before(dates.read_date(tuple(rest), now))
    return None


def _since(span: Span | None, now: datetime) -> Interval | None:
    if span is None:
        return None
    return Interval(since=span.since, until=end(now) if span.since <= now else None)


def _after(span: Span | None, now: datetime) -> Interval | None:
    if span is None:
        return None
    if span.bound == end(now):
        raise Refused("has nothing after it: it has not ended yet", "`since` counts it, too")
    return Interval(since=span.bound, until=end(now) if span.bound <= now else None)


def _until(span: Span | None) -> Interval | None:
    return Interval(until=span.bound) if span else None


def _before(span: Span | None) -> Interval | None:
    return Interval(until=span.since) if span else None


# What somebody meant who misspelt an expression.


_MOST_WORDS = 8
_ALIKE = 0.7
_ENGLISH = sorted(word for word in KNOWN - FILLERS if len(word) > 2 and word.isalpha())
_KOREAN = [
    *(word for word in KOREAN if len(word) > 1),
    *(
        which + unit
        for which in ("이번", "지난", "지지난")
        for unit in ("주", "달", "주말", "분기")
    ),
]


def suggestion(expression: str, now: datetime) -> str | None:
    """Returns an expression like this one that is understood; None where none is near."""
    words = tidy(expression[:200]).split()
    if len(words) > _MOST_WORDS:
        return None
    mended = " ".join(_mended(word) for word in words)
    try:
        meant = words_of(mended)
        understood = meant and mended != " ".join(words) and read(meant, now)
    except (OverflowError, Refused):
        return None
    return mended if understood else None


def _mended(word: str) -> str:
    """Returns the known word that is spelled most like this one, or the word itself."""
    if word in KNOWN or not word.isalpha():
        return word
    from difflib import get_close_matches

    known = _KOREAN if "가" <= word[0] <= "힣" else _ENGLISH
    # Letters of Hangul are compared, not syllables.
    letters = {normalize("NFD", one): one for one in known}
    near = get_close_matches(normalize("NFD", word), letters, n=1, cutoff=_ALIKE)
    return letters[near[0]] if near else word


EXAMPLES = "`today`, `last week`, `3 days ago`, `october`, `between monday and wednesday`, `지난주`"

_SHOWN = 60
"""Characters of an expression that a message quotes."""


def interval(expression: str, *, now: datetime) -> Interval:
    """Returns the span of time that `expression` names, seen from `now` (UTC).

    Raises `Invalid`, quoting the expression, where it is not understood.
    """
    # Most commands name no time and need not load the grammar.

    from mimo.when.vocabulary import words_of

    words = words_of(expression)
    try:
        found = read(words, now) if words else None
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
    from mimo.when.dates import literal
    from mimo.when.vocabulary import words_of

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
    from mimo.when.vocabulary import words_of

    words = words_of(text)
    try:
        span = phrase(words, now) if words else None
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

    near = suggestion(expression, now)
    details = {"expression": expression} | ({"suggestion": near} if near else {})
    meant = f"did you mean `{near}`? " if near else ""
    return Invalid(
        f"{_quoted(expression)} is not a time that is understood",
        hint=f"{meant}say it like {EXAMPLES}, or give from_date and to_date",
        details=details,
    )
