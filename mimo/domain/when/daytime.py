"""Phrases that name a part of a day or a time of it: `tuesday night`, `yesterday at 3pm`."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from mimo.domain.when import dates
from mimo.domain.when.span import DAY, LENGTHS, Refused, Span, begun, midnight, point
from mimo.domain.when.vocabulary import PARTS

Words = tuple[str, ...]

_DAWN = 6
"""Before this hour the night belongs to the day before."""


def read(words: Words, now: datetime) -> Span | None:
    """Returns what a phrase means that names less than a day; None for any other."""
    today = midnight(now)
    match words:
        case ("tonight",):
            words = ("this", "night")
        case (part, *day) if part in PARTS and day and (found := _day(tuple(day), now)):
            return _part(found, part, now)
    match words:
        case ("this", part) if part in PARTS:
            begins = today - DAY if part == "night" and now.hour < _DAWN else today
            return _part(begins, part, now)
        case ("last" | "past", part) if part in PARTS:
            return _part(today - DAY, part, now)
        case (*day, part) if part in PARTS and (found := _day(tuple(day), now)):
            return _part(found, part, now)
    return _timed(words, now)


def _day(words: Words, now: datetime) -> datetime | None:
    """Returns the midnight of the one day that a phrase names."""
    match words:
        case () | ("today",):
            return midnight(now)
        case ("yesterday",):
            return midnight(now) - DAY
        case ("day", "before", "yesterday"):
            return midnight(now) - 2 * DAY
    span = dates.read(words, now)
    if span and span.since == midnight(span.since) and span.until - span.since <= DAY:
        return span.since
    return None


def _part(day: datetime, part: str, now: datetime) -> Span:
    first, last = PARTS[part]
    until = day + last * LENGTHS["hour"]
    return begun(Span(day + first * LENGTHS["hour"], until, until), now)


def _timed(words: Words, now: datetime) -> Span | None:
    """Returns the hour or the minute of a day that a phrase names."""
    for day, time in _splits(words):
        clock = _clock(time)
        start = _day(day, now) if clock else None
        if clock and start:
            return begun(point(start + clock[0], clock[1]), now)
    return None


def _splits(words: Words) -> Iterator[tuple[Words, Words]]:
    """Yields the words as a day and a time of it, in either order."""
    for place in range(len(words)):
        yield words[:place], words[place:]
        yield words[place + 1 :], words[: place + 1]


def _clock(words: Words) -> tuple[timedelta, timedelta] | None:
    """Returns a time of day, and how exact it is."""
    match words:
        case ("noon",):
            return 12 * LENGTHS["hour"], LENGTHS["hour"]
        case (time, ("am" | "pm") as half) | (("am" | "pm") as half, time, "시"):
            return _on_clock(time, "", half)
        case (time,) if ":" in time:
            return _on_clock(time, "", "")
        case (hour, "시"):
            return _on_clock(hour, "", "")
        case (("am" | "pm") as half, hour, "시", *rest):
            return _on_clock(hour, _minutes(rest), half)
        case (hour, "시", *rest):
            return _on_clock(hour, _minutes(rest), "")
    return None


def _minutes(words: list[str]) -> str:
    match words:
        case ["half"]:
            return "30"
        case [minutes, "minute"]:
            return minutes
    return "?"


def _on_clock(time: str, minutes: str, half: str) -> tuple[timedelta, timedelta] | None:
    hour, _, behind = time.partition(":")
    minutes = minutes or behind
    if not hour.isdecimal() or not (minutes or "0").isdecimal() or len(hour + minutes) > 4:
        return None
    of_day = int(hour) % 12 + 12 * (half == "pm") if half else int(hour)
    if of_day > 23 or int(minutes or 0) > 59 or (half and not 1 <= int(hour) <= 12):
        raise Refused("names no time of the clock", "times are as in `3pm` or `15:30`")
    moment = timedelta(hours=of_day, minutes=int(minutes or 0))
    return moment, LENGTHS["minute" if minutes else "hour"]
