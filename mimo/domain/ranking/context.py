"""What stands around a candidate: its date, its time words, its speakers."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from functools import cache

from mimo.domain.dates import MONTHS, WEEKDAYS, Window, closeness, searchable
from mimo.domain.ranking.model import Candidate
from mimo.domain.ranking.weights import AGE_HALF_LIFE_DAYS, SPEAKER_LINES
from mimo.domain.tokens import tokenize


def date_match(created: datetime | None, windows: Iterable[Window]) -> float:
    """Returns how near `created` is to the nearest date that the question names: 0..1."""
    if created is None:
        return 0.0
    day = created.date()
    return max([closeness(day, window) for window in windows], default=0.0)


def freshness(created: datetime | None, asked: datetime | None) -> float:
    """Returns 1 for now, halved with every half-life; 0 where either time is unknown."""
    if created is None or asked is None:
        return 0.0
    days = max((asked - created).total_seconds() / 86_400, 0.0)
    return float(0.5 ** (days / AGE_HALF_LIFE_DAYS))


@cache
def date_tokens(day: date) -> frozenset[str]:
    """Returns the tokens of the words by which people name `day`."""
    return frozenset(tokenize(searchable(day)))


def time_coverage(units: Sequence[str], covered: Sequence[float]) -> float:
    """Returns the largest coverage among units that name a time: a month, "yesterday", 2021."""
    timed = (share for share, unit in zip(covered, units, strict=False) if share and _timed(unit))
    return max(timed, default=0.0)


def speaker_coverage(
    speakers: Sequence[str], covered: Sequence[float], named: frozenset[str]
) -> float:
    """Returns the largest coverage among units in which one of the `named` speaks."""
    pairs = zip(covered, speakers, strict=False)
    return max([c for c, names in pairs if not named.isdisjoint(names.split())], default=0.0)


def _timed(unit: str) -> bool:
    tokens = unit.split(" ")
    return not _time_tokens().isdisjoint(tokens) or any(map(_is_year, tokens))


def _is_year(token: str) -> bool:
    return len(token) == 4 and token.isdecimal() and token[:2] in ("19", "20")


@cache
def _time_tokens() -> frozenset[str]:
    months = [month for month in MONTHS if month != "may"]
    words = "yesterday today tonight tomorrow ago last next day week weekend month year hour"
    return frozenset(tokenize(" ".join([*months, *WEEKDAYS, words])))


def named_speakers(candidates: Sequence[Candidate], terms: Iterable[str]) -> frozenset[str]:
    """Returns the speakers whom a question of `terms` names.

    A name before a colon is a speaker's where it begins lines in several of the units.
    """
    known = set(terms)
    seen = Counter(
        name for candidate in candidates for unit in candidate.speakers for name in unit.split()
    )
    return frozenset(
        name
        for name, units in seen.items()
        if units >= SPEAKER_LINES and known.issuperset(name.split("_"))
    )
