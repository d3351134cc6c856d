"""Words of an expression -> the span of time that it names.

A whole expression is a phrase, or a span between two phrases (`since …`, `between … and …`). A
phrase is counted from now (`last week`, `3 days ago`), or names a place in the calendar (`october
5`, `2026-W07`), or a part or a time of a day (`tuesday night`, `yesterday at 3pm`). A new kind of
phrase is one more function in `_KINDS`; a synonym belongs in `vocabulary`.

Moments are in the zone of `now`. Adding to one moves the hands of the clock there, as Python does
within a zone: the next midnight may be 23 or 25 hours away. `_after` counts hours that pass, and
moments are compared as such, because a clock that is set back shows an hour twice. A function that
does not recognize its words returns None.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo

from mimo.frozen import NamedTuple
from mimo.text.calendar import MONTHS, WEEKDAYS, utc_offset
from mimo.when import Interval
from mimo.when.vocabulary import PARTS, UNITS, VAGUE

Words = tuple[str, ...]

_LATEST = datetime.max.replace(tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)

_LENGTHS = {
    "second": _SECOND,
    "minute": timedelta(minutes=1),
    "hour": _HOUR,
    "day": _DAY,
    "week": 7 * _DAY,
    "month": 30 * _DAY,
    "quarter": 91 * _DAY,
    "year": 365 * _DAY,
}
"""Length of each unit in `3 months ago`."""
_MONTHS_OF = {"month": 1, "quarter": 3, "half": 6, "year": 12}
"""Calendar months of each unit in `this quarter`."""
_ROLLING = frozenset({"second", "minute", "hour", "day", "week", "month"})
"""Units of which the last one is counted back from now; `last year` is the calendar year."""
_BACK = {"this": 0, "last": 1, "before-last": 2}
"""How many weeks, months or years before the present one."""
_SMALL = ("second", "minute", "hour")
"""Units shorter than a day."""
_LEAP_YEAR = 2024
_LEAP_CYCLE = 9
"""Every so many years in a row have a 29 February."""
_DAWN = 6
"""Before this hour, `this night` began on the day before."""
_PART_OF_YEAR = "q[1-4]|h[12]"


class Span(NamedTuple):
    """The time that one phrase names: `[since, until)`."""

    since: datetime
    until: datetime
    bound: datetime
    """The end of `until <phrase>`: the end of a day, but a moment itself."""
    recurs: bool = False
    """Whether it is the latest of many, such as a weekday or a month without its year."""

    def end_from(self, since: datetime) -> datetime:
        """Returns the end of `from <since> to <phrase>`; a moment from itself to itself counts."""
        is_same = self.bound.astimezone(UTC) == since.astimezone(UTC)
        return self.until if is_same else self.bound


class Refused(Exception):
    """An expression is understood but names no past time; `reason` follows it in the message."""

    def __init__(self, reason: str, hint: str = "") -> None:
        """Keep the reason and the hint."""
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


def whole(words: Words, now: datetime) -> Interval | None:
    """Returns the interval that a whole expression names."""
    if span := _own_phrase(words, now):
        return Interval(since=span.since, until=span.until)
    interval = _both_ends(words, now) or _one_end(words, now)
    if interval is None and (span := _parsedatetime(" ".join(words), now)):
        return Interval(since=span.since, until=span.until)
    return interval


def phrase(words: Words, now: datetime) -> Span | None:
    """Returns the span that a single phrase names."""
    return _own_phrase(words, now) or _parsedatetime(" ".join(words), now)


def _own_phrase(words: Words, now: datetime) -> Span | None:
    if words[:1] == ("in",):
        words = words[1:]
        if _amount(words) is not None:
            return None
    spans = (read(words, now) for read in _KINDS) if words else ()
    return next((span for span in spans if span), None)


# From, until, between.


def _both_ends(words: Words, now: datetime) -> Interval | None:
    for first_words, last_words in _ends(words):
        left, right = _dated_like(last_words, first_words), _dated_like(first_words, last_words)
        if (last := phrase(right, now)) and (first := phrase(left, now)):
            if _is_later(first.since, last.since) and first.recurs:
                # The latest friday before the end: `from friday to monday`.
                first = _own_phrase(left, last.since) or first
            if _is_later(first.since, last.since):
                first, last = last, first
            return Interval(since=first.since, until=last.end_from(first.since))
    return None


def _ends(words: Words) -> Iterator[tuple[Words, Words]]:
    """Yields the pairs of phrases that an expression with two ends may consist of."""
    match words:
        case ("between", *rest):
            yield from _parted(tuple(rest), {"and", ".."})
        case ("from" | "since", *rest):
            yield from _parted(tuple(rest), {"to", "until", ".."})
        case (*rest, "사이"):
            yield from _parted(tuple(rest), {"와", "부터", ".."})
        case _:
            yield from _parted(words[:-1] if words[-1:] == ("까지",) else words, {"부터", ".."})
            yield from ((a, b) for a, b in _parted(words, {"to"}) if _amount(a) is None)


def _parted(words: Words, at: Collection[str]) -> Iterator[tuple[Words, Words]]:
    """Yields the words before and after the first separator."""
    for place, word in enumerate(words):
        if word in at:
            yield words[:place], words[place + 1 :]
            return


def _dated_like(dated: Words, day: Words) -> Words:
    """Returns a day without a month as a day in the month of the other end: `oct 5 to 9`."""
    places = [place for place, word in enumerate(dated) if _day_number(word) is not None]
    alone = len(day) == 1 or day[1:] == ("일",)
    if not alone or _day_number(day[0]) is None or len(places) != 1 or not set(MONTHS) & set(dated):
        return day
    return (*dated[: places[0]], day[0], *dated[places[0] + 1 :])


def _one_end(words: Words, now: datetime) -> Interval | None:
    relation, rest = _relation(words)
    span = (_date if relation == "ago" else phrase)(rest, now) if relation else None
    if span is None:
        return None
    moment = span.bound if relation in ("after", "until") else span.since
    if relation in ("until", "before", "ago"):
        return Interval(until=moment)
    if relation == "after" and moment == _end(now):
        raise Refused("has nothing after it: it has not ended yet", "`since` counts it, too")
    return Interval(since=moment, until=None if _is_later(moment, now) else _end(now))


def _relation(words: Words) -> tuple[str, Words]:
    """Returns the relation to the phrase in the other words, or an empty text."""
    match words:
        case ("since" | "from", *rest) | (*rest, "부터") | (*rest, "부터", ".."):
            return "since", tuple(rest)
        case (*rest, "이후" | "..") if _amount(tuple(rest)) is None:
            return "since", tuple(rest)
        case ("until", *rest) | (*rest, "까지"):
            return "until", tuple(rest)
        case ("..", *rest) if _amount(tuple(rest)) is None:
            return "until", tuple(rest)
        case ("before", *rest) | (*rest, "before"):
            return "before", tuple(rest)
        case ("after" as relation, *rest) | (*rest, "ago" as relation):
            return relation, tuple(rest)
    return "", ()


# Counted from now.


def _relative(words: Words, now: datetime) -> Span | None:
    match words:
        case ("now",):
            return _point(now, _SECOND)
        case ("today",):
            return _begun(_period(_midnight(now), "day"), now)
        case ("yesterday",):
            return Span(_after(now, -_DAY), _end(now), _midnight(now))
        case ("day", "before", "yesterday"):
            return _period(_midnight(now) - 2 * _DAY, "day")
        case ("this" | "last" | "past" | "before-last" as which, unit):
            return _unit(which, unit, now)
        case (unit, "before", "last"):
            return _unit("before-last", unit, now)
        case ("weekend",):
            return _weekend(now, back=0 if now.weekday() >= 5 else 1)
    return None


def _counted(words: Words, now: datetime) -> Span | None:
    match words:
        case (*rest, "ago"):
            length = _amount(tuple(rest))
        case ("last" | "past", *rest, "within") | ("last" | "past", *rest) | (*rest, "within"):
            length = _amount(tuple(rest))
        case _:
            length = None if "일" in words else _amount(words)
    if length is None:
        return None
    since = _after(now, -length)
    return Span(since, _end(now), since)


def _unit(which: str, word: str, now: datetime) -> Span | None:
    """Returns `this month`, `last week`, `past year`, the week before last, or a weekend."""
    back = _BACK.get(which, 1)
    if word == "weekend":
        return _weekend(now, back)
    unit = UNITS.get(word)
    if unit is None:
        return None
    if which == "past" or (which == "last" and unit in _ROLLING):
        return Span(_after(now, -_LENGTHS[unit]), _end(now), _start_of(unit, now))
    return _begun(_previous(unit, now, back), now)


def _weekend(now: datetime, back: int) -> Span:
    saturday = _start_of("week", now) + (5 - 7 * back) * _DAY
    monday = _later(saturday, 2 * _DAY)
    return _begun(Span(saturday, monday, monday), now)


def _amount(words: Words) -> timedelta | None:
    """Returns the length of `3 days`, `1 hour 30 minutes`, `a couple of weeks`, `half a year`."""
    total, rest = timedelta(), list(words)
    while rest:
        match rest:
            case ["and", *rest] if total and rest:
                pass
            case ["half", "1", unit, *rest] if unit in UNITS:
                total += _LENGTHS[UNITS[unit]] / 2
            case ["1", ("couple" | "few") as vague, unit, *rest] if unit in UNITS:
                total += VAGUE[vague] * _LENGTHS[UNITS[unit]]
            case [count, unit, *rest] if unit in UNITS and (number := _number(count)) is not None:
                total += number * _LENGTHS[UNITS[unit]]
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


# Places in the calendar.


def _date(words: Words, now: datetime) -> Span | None:
    match words:
        case ():
            return None
        case (word,):
            return _single_word(word, now)
        case ("this", word) if word in WEEKDAYS or word in MONTHS:
            container = "week" if word in WEEKDAYS else "year"
            return _part_of(_previous(container, now, back=0), word, now)
        case ("last" | "past", word) if word in WEEKDAYS or word in MONTHS:
            # The latest one that began before the present day or month.
            before = _start_of("day" if word in WEEKDAYS else "month", now)
            return _date((word,), before - timedelta(microseconds=1))
    return _dated(words, now) or _within(words, now)


def _single_word(word: str, now: datetime) -> Span | None:
    if word in WEEKDAYS:
        day = _midnight(now) - _DAY * ((now.weekday() - WEEKDAYS.index(word)) % 7)
        return _begun(_period(day, "day"), now)._replace(recurs=True)
    if word in MONTHS or re.fullmatch(_PART_OF_YEAR, word):
        return _latest(lambda year: _in_year(word, year, now.tzinfo), now)
    if word.isdecimal() and len(word) == 4:
        return _period(_new_year(int(word), now.tzinfo), "year")
    if word[0].isdecimal():
        return literal(word, now.tzinfo) or _numeric(word, now)
    return None


def _latest(find: Callable[[int], Span | None], now: datetime) -> Span | None:
    """Returns the span of the latest year in which it had begun."""
    for year in range(now.year, max(now.year - _LEAP_CYCLE, 0), -1):
        span = find(year)
        if span and not _is_later(span.since, now):
            return _begun(span, now)._replace(recurs=True)
    return None


def _in_year(word: str, year: int, zone: tzinfo | None) -> Span | None:
    """Returns a month, a quarter or a half of a year."""
    if word in MONTHS:
        return _period(_months_later(_new_year(year, zone), MONTHS.index(word)), "month")
    if not re.fullmatch(_PART_OF_YEAR, word):
        return None
    unit = "quarter" if word[0] == "q" else "half"
    part = _MONTHS_OF[unit] * (int(word[1]) - 1)
    return _period(_months_later(_new_year(year, zone), part), unit)


def _dated(words: Words, now: datetime) -> Span | None:
    """Returns a day, a month, a quarter or a half, with its year or without."""
    rest = words[:-1] if words[-1] == "일" else words
    years = [word for word in rest if len(word) == 4 and word.isdecimal()]
    others = [word for word in rest if word not in years]
    year = int(years[0]) if years else None
    if len(years) > 1:
        return None
    match others:
        case [name] if year is not None and rest == words and years[0] in (words[0], words[-1]):
            return _in_year(name, year, now.tzinfo)
        case [name, day] if name in MONTHS and (number := _day_number(day)) is not None:
            return _one_day(name, number, year, now)
        case [day, name] if name in MONTHS and (number := _day_number(day)) is not None:
            return _one_day(name, number, year, now)
    return None


def _day_number(word: str) -> int | None:
    found = re.fullmatch(r"(\d{1,2})(?:st|nd|rd|th)?", word)
    return int(found[1]) if found else None


def _one_day(month: str, day: int, year: int | None, now: datetime) -> Span:
    number = MONTHS.index(month) + 1
    _, most = monthrange(_LEAP_YEAR, number)
    if not 1 <= day <= most:
        raise Refused("is no day", f"{month.title()} has {most} days")
    if year is not None:
        return _existing_day(year, number, day, now.tzinfo)
    span = _latest(lambda year: _calendar_day(year, number, day, now.tzinfo), now)
    if span is None:
        raise Refused("names no day of the past")
    return span


def _calendar_day(year: int, month: int, day: int, zone: tzinfo | None) -> Span | None:
    try:
        return _period(datetime(year, month, day, tzinfo=zone), "day")
    except ValueError:
        return None


def _existing_day(year: int, month: int, day: int, zone: tzinfo | None) -> Span:
    if span := _calendar_day(year, month, day, zone):
        return span
    raise Refused("is not a day of the calendar", "dates are ISO 8601, such as 2026-11-20")


def _within(words: Words, now: datetime) -> Span | None:
    """Returns a part of a week, month or year: `last week tuesday`, `5th of last month`."""
    if len(words) > 2 and words[-2] in _BACK:
        words = (*words[-2:], *words[:-2])
    match words:
        case (which, unit, *rest) if which in _BACK and unit in UNITS and rest:
            unit = UNITS[unit]
        case _:
            return None
    if unit not in ("week", "month", "year"):
        return None
    around = _previous(unit, now, _BACK[which])
    if len(rest) == 1 or rest[1:] == ["일"]:
        return _part_of(around, rest[0], now)
    day = _dated((*rest, f"{around.since.year:04}"), now) if unit == "year" else None
    return day and _begun(day, now)


def _part_of(around: Span, word: str, now: datetime) -> Span | None:
    """Returns the weekday of a week, the day of a month, the month or quarter of a year."""
    start, length = around.since, around.until - around.since
    part: Span | None = None
    if length > 31 * _DAY:
        part = _in_year(word, start.year, now.tzinfo)
    elif length > 7 * _DAY:
        number = _day_number(word)
        part = _existing_day(start.year, start.month, number, now.tzinfo) if number else None
    elif word in WEEKDAYS:
        part = _period(start + WEEKDAYS.index(word) * _DAY, "day")
    return _begun(part, now) if part else None


def _numeric(word: str, now: datetime) -> Span | None:
    """Returns the day of `13/11/2025`; refuses a date whose day and month could be swapped."""
    if not re.fullmatch(r"\d+[-/.]\d+(?:[-/.]\d+)?", word):
        return None
    first, second, *rest = (int(part) for part in re.split(r"[-/.]", word))
    year = rest[0] if rest else None
    if year is not None and year < 1000:
        raise Refused("has no year of four digits", "write dates as in 2026-11-20")
    if first <= 12 and second <= 12 and first != second:
        shown = f"{now.year if year is None else year:04}"
        raise Refused(
            "may mean two days",
            f"write `{shown}-{second:02}-{first:02}` or `{shown}-{first:02}-{second:02}`",
        )
    day, month = (first, second) if second <= 12 else (second, first)
    if not 1 <= month <= 12:
        raise Refused("is not a day of the calendar", "write dates as in 2026-11-20")
    return _one_day(MONTHS[month - 1], day, year, now)


def literal(word: str, zone: tzinfo | None) -> Span | None:
    """Returns the month, week, day or moment of an ISO 8601 text in lower case, seen in a zone."""
    if found := re.fullmatch(r"(\d{4})-?w(\d\d)(?:-?(\d))?", word):
        try:
            day = date.fromisocalendar(int(found[1]), int(found[2]), int(found[3] or 1))
        except ValueError:
            raise Refused("is not a week of the calendar", "weeks are as in 2026-W07") from None
        start = datetime(day.year, day.month, day.day, tzinfo=zone)
        return _period(start, "day" if found[3] else "week")
    if found := re.fullmatch(r"(\d{4})[-/.](\d{1,2})", word):
        if not 1 <= int(found[2]) <= 12:
            raise Refused("is not a month of the calendar", "months are 1 to 12: 2026-11")
        return _in_year(MONTHS[int(found[2]) - 1], int(found[1]), zone)
    if found := re.fullmatch(r"(\d{4})(\d\d)(\d\d)", word):
        year, month, number = map(int, found.groups())
        return _existing_day(year, month, number, zone)
    if found := re.match(r"(\d{4})(?:[-/]|\. ?)(\d{1,2})(?:[-/]|\. ?)(\d{1,2})\.?", word):
        year, month, number = map(int, found.groups())
        span = _existing_day(year, month, number, zone)
        return _moment(span, word[found.end() :].strip(" t")) if word[found.end() :] else span
    return None


def _moment(day: Span, text: str) -> Span:
    """Returns the moment at a time of the day, in the zone that the text or else the day has."""
    found = re.fullmatch(r"(\d{1,2})(?::(\d\d)(?::(\d\d)(?:[.,](\d+))?)?)?(?: ?(\D.*))?", text)
    parts = found.groups() if found else ()
    try:
        hour, minute, second = (int(part or 0) for part in parts[:3])
        micro = int((parts[3] or "").ljust(6, "0")[:6])
        moment = day.since.replace(hour=hour, minute=minute, second=second, microsecond=micro)
        offset = utc_offset(parts[4] or "")
    except ValueError:
        hint = "times and zones are as in 2026-11-20T15:30+09:00"
        raise Refused("is not a time of the clock", hint) from None
    precision = "hour" if parts[1] is None else "minute" if parts[2] is None else "second"
    if parts[4]:
        moment = moment.replace(tzinfo=UTC) - offset
    return _point(moment, _LENGTHS[precision])


# Parts and times of a day.


def _daytime(words: Words, now: datetime) -> Span | None:
    today = _midnight(now)
    match ("this", "night") if words == ("tonight",) else words:
        case (part, *rest) if part in PARTS and rest and (day := _day(tuple(rest), now)):
            return _part_of_day(day, part, now)
        case ("this", part) if part in PARTS:
            began_yesterday = part == "night" and now.hour < _DAWN
            return _part_of_day(today - _DAY if began_yesterday else today, part, now)
        case ("last" | "past", part) if part in PARTS:
            return _part_of_day(today - _DAY, part, now)
        case (*rest, part) if part in PARTS and (day := _day(tuple(rest), now)):
            return _part_of_day(day, part, now)
    for place in range(len(words)):
        head, tail, last = words[:place], words[place:], words[place + 1 :]
        for before, clock in ((head, tail), (last, (*head, words[place]))):
            if (time := _clock(clock)) and (start := _day(before, now)):
                return _begun(_point(start + time[0], time[1]), now)
    return None


def _day(words: Words, now: datetime) -> datetime | None:
    """Returns the midnight at which the day of a phrase begins."""
    match words:
        case () | ("today",):
            return _midnight(now)
        case ("yesterday",):
            return _midnight(now) - _DAY
        case ("day", "before", "yesterday"):
            return _midnight(now) - 2 * _DAY
    span = _date(words, now)
    if span and span.since == _midnight(span.since) and span.until - span.since <= _DAY:
        return span.since
    return None


def _part_of_day(day: datetime, part: str, now: datetime) -> Span:
    first, last = PARTS[part]
    return _begun(Span(day + first * _HOUR, day + last * _HOUR, day + last * _HOUR), now)


def _clock(words: Words) -> tuple[timedelta, timedelta] | None:
    """Returns a time of day and its precision."""
    match words:
        case ("noon",):
            return 12 * _HOUR, _HOUR
        case (time, ("am" | "pm") as half) | (("am" | "pm") as half, time, "시"):
            return _on_clock(time, "", half)
        case (time,) if ":" in time:
            return _on_clock(time, "", "")
        case (("am" | "pm") as half, hour, "시", *rest):
            return _on_clock(hour, _minutes(rest), half)
        case (hour, "시", *rest):
            return _on_clock(hour, _minutes(rest), "")
    return None


def _minutes(words: list[str]) -> str:
    match words:
        case []:
            return ""
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
    precision = _LENGTHS["minute" if minutes else "hour"]
    return timedelta(hours=of_day, minutes=int(minutes or 0)), precision


_KINDS = (_relative, _counted, _date, _daytime)


# The fallback: the package parsedatetime, where this grammar has no answer.


_CLOCK_WORDS = r"\d ?(?:am|pm)\b|\d:\d\d\b|\bnoon\b|\bmidnight\b"
_MOST_CHARACTERS = 60
_SHIFT = timedelta(days=28)
"""Back to the same weekday, and often to another month."""


def _parsedatetime(text: str, now: datetime) -> Span | None:
    """Returns the minute that parsedatetime reads in all of a text, if it is a past one.

    It also guesses. A reading counts if one seen from 28 days earlier is 28 days earlier.
    """
    clocks = re.findall(_CLOCK_WORDS, text)
    if len(text) > _MOST_CHARACTERS or not text.isascii() or len(clocks) != 1:
        return None
    seen = now.replace(tzinfo=None, microsecond=0)
    try:
        moment, before = _reading(text, seen), _reading(text, seen - _SHIFT)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None
    if moment is None or before is None or moment > seen or moment - before != _SHIFT:
        return None
    return _point(moment.replace(tzinfo=now.tzinfo), _LENGTHS["minute"])


def _reading(text: str, seen: datetime) -> datetime | None:
    """Returns the moment if the whole text was read as a date with a time of day."""
    import parsedatetime

    constants = parsedatetime.Constants("en_US", usePyICU=False)
    calendar = parsedatetime.Calendar(constants, version=parsedatetime.VERSION_CONTEXT_STYLE)
    readings = calendar.nlp(text, sourceTime=seen)
    if not readings or len(readings) != 1 or readings[0][4] != text:
        return None
    moment, context = calendar.parseDT(text, sourceTime=seen)
    return moment if context.hasDate and context.hasTime else None


# Arithmetic of the calendar.


def _end(now: datetime) -> datetime:
    """Returns the end of a span that reaches to now and includes it.

    Memories are dated to the second, so the span ends a second later.
    """
    return _after(now, _SECOND)


def _later(moment: datetime, length: timedelta) -> datetime:
    """Returns a later time of the clock, at most the last one of the calendar."""
    try:
        return moment + length
    except OverflowError:
        return _LATEST


def _after(moment: datetime, length: timedelta) -> datetime:
    """Returns the moment after a length that passes, at most the last one of the calendar.

    The length may be negative. Raises `OverflowError` before the year 1.
    """
    try:
        return (moment.astimezone(UTC) + length).astimezone(moment.tzinfo)
    except OverflowError:
        if length < timedelta():
            raise
        return _LATEST


def _is_later(moment: datetime, than: datetime) -> bool:
    return moment.astimezone(UTC) > than.astimezone(UTC)


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


def _new_year(year: int, zone: tzinfo | None) -> datetime:
    if not 1 <= year <= 9999:
        raise Refused("is not a year of the calendar", "years are 1 to 9999")
    return datetime(year, 1, 1, tzinfo=zone)


def _start_of(unit: str, moment: datetime) -> datetime:
    """Returns the start of the calendar unit around a moment; a week begins on Monday."""
    if unit in _SMALL:
        hour = moment.replace(minute=0, second=0, microsecond=0)
        minute = moment.replace(second=0, microsecond=0)
        return {"hour": hour, "minute": minute}.get(unit, moment.replace(microsecond=0))
    midnight = _midnight(moment)
    if unit == "week":
        return midnight - moment.weekday() * _DAY
    if unit in _MONTHS_OF:
        first = (moment.month - 1) // _MONTHS_OF[unit] * _MONTHS_OF[unit] + 1
        return midnight.replace(month=first, day=1)
    return midnight


def _months_later(start: datetime, count: int) -> datetime:
    """Returns the first of the month so many months after `start`, which is a first as well.

    Raises `OverflowError` before the year 1; after 9999 it is the last moment of the calendar.
    """
    year, month = divmod(start.year * 12 + start.month - 1 + count, 12)
    if year < 1:
        raise OverflowError
    return _LATEST if year > 9999 else start.replace(year=year, month=month + 1)


def _period(start: datetime, unit: str) -> Span:
    """Returns the whole calendar unit that begins at `start`."""
    count = _MONTHS_OF.get(unit)
    step = _after if unit in _SMALL else _later
    until = _months_later(start, count) if count else step(start, _LENGTHS[unit])
    return Span(start, until, until)


def _previous(unit: str, now: datetime, back: int) -> Span:
    """Returns the calendar unit `back` before the present one (0)."""
    start, count = _start_of(unit, now), _MONTHS_OF.get(unit)
    if count:
        return _period(_months_later(start, -back * count), unit)
    length = back * _LENGTHS[unit]
    return _period(_after(start, -length) if unit in _SMALL else start - length, unit)


def _point(moment: datetime, length: timedelta) -> Span:
    """Returns a moment that is named to a precision of `length`."""
    return Span(moment, _after(moment, length), moment)


def _begun(span: Span, now: datetime) -> Span:
    """Returns the part of a span that has passed; raises `Refused` if it has not begun."""
    if _is_later(span.since, now):
        raise Refused("has not begun yet", "memories are of the past: name a time that has begun")
    end = _end(now)
    until, bound = (end if _is_later(limit, end) else limit for limit in span[1:3])
    return span._replace(until=until, bound=bound)
