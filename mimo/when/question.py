"""A question as it is understood: the time that it names, and whether it names a subject.

A time is one such as in `what did we do yesterday` or `지난주에 뭐 했지`. Only words that clearly
name one count, so that `5 minutes` stays a subject. In a question a day is a calendar day, and a
vague time has several spans, from the narrow one to the wide one.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, tzinfo
from enum import Enum, auto
from unicodedata import normalize

from mimo.frozen import frozen
from mimo.text.calendar import MONTHS, WEEKDAYS, in_zone
from mimo.text.clean import compiled
from mimo.text.continuity import About, about
from mimo.text.tokens import QUESTION_WORDS, SYMBOLS
from mimo.when import Interval, in_utc

_PARTS = ("yesterday", "today", "tonight", "weekend")
_WORDS = frozenset(
    (*"ago last past this previous q1 q2 q3 q4 sept".split(), *WEEKDAYS, *MONTHS)
).union(month[:3] for month in MONTHS)
_KOREAN = (
    r"어제|어저께|그제|그저께|오늘|금일|어젯밤|간밤|지난|이번|저번|최근|작년|올해|금년|요일|주말"
    r"|\d\s*(?:일|주|달|개월|년|월|시간|분기)|(?:며칠|하루|이틀|사흘|나흘|열흘|보름|주일|달|년)\s?전"
)
"""Every time in a question has one of these parts or words, or is a year."""

_ANCHORS = frozenset("yesterday ago last past this before-last today tonight".split())
_WITHIN = frozenset("in on during since until till before after between from of by".split())
_PREPOSITIONS = frozenset("on in at of during over within throughout from by since".split())
_NO_START = frozenset("and or through thru".split())
"""Words that belong to what is before the time: `what did we go through last week`."""
_WITH_MONTH = frozenset("day week h1 h2 before after since until".split())
"""Words beside which a month is one: `the first week of may`, `no later than may`."""
_TOO_SHORT = frozenset({"second", "minute"})
"""`last minute` is mostly no time."""

_LONGEST = 10
"""Words of one expression."""
_MAX_TOKENS = 60
"""Words of a question that are read."""

_FEW = 2
"""Up to so many English words are searched for before they count as a question without subject."""

_Reading = tuple[tuple[str, ...], tuple[Interval, ...]]
"""The words of the grammar, and the spans that they name."""

_PARTICLES = r"(?:에는|에서는|[는은엔쯤경도의에])$"
_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)
_TOLERANCE = {"week": 3 * _DAY, "month": 10 * _DAY, "year": 60 * _DAY}
_LAST_UNITS = {("last", "week"), ("last", "month")}
_INEXACT = 0.15
"""The share of its length by which `ten months ago` may be wrong."""
_VAGUE = frozenset({"couple", "few", "several"})
_UNITS = {"일": "day", "년": "year"}


@frozen
class NamedTime:
    """A time in a question."""

    expression: str
    """The words that name it."""
    start: int
    """Its place in the question."""
    spans: tuple[Interval, ...]
    """The time that is meant, and wider ones for a memory that is slightly outside."""
    rest: str
    """The question without it."""
    is_relative: bool
    """False for a date or a weekday, which may be a subject itself: `the outage of October 3`."""
    is_present: bool
    """True for `today`, which often means `at present`."""

    @property
    def meant(self) -> tuple[Interval, ...]:
        """Returns the spans without the widest, which is only for when nothing else is found."""
        return self.spans[:-1] or self.spans

    def days(self, zone: tzinfo | None) -> tuple[date, date] | None:
        """Returns the first and the last day that is meant, in a zone; they may be the same."""
        span = self.spans[0]
        first_day = in_zone(span.since, zone).date() if span.since else None
        last_day = in_zone(span.until - _SECOND, zone).date() if span.until else None
        start, end = first_day or last_day, last_day or first_day
        return (start, end) if start and end else None


def named_time(question: str, now: datetime) -> NamedTime | None:
    """Returns the time that a question names, seen from `now`, or None.

    A date wins over a weekday beside it, such as in `on friday november 13`. A question names none
    if the words beside it change the time, or if it names two times that are counted from now.
    """
    question = normalize("NFC", question)
    if not _may_name_a_time(question.lower()):
        return None
    time = _first_time(question, now)
    if time is None:
        return None
    from mimo.when.beside import is_changed

    head = question[: time.start]
    after = question[time.start + len(time.expression) :]
    if is_changed(head, time.expression, after) or _is_ahead(question, time):
        return None
    times = (_first_time(part, now) for part in (head, after) if _may_name_a_time(part.lower()))
    return None if any(other_time and other_time.is_relative for other_time in times) else time


def _is_ahead(question: str, time: NamedTime) -> bool:
    """Returns whether a question is about the next december, and not the latest one."""
    if time.is_relative or compiled(r"\d{4}").search(time.expression):
        return False
    words = {*compiled(r"\w+").findall(question.lower())}
    is_future = "will" in words or "going to" in question.lower()
    return is_future and words.isdisjoint(("did", "was", "were", "had"))


def _first_time(question: str, now: datetime) -> NamedTime | None:
    """Returns the time of the most words that a text names; of equally long ones, the first."""
    tokens = [*re.finditer(r"[^\s,;?!\"“”()\[\]]+", question)][:_MAX_TOKENS]
    weekday: tuple[int, int, _Reading] | None = None
    for length in range(min(_LONGEST, len(tokens)), 0, -1):
        for start in range(len(tokens) - length + 1):
            end = start + length
            if not _is_complete([token[0].lower() for token in tokens[start:end]]):
                continue
            if weekday and start != weekday[1] and end != weekday[0]:
                continue
            words = question[tokens[start].start() : tokens[end - 1].end()].rstrip(".:…")
            if (read := _read(words, now)) is None:
                continue
            if not set(WEEKDAYS).isdisjoint(read[0]):
                weekday = weekday or (start, end, read)
            elif weekday is None:
                return _named(question, tokens, start, end, read, now)
            else:
                place, stop, (names, _) = weekday
                if not {_weekday(read, now)} <= set(names) <= {*WEEKDAYS, *_ANCHORS}:
                    return None
                return _named(question, tokens, min(start, place), max(end, stop), read, now)
    return _named(question, tokens, *weekday, now) if weekday else None


def _is_complete(tokens: list[str]) -> bool:
    """Returns whether an expression of these words has no preposition too many at its ends."""
    from mimo.when.vocabulary import FILLERS

    if tokens[-1] in FILLERS or tokens[-1] in ("in", "over") or tokens[0] in _NO_START:
        return False
    return len(tokens) == 1 or tokens[0] not in _PREPOSITIONS or tokens[1] not in _PREPOSITIONS


def _named(
    question: str,
    tokens: list[re.Match[str]],
    begin: int,
    end: int,
    read: _Reading,
    now: datetime,
) -> NamedTime:
    """Returns the time of some tokens, with the name of its weekday if that is beside it."""
    from mimo.when import vocabulary

    beside = {
        place: tokens[place][0].lower() for place in (begin - 1, end) if place in range(len(tokens))
    }
    for place, word in beside.items():
        if vocabulary.words_of(word) == (_weekday(read, now),):
            begin, end = min(begin, place), max(end, place + 1)
    start, stop = tokens[begin].start(), tokens[end - 1].end()
    meaning, spans = read
    return NamedTime(
        expression=question[start:stop].rstrip(".:…"),
        start=start,
        spans=spans,
        rest=f"{question[:start]} {question[stop:]}",
        is_relative=bool(_ANCHORS & set(meaning)),
        is_present=meaning == ("today",),
    )


def _weekday(read: _Reading, now: datetime) -> str:
    """Returns the weekday of a time that is within one day, or an empty text."""
    since, until = read[1][0].since, read[1][0].until
    if since is None or until is None:
        return ""
    try:
        start, end = since.astimezone(now.tzinfo), (until - _SECOND).astimezone(now.tzinfo)
    except OverflowError:  # at an end of the calendar
        return ""
    return WEEKDAYS[start.weekday()] if start.date() == end.date() else ""


def _may_name_a_time(text: str) -> bool:
    """Returns whether a text in lower case has a part of a time."""
    words = compiled(r"\w+").findall(text)
    if not _WORDS.isdisjoint(words) or any(map(text.__contains__, _PARTS)):
        return True
    if any(len(word) == 4 and word[:2] in ("19", "20") and word.isdecimal() for word in words):
        return True
    return not text.isascii() and compiled(_KOREAN).search(text) is not None


def _read(text: str, now: datetime) -> _Reading | None:
    """Returns the words of the grammar for an expression, and the spans that it names."""
    if not _may_name_a_time(text.lower()):
        return None
    from mimo.when import grammar, spans, vocabulary

    for spelled in dict.fromkeys((text, re.sub(_PARTICLES, "", text))):
        words = vocabulary.words_of(spelled) or ()
        if not words or not _is_clear(words, spelled.lower(), now):
            continue
        try:
            if (interval := grammar.whole(words, now)) is not None:
                return words, tuple(map(in_utc, _spans(words, interval, now)))
        except (spans.Refused, OverflowError):
            continue
    return None


def _is_clear(words: tuple[str, ...], text: str, now: datetime) -> bool:
    """Returns whether these words name a time in any sentence."""
    if _ANCHORS & set(words):
        return not (len(words) == 2 and words[1] in _TOO_SHORT)
    korean = not text.isascii()
    if any(word in WEEKDAYS for word in words):
        return korean or any(day in text for day in WEEKDAYS)
    is_within = text.split()[0] in _WITHIN
    if "weekend" in words:
        return "the weekend" in text
    has_number = re.search(r"\d", text) is not None
    if any(word in MONTHS for word in words):
        return korean or is_within or has_number or not _WITH_MONTH.isdisjoint(words)
    if re.search(r"\b\d{4}-\d\d\b|\b\d{4}/\d{1,2}/\d", text):
        return True
    years = [word for word in words if len(word) == 4 and word.isdecimal()]
    if not years or not 1990 <= int(years[0]) <= now.year + 1:
        return is_within and re.fullmatch("q[1-4]", words[-1]) is not None
    return is_within or len(words) > 1 or (korean and "년" in text)


def _spans(words: tuple[str, ...], interval: Interval, now: datetime) -> tuple[Interval, ...]:
    """Returns the spans of an expression in calendar days, from the narrow one to the wide one."""
    from mimo.when import grammar
    from mimo.when.spans import midnight, previous

    today = midnight(now)
    since, until = interval.since, interval.until
    if words == ("yesterday",):
        return Interval(since=today - _DAY, until=today), interval
    if until and since is None:
        is_in_days = words[0] in ("before", "more") and grammar.is_counted(words[1:])
        if is_in_days and now - until >= _DAY:
            return (Interval(until=midnight(until)),)
        return (interval,)
    if since is None or until is None or until - since < _DAY or words[0] == "less":
        return (interval,)
    day = midnight(since)
    full_days = Interval(since=day, until=until)
    if words[-1] == "ago" and until <= now:
        full_days = Interval(since=day, until=_next_midnight(until))
    counted = words[1:] if words[0] == "from" else words
    unit = words[-2] if words[-1] == "ago" and grammar.is_counted(counted) else ""
    if unit := _UNITS.get(unit, unit):
        length = now - since
        if _VAGUE & set(words):
            end = max(_next_midnight(today - length / 4), day + _DAY)
            around = [Interval(since=midnight(day - length / 2), until=end)]
        else:
            near = _TOLERANCE.get(unit, timedelta())
            wide = -(-max(near, length * _INEXACT, _DAY) // _DAY) * _DAY
            widths = dict.fromkeys((near, wide))
            around = [Interval(since=day - width, until=day + width + _DAY) for width in widths]
        return (*around, full_days)
    if words in _LAST_UNITS:
        span = previous(words[-1], now, back=1)
        both = Interval(since=min(day, span.since), until=until)
        return Interval(since=span.since, until=span.until), full_days, both
    return (full_days,)


def _next_midnight(moment: datetime) -> datetime:
    """Returns the end of the day of a moment, or the moment if a day begins there."""
    from mimo.when.spans import midnight

    return moment if moment == midnight(moment) else midnight(moment) + _DAY


class Way(Enum):
    """The way to answer a query."""

    SEARCH = auto()
    SPAN = auto()
    """It names a time and no subject: the memories of that time."""
    LATEST = auto()
    """It asks where work stopped: the checkpoint and the newest memories."""
    OPEN = auto()
    """It asks for open work: the open issues and plans, and the newest checkpoint."""
    NEWEST = auto()
    """It names nothing: the newest memories."""


_LISTS = {
    About.NOTHING: Way.NEWEST,
    About.LATEST: Way.LATEST,
    About.NEXT: Way.OPEN,
    About.PROBLEMS: Way.OPEN,
}
"""The list that answers a question without a subject."""


@frozen
class Asking:
    """A query as it was understood."""

    way: Way
    otherwise: Way | None = None
    """The way to answer it if a search finds no sure match."""
    time: NamedTime | None = None
    """The time to which the answer is limited, or near to which it should be."""
    decisions: bool = False
    """True if it asks for decisions."""
    resuming: bool = False
    """True if it asks where work stopped at that time, or for the next step."""


def understood(text: str, now: datetime) -> Asking:
    """Returns the way to answer a query that is asked now."""
    text = normalize("NFC", text)
    words = compiled(r"\w+" if text.isascii() else rf"\w+|[{SYMBOLS}]").findall(text.lower())
    if not words:
        return Asking(way=Way.NEWEST)
    time = named_time(text, now)
    remainder = time.rest if time else text
    subject = about(remainder)
    decisions = compiled(r"\b(?:decid|decision)|결정").search(remainder.lower()) is not None
    resuming = subject in (About.LATEST, About.NEXT)
    is_open = subject is About.NEXT and (time is None or time.is_present)
    is_about_nothing = resuming or subject is About.NOTHING
    if time and not is_open and (is_about_nothing or not compiled(r"\w").search(remainder)):
        return Asking(way=Way.SPAN, time=time, decisions=decisions, resuming=resuming)
    if time and time.is_present:
        time = None
    listed = None if time else _LISTS.get(subject)
    if resuming and decisions:
        listed = Way.LATEST
    is_short = len(words) <= _FEW and text.isascii() and not decisions
    if listed in (Way.LATEST, Way.OPEN) and not is_short:
        return Asking(way=listed, decisions=decisions, resuming=resuming)
    if listed is Way.NEWEST and all(word in QUESTION_WORDS for word in words):
        return Asking(way=Way.NEWEST)
    return Asking(
        way=Way.SEARCH, otherwise=listed, time=time, decisions=decisions, resuming=resuming
    )
