"""Phrases that are counted from now: yesterday, this week, last month, 3 days ago."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta

from mimo.when.span import (
    DAY,
    LENGTHS,
    Refused,
    Span,
    begun,
    end,
    later,
    midnight,
    months,
    period,
    point,
    previous,
    start_of,
)
from mimo.when.vocabulary import MONTHS, PARTS, THIRDS, UNITS, VAGUE, WEEKDAYS

# Phrases that name a place in the calendar: a weekday, a month, a day, a quarter, an ISO date.


Words = tuple[str, ...]

BACK = {"this": 0, "last": 1, "before-last": 2}
"""How many weeks, months or years before the present one is meant."""

_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_LEAP_CYCLE = 9
"""Within so many years there is a 29 February."""


def read_date(words: Words, now: datetime) -> Span | None:
    """Returns what a phrase means that names a place in the calendar; None for any other."""
    match words:
        case ():
            return None
        case (word,):
            return _alone(word, now)
        case ("last" | "past" | "this", word) if word in WEEKDAYS or word in MONTHS:
            return _which(words[0], word, now)
        case (third, *rest) if third in THIRDS:
            return _third(THIRDS[third], tuple(rest), now)
        case (*rest, third) if third in THIRDS:
            return _third(THIRDS[third], tuple(rest), now)
    return _dated(words, now) or _within(words, now) or _within_last(words, now)


def _alone(word: str, now: datetime) -> Span | None:
    if word in WEEKDAYS:
        return _recurring(period(weekday(word, now), "day"), now)
    if word in MONTHS or _part_of_year(word):
        return _latest(lambda year: _in_year(word, year), now)
    if word.isdecimal() and len(word) == 4:
        return period(_first(int(word)), "year")
    if word[0].isdecimal():
        return literal(word) or _numeric(word, now)
    return None


def weekday(name: str, now: datetime) -> datetime:
    """Returns the start of the latest day of that name, today included."""
    return midnight(now) - DAY * ((now.weekday() - WEEKDAYS.index(name)) % 7)


def _recurring(span: Span, now: datetime) -> Span:
    return begun(span, now)._replace(recurs=True)


def _which(which: str, word: str, now: datetime) -> Span | None:
    """Returns the last or this weekday or month: the last one began before the present one."""
    if which == "this":
        container = "week" if word in WEEKDAYS else "year"
        return _inside(word, previous(container, now, back=0), now)
    unit = "day" if word in WEEKDAYS else "month"
    before = previous(unit, now, back=1)
    return read_date((word,), before.until - timedelta(microseconds=1))


def _latest(find: Callable[[int], Span | None], now: datetime) -> Span | None:
    """Returns the span of the latest year in which it had begun."""
    for year in range(now.year, max(now.year - _LEAP_CYCLE, 0), -1):
        span = find(year)
        if span and span.since <= now:
            return _recurring(span, now)
    return None


def _first(year: int) -> datetime:
    if not 1 <= year <= 9999:
        raise Refused("is not a year of the calendar", "years are 1 to 9999")
    return datetime(year, 1, 1, tzinfo=UTC)


def _part_of_year(word: str) -> tuple[int, str] | None:
    """Returns the months before a quarter or a half of a year, and which of both it is."""
    match re.fullmatch(r"([qh])([1-4])", word):
        case None:
            return None
        case found if found[1] == "q":
            return 3 * (int(found[2]) - 1), "quarter"
        case found if found[2] in "12":
            return 6 * (int(found[2]) - 1), "half"
    return None


def _in_year(word: str, year: int) -> Span | None:
    """Returns a month, a quarter or a half of a year."""
    if word in MONTHS:
        return period(months(_first(year), MONTHS.index(word)), "month")
    part = _part_of_year(word)
    return period(months(_first(year), part[0]), part[1]) if part else None


def _day_of(word: str) -> int | None:
    found = re.fullmatch(r"(\d{1,2})(?:st|nd|rd|th)?", word)
    return int(found[1]) if found else None


def _year(word: str) -> int | None:
    return int(word) if len(word) == 4 and word.isdecimal() else None


def _dated(words: Words, now: datetime) -> Span | None:
    """Returns a day, a month, a quarter or a half, with its year or without."""
    rest = words[:-1] if words[-1] == "일" else words
    years = [word for word in rest if _year(word) is not None]
    others = [word for word in rest if _year(word) is None]
    if len(years) > 1 or not others:
        return None
    year = int(years[0]) if years else None
    match others:
        case [name] if year is not None and rest == words and years[0] in (words[0], words[-1]):
            return _in_year(name, year)
        case [name, day] if name in MONTHS and (number := _day_of(day)) is not None:
            return _one_day(name, number, year, now)
        case [day, name] if name in MONTHS and (number := _day_of(day)) is not None:
            return _one_day(name, number, year, now)
    return None


def _one_day(month: str, day: int, year: int | None, now: datetime) -> Span:
    number = MONTHS.index(month) + 1
    if not 1 <= day <= _DAYS[number - 1]:
        raise Refused("is no day", f"{month.title()} has {_DAYS[number - 1]} days")
    if year is not None:
        return _calendar_day(year, number, day)
    found = _latest(lambda one: _existing(one, number, day), now)
    if found is None:
        raise Refused("names no day of the past")
    return found


def _existing(year: int, month: int, day: int) -> Span | None:
    try:
        return period(datetime(year, month, day, tzinfo=UTC), "day")
    except ValueError:
        return None


def in_month_of(dated: Words, day: Words) -> Words:
    """Returns a day that is said without its month as a day of the month of another one.

    `oct 5 to 9` and `5 to 9 october` name the month once; anything else stays as it is.
    """
    places = [place for place, word in enumerate(dated) if _day_of(word) is not None]
    alone = len(day) == 1 or day[1:] == ("일",)
    if not alone or _day_of(day[0]) is None or len(places) != 1 or not set(MONTHS) & set(dated):
        return day
    return (*dated[: places[0]], day[0], *dated[places[0] + 1 :])


def _calendar_day(year: int, month: int, day: int) -> Span:
    found = _existing(year, month, day)
    if found is None:
        raise Refused("is not a day of the calendar", "dates are ISO 8601, such as 2026-11-20")
    return found


def _within(words: Words, now: datetime) -> Span | None:
    """Returns a part of this or the last week, month or year: `last week tuesday`."""
    match words:
        case (which, unit, *rest) if which in BACK and unit in UNITS and rest:
            back = BACK[which]
        case _:
            return None
    if UNITS[unit] not in ("week", "month", "year"):
        return None
    around = previous(UNITS[unit], now, back)
    if len(rest) == 1 or rest[1:] == ["일"]:
        return _inside(rest[0], around, now)
    day = _dated((*rest, f"{around.since.year:04}"), now) if UNITS[unit] == "year" else None
    return begun(day, now) if day else None


def _within_last(words: Words, now: datetime) -> Span | None:
    """Returns the same, said the other way round: `tuesday last week`, `5th of last month`."""
    if len(words) > 2 and words[-2] in BACK:
        return _within((*words[-2:], *words[:-2]), now)
    return None


def _inside(word: str, around: Span, now: datetime) -> Span | None:
    """Returns the weekday of a week, the day of a month, the part of a year."""
    start, length = around.since, around.until - around.since
    if length == timedelta(days=7):
        day = start + WEEKDAYS.index(word) * DAY if word in WEEKDAYS else None
        return begun(period(day, "day"), now) if day else None
    if length > timedelta(days=31):
        part = _in_year(word, start.year)
        return begun(part, now) if part else None
    number = _day_of(word)
    return begun(_calendar_day(start.year, start.month, number), now) if number else None


def _third(which: int, words: Words, now: datetime) -> Span | None:
    """Returns the first days, the middle or the end of a month or of a year."""
    match words:
        case (month,) if month in MONTHS:
            return _latest(lambda year: _cut(_in_year(month, year), which), now)
        case (year,) if _year(year) is not None:
            return _cut(period(_first(int(year)), "year"), which)
        case (month, year) | (year, month) if month in MONTHS and _year(year) is not None:
            return _cut(_in_year(month, int(year)), which)
        case (again, ("month" | "year") as unit) if again in BACK:
            found = _cut(previous(unit, now, BACK[again]), which)
            return begun(found, now) if found else None
    return None


def _cut(whole: Span | None, which: int) -> Span | None:
    """Returns a third of a month, in steps of ten days, or of a year, of four months."""
    if whole is None:
        return None
    if whole.until - whole.since > LENGTHS["quarter"]:
        since, until = months(whole.since, 4 * which), months(whole.since, 4 * which + 4)
    else:
        since = whole.since + 10 * which * DAY
        until = whole.until if which == 2 else since + 10 * DAY
    return Span(since, until, until)


def _numeric(word: str, now: datetime) -> Span | None:
    """Returns the day of `13/11/2025`; raises `Refused` where day and month could be swapped."""
    if not re.fullmatch(r"\d+[-/.]\d+(?:[-/.]\d+)?", word):
        return None
    parts = [int(part) for part in re.split(r"[-/.]", word)]
    if len(parts) == 3 and parts[2] < 1000:
        raise Refused("has no year of four digits", "write dates as in 2026-11-20")
    first, second = parts[:2]
    year = parts[2] if len(parts) == 3 else None
    if first <= 12 and second <= 12 and first != second:
        shown = f"{year:04}" if year is not None else f"{now.year}"
        raise Refused(
            "may mean two days",
            f"write `{shown}-{second:02}-{first:02}` or `{shown}-{first:02}-{second:02}`",
        )
    day, month = (first, second) if second <= 12 else (second, first)
    if not 1 <= month <= 12:
        raise Refused("is not a day of the calendar", "write dates as in 2026-11-20")
    return _one_day(MONTHS[month - 1], day, year, now)


def literal(word: str) -> Span | None:
    """Returns what an ISO 8601 text in lower case names: a month, a week, a day, a moment."""
    if found := re.fullmatch(r"(\d{4})-?w(\d\d)(?:-?(\d))?", word):
        return _iso_week(found)
    if found := re.fullmatch(r"(\d{4})[-/.](\d{1,2})", word):
        if not 1 <= int(found[2]) <= 12:
            raise Refused("is not a month of the calendar", "months are 1 to 12: 2026-11")
        return period(months(_first(int(found[1])), int(found[2]) - 1), "month")
    if found := re.fullmatch(r"(\d{4})(\d\d)(\d\d)", word):
        return _calendar_day(*map(int, found.groups()))
    if found := re.match(r"(\d{4})(?:[-/]|\. ?)(\d{1,2})(?:[-/]|\. ?)(\d{1,2})\.?", word):
        day = _calendar_day(*map(int, found.groups()))
        return _moment(day, word[found.end() :].strip(" t")) if word[found.end() :] else day
    return None


def _iso_week(found: re.Match[str]) -> Span:
    try:
        start = date.fromisocalendar(int(found[1]), int(found[2]), int(found[3] or 1))
    except ValueError:
        raise Refused("is not a week of the calendar", "weeks are as in 2026-W07") from None
    return period(
        datetime(start.year, start.month, start.day, tzinfo=UTC), "day" if found[3] else "week"
    )


def _moment(day: Span, text: str) -> Span:
    """Returns the moment of a day's clock, with its zone or in UTC."""
    found = re.fullmatch(r"(\d{1,2})(?::(\d\d)(?::(\d\d)(?:[.,](\d+))?)?)?(?: ?(\D.*))?", text)
    parts = found.groups() if found else ()
    try:
        hour, minute, second = (int(part or 0) for part in parts[:3])
        micro = int((parts[3] or "").ljust(6, "0")[:6])
        moment = day.since.replace(hour=hour, minute=minute, second=second, microsecond=micro)
    except ValueError:
        raise Refused("is not a time of the clock", "times are as in 2026-11-20T15:30") from None
    precision = "hour" if parts[1] is None else "minute" if parts[2] is None else "second"
    return point(moment - _zone(parts[4] or ""), LENGTHS[precision])


def _zone(text: str) -> timedelta:
    """Returns how far a zone is ahead of UTC."""
    if text in ("", "z", "utc", "gmt"):
        return timedelta()
    digits = text[1:].replace(":", "").ljust(4, "0")
    away = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    if away >= DAY:
        raise Refused("is not a time of the clock", "zones are as in +09:00")
    return away if text[0] == "+" else -away


# Phrases that name a part of a day or a time of it: `tuesday night`, `yesterday at 3pm`.


_DAWN = 6
"""Before this hour the night belongs to the day before."""


def read_daytime(words: Words, now: datetime) -> Span | None:
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
    span = read_date(words, now)
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


_ROLLING = frozenset({"second", "minute", "hour", "day", "week", "fortnight", "month"})
"""Units of which the last one reaches back from now; `last year` is the calendar's."""


def read_relative(words: Words, now: datetime) -> Span | None:
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
