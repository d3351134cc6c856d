"""Words that name a place in the calendar -> its span: `october 5`, `5th of last month`.

An ISO 8601 text, such as `2026-W07`, is one such word.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo

from mimo.text.calendar import MONTHS, WEEKDAYS
from mimo.when.spans import (
    DAY,
    LENGTHS,
    MONTHS_OF,
    Refused,
    Span,
    begun,
    clock_span,
    is_later,
    later,
    midnight,
    months_later,
    new_year,
    period,
    previous,
    start_of,
    until_now,
)
from mimo.when.vocabulary import UNITS

Words = tuple[str, ...]

BACK = {"this": 0, "last": 1, "before-last": 2}
"""How many weeks, months or years before the present one."""
_PART_OF_YEAR = "|".join((*MONTHS, "q[1-4]", "h[12]"))
IN_A_YEAR = rf"{_PART_OF_YEAR}|\d{{4}}[-/.]\d.*|\d{{8}}"
"""A word that names a part of a year, with the year or without it."""
ISO_DAY = r"(\d{4})(?:[-/]|\. ?)(\d{1,2})(?:[-/]|\. ?)(\d{1,2})\.?"
_PERIODS = ("week", "month", "quarter", "year")
_PLACES = {"h1": 0, "h2": 1, "early": 0, "mid": 1, "late": 2, "last": 0} | {
    name: number
    for number, names in enumerate(["first 1st", "second 2nd", "third 3rd", "fourth 4th"])
    for name in names.split()
}
"""Number of equal parts of a period before the one with that name; the last is counted back."""
_MOST_OF_A_YEAR = 200 * DAY
"""Any part of a year has ended so long after its start, and is still the latest one."""
_AS_IN_ISO = "dates are ISO 8601, such as 2026-11-20"
_MOST_MONTHS = 4
"""So many months in a row have a 31st."""
_LEAP_YEAR = 2024
_LEAP_CYCLE = 9
"""Every so many years in a row have a 29 February."""


def date_of(words: Words, now: datetime) -> Span | None:
    """Returns the day, the week, or the part of a year that a phrase names."""
    match words:
        case ():
            return None
        case (word,):
            return _single_word(word, now)
        case ("this", word) if word in WEEKDAYS or word in MONTHS:
            container = "week" if word in WEEKDAYS else "year"
            return _part_of(previous(container, now, back=0), word, now)
        case ("last" | "past", word) if word in WEEKDAYS or word in MONTHS:
            # The latest one that began before the present day or month.
            start = start_of("day" if word in WEEKDAYS else "month", now)
            return date_of((word,), start - timedelta(microseconds=1))
    return _dated(words, now) or _within(words, now)


def _single_word(word: str, now: datetime) -> Span | None:
    if word in WEEKDAYS:
        day = midnight(now) - DAY * ((now.weekday() - WEEKDAYS.index(word)) % 7)
        return begun(period(day, "day"), now)._replace(recurs=True)
    if re.fullmatch(_PART_OF_YEAR, word):
        return _latest(lambda year: _in_year(word, year, now.tzinfo), now)
    if word[-2:] in ("st", "nd", "rd", "th"):
        return _day_of_month(word, now)
    if word.isdecimal() and len(word) == 4:
        return period(new_year(int(word), now.tzinfo), "year")
    if word[0].isdecimal():
        return _literal(word, now.tzinfo) or _numeric(word, now)
    return None


def _latest(find: Callable[[int], Span | None], now: datetime) -> Span | None:
    """Returns the span of the latest year in which it had begun."""
    for year in range(now.year, max(now.year - _LEAP_CYCLE, 0), -1):
        span = find(year)
        if span and not is_later(span.since, now):
            return begun(span, now)._replace(recurs=True)
    return None


def _in_year(word: str, year: int, zone: tzinfo | None) -> Span | None:
    """Returns a month, a quarter or a half of a year."""
    if word in MONTHS:
        return period(months_later(new_year(year, zone), MONTHS.index(word)), "month")
    if not re.fullmatch(_PART_OF_YEAR, word):
        return None
    unit = "quarter" if word[0] == "q" else "half"
    part = MONTHS_OF[unit] * (int(word[1]) - 1)
    return period(months_later(new_year(year, zone), part), unit)


def _dated(words: Words, now: datetime) -> Span | None:
    """Returns a day, a month, a quarter or a half, with its year or without."""
    tokens = words[:-1] if words[-1] == "일" else words
    years = [word for word in tokens if len(word) == 4 and word.isdecimal()]
    names = [word for word in tokens if word not in years]
    year = int(years[0]) if years else None
    if len(years) > 1:
        return None
    match names:
        case [name] if year is not None and tokens == words and years[0] in (words[0], words[-1]):
            return _in_year(name, year, now.tzinfo)
        case [name, day] if name in MONTHS and (number := day_number(day)) is not None:
            return _one_day(name, number, year, now)
        case [day, name] if name in MONTHS and (number := day_number(day)) is not None:
            return _one_day(name, number, year, now)
    return None


def day_number(word: str) -> int | None:
    """Returns the number of a day of the month: `5`, `5th`."""
    found = re.fullmatch(r"(\d{1,2})(?:st|nd|rd|th)?", word)
    return int(found[1]) if found else None


def _one_day(month: str, day: int, year: int | None, now: datetime) -> Span:
    number = MONTHS.index(month) + 1
    _, days = monthrange(_LEAP_YEAR, number)
    if not 1 <= day <= days:
        raise Refused("is no day", f"{month.title()} has {days} days")
    if year is not None:
        return _existing_day(year, number, day, now.tzinfo)
    span = _latest(lambda year: _calendar_day(year, number, day, now.tzinfo), now)
    if span is None:
        raise Refused("names no day of the past")
    return span


def _day_of_month(word: str, now: datetime) -> Span | None:
    """Returns the latest day with a number: `the 5th`."""
    for back in range(_MOST_MONTHS):
        month = months_later(start_of("month", now), -back)
        span = _calendar_day(month.year, month.month, day_number(word) or 0, now.tzinfo)
        if span and not is_later(span.since, now):
            return begun(span, now)._replace(recurs=True)
    return None


def _calendar_day(year: int, month: int, day: int, zone: tzinfo | None) -> Span | None:
    try:
        return period(datetime(year, month, day, tzinfo=zone), "day")
    except ValueError:
        return None


def _existing_day(year: int, month: int, day: int, zone: tzinfo | None) -> Span:
    if span := _calendar_day(year, month, day, zone):
        return span
    raise Refused("is not a day of the calendar", _AS_IN_ISO)


def _within(words: Words, now: datetime) -> Span | None:
    """Returns a part of a week, month or year: `last week tuesday`, `5th of last month`."""
    if len(words) > 2 and words[-2] in BACK:
        words = (*words[-2:], *words[:-2])
    match words:
        case (which, unit, *rest) if which in BACK and unit in UNITS and rest:
            unit = UNITS[unit]
        case _:
            return None
    if unit not in ("week", "month", "year"):
        return None
    around = previous(unit, now, BACK[which])
    if len(rest) == 1 or rest[1:] == ["일"]:
        return _part_of(around, rest[0], now)
    day = _dated((*rest, f"{around.since.year:04}"), now) if unit == "year" else None
    return day and begun(day, now)


def _part_of(around: Span, word: str, now: datetime) -> Span | None:
    """Returns the weekday of a week, the day of a month, the month or quarter of a year."""
    start, length = around.since, around.until - around.since
    part: Span | None = None
    if length > 31 * DAY:
        part = _in_year(word, start.year, now.tzinfo)
    elif length > 7 * DAY:
        number = day_number(word)
        part = _existing_day(start.year, start.month, number, now.tzinfo) if number else None
    elif word in WEEKDAYS:
        part = period(start + WEEKDAYS.index(word) * DAY, "day")
    return begun(part, now) if part else None


def piece_of(words: Words, now: datetime) -> Span | None:
    """Returns days of a period: `first week of november`, `last 3 days of october`, `mid october`.

    The first week of a month is its first 7 days, its first half 15 days, and `early` 10 days.
    """
    least, longest = 7 * DAY, 366 * DAY
    match words:
        case ("h1" | "h2" as place, *rest):
            length, least, longest = 15 * DAY, 28 * DAY, 31 * DAY
        case ("early" | "mid" | "late" as place, *rest):
            length, least, longest = 10 * DAY, 28 * DAY, 31 * DAY
        case ("first" | "1st" | "last" as place, count, "day" | "week" as unit, *rest) if (
            count.isdecimal() and 0 < len(count) < 4
        ):
            length = int(count) * LENGTHS[unit]
        case (place, "day" | "week" as unit, *rest) if place in _PLACES:
            length = LENGTHS[unit]
        case _:
            return None
    around = _around(tuple(rest), now)
    if around is None or not least <= around.until - around.since <= longest:
        return None
    since = around.since + _PLACES[place] * length
    until = around.until if place in ("h2", "late") else since + length
    if place == "last":
        since, until = around.until - length, around.until
    if not length or since < around.since or until > around.until:
        return None
    return begun(Span(since, until, until, recurs=around.recurs), now)


def edge_of(words: Words, now: datetime) -> Span | None:
    """Returns the days at an end of a period: `end of last month`, `start of q3`.

    They are 2 days of a week, 7 days of a month, and a month of a longer period.
    """
    match words:
        case ("start" | "end" as edge, *rest) if rest:
            around = _around(tuple(rest), now)
        case _:
            return None
    if around is None or around.until - around.since < 7 * DAY:
        return None
    since, until = around.since, around.until
    if until - since > 31 * DAY:
        head_end, tail_start = months_later(since, 1), months_later(until, -1)
    else:
        length = 7 * DAY if until - since > 7 * DAY else 2 * DAY
        head_end, tail_start = since + length, until - length
    since, until = (since, head_end) if edge == "start" else (tail_start, until)
    return begun(Span(since, until, until, recurs=around.recurs), now)


def _around(words: Words, now: datetime) -> Span | None:
    """Returns a week, month, quarter or year of the calendar, with the days that are to come."""
    match words:
        case (unit,) if unit in _PERIODS:
            return previous(unit, now, back=0)
        case (which, unit) if which in BACK and unit in _PERIODS:
            return previous(unit, now, BACK[which])
    span = date_of(words, now)
    if span and span.until == until_now(now):
        with suppress(Refused):  # seen from a later day, it may be another one
            full_span = date_of(words, later(span.since, _MOST_OF_A_YEAR))
            return full_span if full_span and full_span.since == span.since else span
    return span


def _numeric(word: str, now: datetime) -> Span | None:
    """Returns the day of `13/11/2025`; refuses a date whose day and month could be swapped."""
    if not re.fullmatch(r"\d+[-/.]\d+(?:[-/.]\d+)?", word):
        return None
    left, second, *tail = (int(part) for part in re.split(r"[-/.]", word))
    year = tail[0] if tail else None
    if year is not None and year < 1000:
        raise Refused("has no year of four digits", "write dates as in 2026-11-20")
    if left <= 12 and second <= 12 and left != second:
        digits = f"{now.year if year is None else year:04}"
        raise Refused(
            "may mean two days",
            f"write `{digits}-{second:02}-{left:02}` or `{digits}-{left:02}-{second:02}`",
        )
    day, month = (left, second) if second <= 12 else (second, left)
    if not 1 <= month <= 12:
        raise Refused("is not a day of the calendar", "write dates as in 2026-11-20")
    return _one_day(MONTHS[month - 1], day, year, now)


def _literal(word: str, zone: tzinfo | None) -> Span | None:
    """Returns the month, week, day or moment of an ISO 8601 text in lower case, seen in a zone."""
    if found := re.fullmatch(r"(\d{4})[-/.](\d{1,2})", word):
        if not 1 <= int(found[2]) <= 12:
            raise Refused("is not a month of the calendar", "months are 1 to 12: 2026-11")
        return _in_year(MONTHS[int(found[2]) - 1], int(found[1]), zone)
    # `2026. 11. 1.` and `2026/11/1`, too
    text = re.sub(f"^{ISO_DAY}", lambda day: f"{day[1]}-{day[2]:0>2}-{day[3]:0>2}", word)
    found = re.fullmatch(r"(\d{4}-?w\d\d(-?\d)?|\d{4}-\d\d-\d\d|\d{8})(?:[t ]+(.*))?", text)
    if found is None:
        return None
    day, in_week, time = found.groups()
    is_week = "w" in day
    try:
        start = datetime.fromisoformat(day.upper()).replace(tzinfo=zone)
    except ValueError:
        if is_week:
            raise Refused("is not a week of the calendar", "weeks are as in 2026-W07") from None
        raise Refused("is not a day of the calendar", _AS_IN_ISO) from None
    if time:
        return _moment(start, time)
    return period(start, "week" if is_week and not in_week else "day")


def _moment(day: datetime, time: str) -> Span:
    """Returns the moment at a time of a day, in the zone that the text or else the day has."""
    written = re.sub(r"^(\d):", r"0\1:", re.sub(r" ?(?:utc|gmt)$", "z", time)).upper()
    try:
        moment = datetime.fromisoformat(f"{day.date()}T{written}")
    except ValueError:
        hint = "times and zones are as in 2026-11-20T15:30+09:00"
        raise Refused("is not a time of the clock", hint) from None
    precision = ("hour", "minute", "second")[re.split(r"[-+Z]", written)[0].count(":")]
    moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=day.tzinfo)
    return clock_span(moment, LENGTHS[precision])
