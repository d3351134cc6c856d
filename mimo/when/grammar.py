"""Words of an expression -> the span of time that it names.

A whole expression is a phrase, or a span between two phrases (`since …`, `between … and …`). A
phrase is counted from now (`last week`, `3 days ago`), or names a place in the calendar (`october
5`, `2026-W07`), or a part or a time of a day (`tuesday night`, `yesterday at 3pm`). A new kind of
phrase is one more function in `_KINDS`; a synonym belongs in `vocabulary`.

Moments are in the zone of `now`. `dates` reads the places in the calendar, and `spans` has the
arithmetic. A function that does not recognize its words returns None.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from mimo.frozen import NamedTuple
from mimo.text.calendar import MONTHS, WEEKDAYS
from mimo.when import Interval
from mimo.when.dates import BACK, IN_A_YEAR, ISO_DAY, Words, date_of, day_number, edge_of, piece_of
from mimo.when.spans import (
    DAY,
    HOUR,
    LENGTHS,
    SECOND,
    Refused,
    Span,
    after,
    begun,
    clock_span,
    is_later,
    later,
    midnight,
    months_later,
    period,
    point,
    previous,
    start_of,
    until_now,
)
from mimo.when.vocabulary import PARTS, UNITS, VAGUE

_ROLLING = frozenset({"second", "minute", "hour", "day", "week", "month"})
"""Units of which the last one is counted back from now; `last year` is the calendar year."""
_OF_CLOCKS = frozenset({"noon", "midnight", "am", "pm", "시"})
"""Words of which each time of the clock without a colon has one."""
_DAWN = 6
"""Before this hour, `this night` began on the day before."""


def whole(words: Words, now: datetime) -> Interval | None:
    """Returns the interval that a whole expression names."""
    if span := _own_phrase(words, now):
        return Interval(since=span.since, until=span.until)
    interval: Interval | None = None
    for read in (_both_ends, _one_end, _together, _counted_between):
        interval = interval or read(words, now)
    if interval is None and (span := _fallback(words, now)):
        return Interval(since=span.since, until=span.until)
    return interval


def phrase(words: Words, now: datetime) -> Span | None:
    """Returns the span that a single phrase names."""
    return _own_phrase(words, now) or _fallback(words, now)


def _own_phrase(words: Words, now: datetime) -> Span | None:
    if words[:1] == ("in",):
        words = words[1:]
        if _amount(words) is not None:
            return None
    spans = (read(words, now) for read in _KINDS) if words else ()
    return next((span for span in spans if span), None)


# From, until, between.


def _both_ends(words: Words, now: datetime) -> Interval | None:
    for opening, last_words in _ends(words):
        first_words = _with_half(opening, last_words, now)
        left = _like(last_words, first_words, now)
        right = _like(first_words, _in_half(first_words, last_words, now), now)
        end, start = limit_of(right, now), limit_of(left, now)
        if end is None or start is None:
            continue
        is_unchanged = (left, right) == (first_words, last_words)
        if is_later(start.since, end.since) and not is_unchanged:
            if left == first_words and _clock(last_words):
                end = _next_day(start, end, now)
        elif is_later(start.since, end.since) and start.recurs:
            # The latest friday before the end: `from friday to monday`.
            with suppress(Refused):  # it is later on the day of the end
                start = _own_phrase(left, end.since.astimezone(now.tzinfo)) or start
        elif end.recurs and not start.recurs:
            end = _first_after(start.since.astimezone(now.tzinfo), left, right, now) or end
        if is_later(start.since, end.since):
            # `between tuesday 3pm and 9am` has no order to correct.
            if not is_unchanged or {"between", "사이"}.isdisjoint(words):
                raise Refused("ends before it begins", "the start must come before the end")
            start, end = end, start
        return Interval(since=start.since, until=end.end_from(start.since))
    return None


def _next_day(start: Span, end: Span, now: datetime) -> Span:
    """Returns a time of the next day if it is at most half a day later: `yesterday 10pm to 2am`."""
    moment = later(end.since, DAY)
    if moment - start.bound > 12 * HOUR:
        return end
    return begun(clock_span(moment, end.until - end.since), now)


def _first_after(since: datetime, left: Words, right: Words, now: datetime) -> Span | None:
    """Returns the first weekday or part of a year after one that has its week or year.

    `march 2025 to may` is of one year, but the end of `2025 to may` is the latest may, as is that
    of `may 2025 to may`.
    """
    if not {"last", "past"}.isdisjoint(right):
        return None
    are_weekdays = [not set(WEEKDAYS).isdisjoint(words) for words in (left, right)]
    if all(are_weekdays):
        limit, longest = midnight(since) + 7 * DAY, 2 * DAY
    elif not any(are_weekdays) and any(re.fullmatch(IN_A_YEAR, word) for word in left):
        limit, longest = months_later(start_of("month", since), 12), 184 * DAY
    else:
        return None
    span = _own_phrase(right, min(now, limit - SECOND))
    if span is None or not is_later(span.since, since):
        return None
    # Seen from a moment after it, it is whole.
    return _own_phrase(right, min(now, later(span.since, longest)))


def _ends(words: Words) -> Iterator[tuple[Words, Words]]:
    """Yields the pairs of phrases that an expression with two ends may consist of.

    Words before `from` or `between` belong to the first one: `yesterday from 9am to 11am`.
    """
    openings = ("between", "from", "since")
    place = next((place for place, word in enumerate(words) if word in openings), None)
    if place is not None:
        separators = {"and", ".."} if words[place] == "between" else {"to", "until", ".."}
        for left, right in _parted(words[place + 1 :], separators):
            yield (*words[:place], *left), right
    elif words[-1:] == ("사이",):
        yield from _parted(words[:-1], {"와", "부터", ".."})
    else:
        yield from _parted(words[:-1] if words[-1:] == ("까지",) else words, {"부터", ".."})
        for left, right in _parted(words, {"to", "until"}):
            # In `yesterday until noon`, it is the noon of that day.
            if _amount(left) is None and ("to" in words or not _clock(right)):
                yield left, right


def _parted(words: Words, at: Collection[str]) -> Iterator[tuple[Words, Words]]:
    """Yields the words before and after the first separator."""
    for place, word in enumerate(words):
        if word in at:
            yield words[:place], words[place + 1 :]
            return


def _like(dated: Words, bare: Words, now: datetime) -> Words:
    """Returns a phrase with the day or month that only the other end names.

    These are a time in `yesterday 9am to 11am` and a day in `oct 5 to 9`.
    """
    if clock := _clock(bare):
        return _on_day_of(dated, bare, clock[0], now)
    places = [place for place, word in enumerate(dated) if day_number(word) is not None]
    alone = len(bare) == 1 or bare[1:] == ("일",)
    is_day = alone and day_number(bare[0]) is not None
    if not is_day or len(places) != 1 or set(MONTHS).isdisjoint(dated):
        return bare
    return (*dated[: places[0]], bare[0], *dated[places[0] + 1 :])


def _on_day_of(dated: Words, bare: Words, time: timedelta, now: datetime) -> Words:
    """Returns a time with the day of another phrase, and with its part of the day if it fits."""
    iso = rf"({ISO_DAY}[t ]+)[\d:.,]+(.*)"
    if len(dated) == 1 and (found := re.fullmatch(iso, dated[0])):
        return (f"{found[1]}{time // HOUR:02}:{time % HOUR // LENGTHS['minute']:02}{found[5]}",)
    timed = _timed(dated, now)
    if not timed and not _part(dated, now) and not any(_around_clock(dated)):
        return bare
    words = (*(timed[1] if timed else dated), *bare)
    if _own_phrase(words, now) or (span := phrase(dated, now)) is None:
        return words
    return (f"{span.since.astimezone(now.tzinfo).date()}", *bare)


def _in_half(left: Words, right: Words, now: datetime) -> Words:
    """Returns an hour in the half of the day that the first end names: `오후 3시부터 5시까지`."""
    is_bare = right[1:2] == ("시",) and right[0].isdecimal() and int(right[0]) <= 12
    match _timed(left, now) if is_bare else None:
        case (_, _, ("am" | "pm" as half, _, *_)):
            return (half, *right)
    return right


def _with_half(left: Words, right: Words, now: datetime) -> Words:
    """Returns the first end with the half of the day that only the last one names: `2 to 4pm`.

    It is the other half if it would be the later time: `11 to 1pm`. After a month, it is a day,
    and after that day an hour: `oct 5 2 to 4pm`.
    """
    halves = {"am": "pm", "pm": "am"}
    place = next((place for place, word in enumerate(right) if word in halves), 0)
    hours = (*left[-1:], *right[place - 1 : place])
    if len(hours) != 2 or not all(hour.isdecimal() and 1 <= int(hour) <= 12 for hour in hours):
        return left
    if not set(MONTHS).isdisjoint(left) and not _day(left[:-1], now):
        return left
    crosses_noon = int(hours[0]) % 12 > int(hours[1]) % 12
    return (*left, halves[right[place]] if crosses_noon else right[place])


def _one_end(words: Words, now: datetime) -> Interval | None:
    relation, tail = _relation(words)
    span = (date_of if relation == "ago" else limit_of)(tail, now) if relation else None
    if span is None:
        return None
    moment = span.bound if relation in ("after", "until") else span.since
    if relation in ("until", "before", "ago"):
        return Interval(until=moment)
    if relation in ("after", "since") and moment == until_now(now):
        hint = "`since` counts it, too" if relation == "after" else "name a time that has ended"
        raise Refused("has nothing after it: it has not ended yet", hint)
    return Interval(since=moment, until=None if is_later(moment, now) else until_now(now))


def _relation(words: Words) -> tuple[str, Words]:
    """Returns the relation to the phrase in the other words, or an empty text."""
    match words:
        case ("since" | "from", *rest) | (*rest, "부터") | (*rest, "부터", ".."):
            return "since", tuple(rest)
        case (*rest, "onward" | "earliest" | "이후" | "..") if _amount(tuple(rest)) is None:
            return "since", tuple(rest)
        case ("and", "before" | "after" as side, *rest):  # `on or before october`
            return "until" if side == "before" else "since", tuple(rest)
        case ("before" | "after" as side, "and", *rest):
            return "until" if side == "before" else "since", tuple(rest)
        case ("until", *rest) | (*rest, "까지" | "latest"):
            return "until", tuple(rest)
        case ("..", *rest) if not is_counted(tuple(rest)):  # `-7 days ago` may mean two times
            return "until", tuple(rest)
        case ("more" | "less" as than, *rest, "ago") if is_counted(tuple(rest)):
            return "before" if than == "more" else "since", (*rest, "ago")
        case ("before", *rest) | (*rest, "이전"):
            return "before", tuple(rest)
        case ("after" as relation, *rest) | (*rest, "ago" as relation):
            return relation, tuple(rest)
    return "", ()


def is_counted(words: Words) -> bool:
    """Returns whether words are a length, or a time counted back from now: `7 days ago`."""
    return _amount(words[:-1] if words[-1:] == ("ago",) else words) is not None


def limit_of(words: Words, now: datetime) -> Span | None:
    """Returns what begins or ends a span: a phrase, or `the end of october`, which is a moment.

    Only there are `yesterday`, `last week` and `last month` the whole day, week and month, so that
    a span from one to itself is all of it. Only there is the end of a period a moment: alone, `end
    of october` is its last days.
    """
    match words:
        case ("yesterday",):
            return previous("day", now, back=1)
        case ("last", ("week" | "month") as unit):
            return previous(unit, now, back=1)
        case ("start" | "end" as edge, *rest) if rest:
            around = _unit("this", rest[0], now) if rest[1:] == [] else None
            if span := around or _whole_days(tuple(rest), now):
                moment = span.since if edge == "start" else span.until
                return Span(moment, moment, moment)
    return phrase(words, now)


# Several phrases.


def _together(words: Words, now: datetime) -> Interval | None:
    """Returns the time of all of several phrases: `yesterday and today`, `october or november`.

    They are calendar days and periods. Raises `Refused` if there is time between them.
    """
    parts: list[Words] = [()]
    for word in words:
        parts = [*parts, ()] if word in ("and", "와") else [*parts[:-1], (*parts[-1], word)]
    if len(parts) == 1 or () in parts:
        return None
    spans: list[Span] = []
    for part in parts:
        if part == ("day", "before") and spans:
            span: Span | None = period(spans[-1].since - DAY, "day")
        else:
            span = _whole_days(_like(parts[0], part, now), now)
        if span is None:
            return None
        spans.append(span)
    earliest, *later_spans = sorted(spans, key=lambda span: span.since.astimezone(UTC))
    until = earliest.until
    for span in later_spans:
        if is_later(span.since, until):
            raise Refused("names times that are not one span", "name one of them, or a longer time")
        until = max(until, span.until, key=lambda moment: moment.astimezone(UTC))
    return Interval(since=earliest.since, until=until)


def _counted_between(words: Words, now: datetime) -> Interval | None:
    """Returns the time between two counts back from now: `2 to 3 weeks ago`, `a day or two ago`."""
    match words[1:] if words[:1] in (("from",), ("between",)) else words:
        case (least, "to" | "and" | "..", most, unit, "ago") | (least, unit, "and", most, "ago"):
            counts = [number for count in (least, most) if (number := _number(count)) is not None]
            if unit in UNITS and len(counts) == 2:
                end, start = (after(now, -n * LENGTHS[UNITS[unit]]) for n in sorted(counts))
                return Interval(since=start, until=end)
    return None


def _whole_days(words: Words, now: datetime) -> Span | None:
    """Returns the days of a phrase by the calendar, as far as they have begun."""
    match words[1:] if words[:1] == ("in",) else words:
        case () | ("now",):
            return None
        case ("last" | "past", ("week" | "month") as unit):
            return previous(unit, now, back=1)
        case rest:
            if _amount(rest) is not None:
                return None
            span = _day(rest, now) or phrase(rest, now)
            return span and begun(span, now)


# Counted from now.


def _relative(words: Words, now: datetime) -> Span | None:
    match words:
        case ("now",):
            return point(now, SECOND)
        case ("today",):
            return begun(period(midnight(now), "day"), now)
        case ("yesterday",):
            return Span(after(now, -DAY), until_now(now), midnight(now))
        case ("day", "before", "yesterday"):
            return period(midnight(now) - 2 * DAY, "day")
        case ("this" | "last" | "past" | "before-last" as which, unit):
            return _unit(which, unit, now)
        case (unit, "before", "last"):
            return _unit("before-last", unit, now)
        case (unit, "before", "last", again) if unit == again:
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
    since = after(now, -length)
    return Span(since, until_now(now), since)


def _unit(which: str, word: str, now: datetime) -> Span | None:
    """Returns `this month`, `last week`, `past year`, the week before last, or a weekend."""
    back = BACK.get(which, 1)
    if word == "weekend":
        return _weekend(now, back)
    unit = UNITS.get(word)
    if unit is None:
        return None
    if which == "past" or (which == "last" and unit in _ROLLING):
        return Span(after(now, -LENGTHS[unit]), until_now(now), start_of(unit, now))
    return begun(previous(unit, now, back), now)


def _weekend(now: datetime, back: int) -> Span:
    saturday = start_of("week", now) + (5 - 7 * back) * DAY
    monday = later(saturday, 2 * DAY)
    return begun(Span(saturday, monday, monday), now)


def _amount(words: Words) -> timedelta | None:
    """Returns the length of `3 days`, `1 hour 30 minutes`, `a couple of weeks`, `half a year`."""
    total, tail = timedelta(), list(words)
    while tail:
        match tail:
            case ["and", *tail] if total and tail:
                pass
            case ["half", "1", unit, *tail] if unit in UNITS:
                total += LENGTHS[UNITS[unit]] / 2
            case ["1", ("couple" | "few") as vague, unit, *tail] if unit in UNITS:
                total += VAGUE[vague] * LENGTHS[UNITS[unit]]
            case [count, unit, *tail] if unit in UNITS and (number := _number(count)) is not None:
                total += number * LENGTHS[UNITS[unit]]
            case [count, "m", *tail] if _number(count) is not None:
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


def _week_of(words: Words, now: datetime) -> Span | None:
    """Returns the week around a day, from Monday to Sunday: `week of november 10`."""
    if words[:1] != ("week",) or set(MONTHS).isdisjoint(words):
        return None
    day = _day(words[1:], now)
    return day and begun(previous("week", day.since, back=0), now)


# Parts and times of a day.


def _daytime(words: Words, now: datetime) -> Span | None:
    timed = _timed(words, now)
    span = timed[0] if timed else _part(words, now)
    return begun(span, now) if span else None


def _shifted(words: Words, now: datetime) -> Span | None:
    """Returns the minute so long before or after a time: `2 hours after noon yesterday`."""
    place = next((i for i, word in enumerate(words) if word in ("after", "before", "from")), 0)
    length = _amount(words[:place])
    if not length or not length % DAY:
        return None
    timed = _timed(words[place + 1 :], now)
    if timed is None:
        return None
    moment = after(timed[0].since, -length if words[place] == "before" else length)
    return begun(point(moment, LENGTHS["minute"]), now)


def _timed(words: Words, now: datetime) -> tuple[Span, Words, Words] | None:
    """Returns a time of a day or of a part of it, the words around the time, and its own."""
    for date_words, time, (hour, precision) in _around_clock(words):
        day = _day(date_words, now) or _part(date_words, now)
        if day is None or words == ("midnight",):  # may be the end of today
            continue
        may_be_pm = {"am", "pm", "noon"}.isdisjoint(time) and HOUR <= hour < 13 * HOUR
        # `yesterday evening at 7:30`, `last night at 2am`
        for shift in (0, 12, 24, -12) if may_be_pm else (0, 24):
            moment = midnight(day.since) + hour + shift * HOUR
            if day.since <= moment < day.until:
                return clock_span(moment, precision)._replace(recurs=day.recurs), date_words, time
    return None


def _around_clock(words: Words) -> Iterator[tuple[Words, Words, tuple[timedelta, timedelta]]]:
    """Yields the words around each time of the clock, those of the time, and the time."""
    if _OF_CLOCKS.isdisjoint(words) and ":" not in " ".join(words):
        return
    for start in range(len(words)):
        for end in range(len(words), start, -1):
            if clock := _clock(words[start:end]):
                yield (*words[:start], *words[end:]), words[start:end], clock


def _day(words: Words, now: datetime) -> Span | None:
    """Returns the whole day that a phrase names."""
    today = midnight(now)
    match words:
        case () | ("today",):
            return period(today, "day")
        case ("yesterday",):
            return period(today - DAY, "day")
        case ("day", "before", "yesterday"):
            return period(today - 2 * DAY, "day")
        case (*rest, "ago") if (length := _amount(tuple(rest))) is not None and not length % DAY:
            return period(midnight(after(now, -length)), "day")
    span = date_of(words, now)
    if span and span.since == midnight(span.since) and span.until - span.since <= DAY:
        return period(span.since, "day")._replace(recurs=span.recurs)
    return None


def _part(words: Words, now: datetime) -> Span | None:
    """Returns the whole part of a day that a phrase names: `tuesday night`, `last night`."""
    today = midnight(now)
    match ("this", "night") if words == ("tonight",) else words:
        case ("this", part) if part in PARTS:
            began_yesterday = part == "night" and now.hour < _DAWN
            return _part_of_day(today - DAY if began_yesterday else today, part)
        case ("last" | "past", part) if part in PARTS:
            return _part_of_day(today - DAY, part)
    for place, part in enumerate(words):
        date_words = (*words[:place], *words[place + 1 :])
        pair = words[max(place - 1, 0) : place + 1]  # not the clock of `october 9am`
        if part in PARTS and date_words and not _clock(pair) and (day := _day(date_words, now)):
            return _part_of_day(day.since, part)._replace(recurs=day.recurs)
    return None


def _part_of_day(day: datetime, part: str) -> Span:
    start, end = PARTS[part]
    return Span(day + start * HOUR, day + end * HOUR, day + end * HOUR)


def _clock(words: Words) -> tuple[timedelta, timedelta] | None:
    """Returns a time of day and its precision."""
    match words:
        case ("noon",):
            return 12 * HOUR, HOUR
        case ("midnight",):
            return timedelta(), LENGTHS["minute"]
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
    precision = LENGTHS["minute" if minutes else "hour"]
    return timedelta(hours=of_day, minutes=int(minutes or 0)), precision


_KINDS = (_relative, _counted, date_of, _daytime, _shifted, piece_of, edge_of, _week_of)


# The fallback: the package parsedatetime, where this grammar has no answer.


_COUNTED = frozenset({"today", "yesterday", *WEEKDAYS})
"""Days that are counted from now."""
_SHIFT = 28 * DAY
"""Back to the same weekday, and often to another month."""


class _Count(NamedTuple):
    """A day that is counted from another one."""

    text: str
    """The words for parsedatetime."""
    start: datetime
    """The other day, or today if the text counts from there."""
    step: timedelta
    shift: timedelta
    """The distance of the reading if it is read 28 days earlier."""


def _fallback(words: Words, now: datetime) -> Span | None:
    """Returns a day that is counted from another one: `2 days before november 10 at 3pm`.

    parsedatetime reads the day, and also guesses. A reading counts if it uses all the words, is
    about as far from the other day as they state, and is as far from that of 28 days earlier.
    After `ago`, it must be on the named weekday.
    """
    date_words, _, clock = next(_around_clock(words), (words, (), None))
    if (count := _count_from(date_words, now)) is None:
        return None
    seen, start = (moment.replace(tzinfo=None, microsecond=0) for moment in (now, count.start))
    try:
        day, earlier_day = (_day_read(count.text, moment) for moment in (seen, seen - _SHIFT))
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None
    if day is None or earlier_day is None or day - earlier_day != count.shift:
        return None
    named = {*WEEKDAYS}.intersection(date_words) if "ago" in date_words else ()
    if (day - start) / count.step < 0.5 or (named and WEEKDAYS[day.weekday()] not in named):
        return None
    day = day.replace(tzinfo=now.tzinfo)
    return begun(clock_span(day + clock[0], clock[1]) if clock else period(day, "day"), now)


def _count_from(words: Words, now: datetime) -> _Count | None:
    """Returns the parts of `2 weeks ago monday`, `3 days before yesterday`, `day after oct 5`."""
    if words[:2] in (("day", "before"), ("day", "after")):
        words = ("1", *words)
    place = next((n for n, word in enumerate(words) if word in ("ago", "before", "after")), 0)
    start = next((n for n in range(place) if _amount(words[n:place])), place)
    left, right, length = words[:start], words[place + 1 :], _amount(words[start:place])
    if not length or length % DAY:
        return None
    relation, count = words[place], f"{length // DAY} day"
    if relation == "ago":
        if len(anchor := (*left, *right)) != 1 or anchor[0] not in _COUNTED:
            return None
        if anchor[0] in WEEKDAYS:  # parsedatetime ignores one in front: `monday 2 weeks ago`.
            left, right = (), anchor
        return _Count(" ".join((*left, count, "ago", *right)), midnight(now), -length, _SHIFT)
    if left or (day := _day(right, now)) is None:
        return None
    step = -length if relation == "before" else length
    if right in (("today",), ("yesterday",)):
        return _Count(f"{count} {relation} {right[0]}", day.since, step, _SHIFT)
    # parsedatetime takes `saturday` and `october 5` for the next ones.
    return _Count(f"{count} {relation} {day.since.date()}", day.since, step, timedelta())


def _day_read(text: str, seen: datetime) -> datetime | None:
    """Returns the midnight of the day that parsedatetime reads in a whole text."""
    import parsedatetime

    constants = parsedatetime.Constants("en_US", usePyICU=False)
    calendar = parsedatetime.Calendar(constants, version=parsedatetime.VERSION_CONTEXT_STYLE)
    match calendar.nlp(text, sourceTime=seen):
        case ((moment, context, _, _, matched),) if matched == text and not context.hasTime:
            return midnight(moment)
    return None
