"""Phrases that are counted from now: yesterday, this week, last month, 3 days ago."""

from datetime import datetime, timedelta

from mimo.domain.when.span import (
    DAY,
    LENGTHS,
    Refused,
    Span,
    begun,
    end,
    later,
    midnight,
    period,
    point,
    previous,
    start_of,
)
from mimo.domain.when.vocabulary import UNITS, VAGUE

_ROLLING = frozenset({"second", "minute", "hour", "day", "week", "fortnight", "month"})
"""Units of which the last one reaches back from now; `last year` is the calendar's."""

Words = tuple[str, ...]


def read(words: Words, now: datetime) -> Span | None:
    """Returns what a phrase means that is counted from `now`; None for any other."""
    match words:
        case ("now",):
            return point(now, LENGTHS["second"])
        case ("today",):
            return begun(period(midnight(now), "day"), now)
        case ("yesterday",):
            return Span(now - DAY, end(now), midnight(now))
        case ("day", "before", "yesterday"):
            return period(midnight(now) - 2 * DAY, "day")
        case ("this", unit):
            return _calendar(unit, now, back=0)
        case ("last" | "past", unit):
            return _last(words[0], unit, now)
        case ("before-last", unit):
            return _calendar(unit, now, back=2)
        case (unit, "before", "last"):
            return _calendar(unit, now, back=2)
        case ("weekend",):
            return _weekend(now, back=0 if now.weekday() >= 5 else 1)
    return _counted(words, now)


def _calendar(word: str, now: datetime, back: int) -> Span | None:
    """Returns the calendar's unit so many before this one."""
    unit = UNITS.get(word)
    if word == "weekend":
        return _weekend(now, back)
    return begun(previous(unit, now, back), now) if unit and unit != "fortnight" else None


def _last(which: str, word: str, now: datetime) -> Span | None:
    unit = UNITS.get(word)
    if word == "weekend":
        return _weekend(now, back=1)
    if unit is None:
        return None
    if unit in _ROLLING or which == "past":
        return Span(now - LENGTHS[unit], end(now), start_of(unit, now))
    return previous(unit, now, back=1)


def _weekend(now: datetime, back: int) -> Span:
    saturday = start_of("week", now) + (5 - 7 * back) * DAY
    monday = later(saturday, 2 * DAY)
    return begun(Span(saturday, monday, monday), now)


def _counted(words: Words, now: datetime) -> Span | None:
    """Returns the time from so long ago until now."""
    match words:
        case (*rest, "ago"):
            length = amount(tuple(rest))
        case ("last" | "past", *rest, "within") | ("last" | "past", *rest) | (*rest, "within"):
            length = amount(tuple(rest))
        case _:
            length = amount(words) if "일" not in words else None
    return None if length is None else Span(now - length, end(now), now - length)


def amount(words: Words) -> timedelta | None:
    """Returns the length of `3 days`, `1 hour 30 minutes`, `a couple of weeks`, `half a year`."""
    total, rest = timedelta(), list(words)
    while rest:
        match rest:
            case ["and", *rest] if total and rest:
                pass
            case ["half", "1", unit, *rest] if unit in UNITS:
                total += LENGTHS[UNITS[unit]] / 2
            case ["1", ("couple" | "few") as vague, unit, *rest] if unit in UNITS:
                total += VAGUE[vague] * LENGTHS[UNITS[unit]]
            case [count, unit, *rest] if unit in UNITS and (number := _number(count)) is not None:
                total += number * LENGTHS[UNITS[unit]]
            case [count, "m", *rest] if _number(count) is not None:
                raise Refused("may mean minutes or months", f"write `{count}min` or `{count}mo`")
            case _:
                return None
    return total if words else None


def _number(word: str) -> float | None:
    if word in VAGUE:
        return VAGUE[word]
    if "." in word:
        return float(word) if word.replace(".", "", 1).isdecimal() else None
    return int(word) if word.isdecimal() and len(word) <= 10 else None
