"""A whole expression: one phrase, or a span that phrases bound (`since`, `between … and …`)."""

from collections.abc import Iterator
from datetime import datetime

from mimo.domain.when import dates, daytime, last_resort, relative
from mimo.domain.when.span import Interval, Refused, Span, end

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
            if relative.amount(words) is not None:
                return None
    return relative.read(words, now) or dates.read(words, now) or daytime.read(words, now)


def _other(words: Words, now: datetime) -> Span | None:
    return last_resort.read(" ".join(words), now)


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
            yield from ((a, b) for a, b in _cut(words, {"to"}) if relative.amount(a) is None)


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
        case (*rest, "이후" | "..") if relative.amount(tuple(rest)) is None:
            return _since(phrase(tuple(rest), now), now)
        case ("after", *rest):
            return _after(phrase(tuple(rest), now), now)
        case ("until", *rest) | (*rest, "까지"):
            return _until(phrase(tuple(rest), now))
        case ("..", *rest) if relative.amount(tuple(rest)) is None:
            return _until(phrase(tuple(rest), now))
        case ("before", *rest) | (*rest, "before"):
            return _before(phrase(tuple(rest), now))
        case (*rest, "ago"):
            return _before(dates.read(tuple(rest), now))
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
