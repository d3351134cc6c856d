"""Dates that a question names in English or Korean, and how close a day is to them.

They only influence the order of an answer; nothing is left out because of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from math import exp

from mimo.frozen import frozen
from mimo.text.calendar import MONTHS, NUMBERS, WEEKDAYS, month_number
from mimo.text.clean import compiled

_NUMBERS = {word: number for number, word in enumerate(NUMBERS[1:13], 1)} | {
    "a": 1,
    "an": 1,
    "few": 3,
    "couple": 2,
    "several": 3,
}
_VAGUE = frozenset({"few", "couple", "several"})
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_TOLERANCE = {"day": 1, "week": 3, "month": 10, "year": 60}

_SAME_MONTH = 0.4
_WITHIN_A_WEEK = 0.3

# Names are compared as ASCII (`(?a:`): in Unicode, a case-insensitive `s` also matches a long s.
_month = "(?P<month>(?a:" + "|".join(f"{name}|{name[:3]}\\b\\.?" for name in MONTHS) + "|sept\\.?))"
_number = "(?P<number>\\d{1,3}|(?a:" + "|".join(_NUMBERS) + "))"
_unit = "(?P<unit>(?a:day|week|month|year))"
_weekday = "|".join(WEEKDAYS)
_day = r"(?P<day>\d{1,2})(?:st|[nr]d|th)?"
_year = r"(?P<year>(?:19|20)\d\d)"


_PATTERNS = {
    "iso": r"(?P<year>(?:19|20)\d\d)[-/](?P<m>\d{1,2})[-/](?P<day>\d{1,2})",
    "day_month": rf"{_day}\s+(?:of\s+)?{_month}(?:,?\s+{_year})?",
    "month_day": rf"{_month}\s+(?:the\s+)?{_day}(?:,?\s+{_year})?",
    "month_year": rf"{_month},?\s+(?:of\s+)?{_year}",
    "in_month": rf"(?:in|during|of|since|by|until|early|late|mid|last|this)[\s-]+{_month}",
    "in_year": rf"(?:in|during|of|since|by|spring|summer|autumn|fall|winter)\s+{_year}",
    "ago": rf"{_number}(?:\s+of)?\s+{_unit}s?\s+ago",
    "lately": rf"(?:last|past)\s+{_number}(?:\s+of)?\s+{_unit}s?",
    "named": (
        rf"(?P<which>(?a:last|past|this))\s+(?P<what>(?a:week|weekend|month|year|{_weekday}))"
        "|(?P<alone>yesterday)"
    ),
}
_HINTS = frozenset(
    ("ago", "last", "past", "this", "yesterday", "sept", *MONTHS, *(month[:3] for month in MONTHS))
)
"""One of these words is in every date without a digit."""
_VERBS = frozenset({"may", "march", "mar"})
"""Months that are verbs if they are in lower case."""


@frozen
class Span:
    """The days from `start` to `end`, both included."""

    start: date
    end: date


@frozen
class Yearly:
    """A month, or a day of it, of any year."""

    month: int
    day: int | None = None


Window = Span | Yearly


def windows(question: str, asked: date | None) -> tuple[Window, ...]:
    """Returns the dates that `question` names, in no particular order.

    Words such as "two weeks ago" are counted from `asked`, the day of the question; if that is
    None they are ignored.
    """
    if not question.isascii() and asked is not None and (span := _korean(question, asked)):
        return (span,)
    words = compiled(r"\w+").findall(question.lower())
    if _HINTS.isdisjoint(words) and not any(map(str.isdigit, question)):
        return ()
    windows: list[Window] = []
    rest = question
    for name in ("iso", "day_month", "month_day", "month_year", "in_month", "in_year"):
        for match in _pattern(name).finditer(rest):
            if (window := _read(name, match)) is not None:
                windows.append(window)
                rest = rest.replace(match[0], " ; ")
    if asked is not None:
        windows += _relative(rest, asked)
    return tuple(windows)


def closeness(day: date, window: Window) -> float:
    """Returns how close `day` is to `window`: 1 inside, falling towards 0 outside.

    For a span that is exp(-gap / (length + 2)), in days.
    """
    if isinstance(window, Span):
        gap = max((window.start - day).days, (day - window.end).days, 0)
        return exp(-gap / ((window.end - window.start).days + 2))
    if window.day is None:
        return float(day.month == window.month)
    if (day.month, day.day) == (window.month, window.day):
        return 1.0
    if day.month == window.month:
        return _SAME_MONTH
    named = _date(day.year, window.month, window.day)
    near = named is not None and abs((named - day).days) <= 7
    return _WITHIN_A_WEEK if near else 0.0


def searchable(day: date) -> str:
    """Returns the words by which people name `day`: month, year, day and weekday."""
    return f"{MONTHS[day.month - 1]} {day.year} {day.day} {WEEKDAYS[day.weekday()]}"


def _korean(question: str, asked: date) -> Span | None:
    """Returns the days that a question names in a way that has no pattern here."""
    from mimo.when.question import named_time

    named = named_time(question, datetime.combine(asked, time.max, UTC))
    if named is None or named.is_present or named.expression.isascii():
        return None
    if not (named.is_relative or compiled(r"\d").search(named.expression)):
        return None  # a weekday may be any one
    within = named.spans[0]
    since, until = within.since, within.until
    if since is None or until is None:
        return None
    return Span(start=since.date(), end=(until - timedelta(microseconds=1)).date())


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{_PATTERNS[name]})\b", re.IGNORECASE)


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _month_span(year: int, month: int) -> Span:
    following = date(year + month // 12, month % 12 + 1, 1)
    return Span(start=date(year, month, 1), end=following - timedelta(1))


def _read(name: str, match: re.Match[str]) -> Window | None:
    """Returns the date in a match of the pattern with that name; None if there is no such date."""
    if name == "in_month":
        verb = match["month"] in _VERBS
        return None if verb else Yearly(month=month_number(match["month"]))
    if name == "month_year":
        return _month_span(int(match["year"]), month_number(match["month"]))
    if name == "in_year":
        year = int(match["year"])
        return Span(start=date(year, 1, 1), end=date(year, 12, 31))
    day = int(match["day"])
    month = int(match["m"]) if name == "iso" else month_number(match["month"])
    if not match["year"]:
        return Yearly(month=month, day=day) if _date(2000, month, day) else None
    named = _date(int(match["year"]), month, day)
    return Span(start=named, end=named) if named else None


def _relative(question: str, asked: date) -> Iterator[Span]:
    for match in _pattern("ago").finditer(question):
        number, unit = match["number"].lower(), match["unit"].lower()
        tolerance = timedelta(_TOLERANCE[unit] * (2 if number in _VAGUE else 1))
        day = asked - timedelta(_amount(number) * _UNIT_DAYS[unit])
        yield Span(start=day - tolerance, end=day + tolerance)
    for match in _pattern("lately").finditer(question):
        days = _amount(match["number"].lower()) * _UNIT_DAYS[match["unit"].lower()]
        yield Span(start=asked - timedelta(days), end=asked)
    for match in _pattern("named").finditer(question):
        which, what = (match["which"] or "last").lower(), (match["what"] or "yesterday").lower()
        yield _named_span(which, what, asked)


def _amount(number: str) -> int:
    return int(number) if number.isdecimal() else _NUMBERS[number]


def _named_span(which: str, what: str, asked: date) -> Span:
    if what == "yesterday":
        return Span(start=asked - timedelta(1), end=asked - timedelta(1))
    if which == "past" and what in _UNIT_DAYS:
        return Span(start=asked - timedelta(_UNIT_DAYS[what]), end=asked)
    back = 0 if which == "this" else 1
    if what == "year":
        year = asked.year - back
        return Span(start=date(year, 1, 1), end=date(year, 12, 31))
    if what == "month":
        month = asked.year * 12 + asked.month - 1 - back
        return _month_span(month // 12, month % 12 + 1)
    monday = asked - timedelta(asked.weekday() + 7 * back)
    if what == "week":
        return Span(start=monday, end=monday + timedelta(6))
    if what == "weekend":
        return Span(start=monday + timedelta(5), end=monday + timedelta(6))
    # The last such weekday before `asked`, or the one of the same week.
    day = asked - timedelta(asked.weekday() - WEEKDAYS.index(what))
    if which != "this" and day >= asked:
        day -= timedelta(7)
    return Span(start=day, end=day)
