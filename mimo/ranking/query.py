"""A query as ranking reads it: its words, its identifiers, and the days that it names."""

from __future__ import annotations

from datetime import date, datetime
from math import exp

from mimo.frozen import frozen
from mimo.text.clean import compiled
from mimo.text.tokens import identifiers, is_unspaced, query_terms, tokenize

_WHEN = (
    r"(?i)\W*(?:(?:since|until|by) when|when|how long|(?:(?:in|on|at|by) )?(?:what|which) "
    r"(?:date|day|week|month|year|time))\b"
)

_QUOTED = (
    r"[\"\u201c\u201e\u00ab]([^\"\u201c\u201d\u201e\u00ab\u00bb]{2,200})[\"\u201d\u201c\u00bb]"
)
_FEW = 3
"""The number of content words up to which a memory with all of them answers literally."""

_SHORT, _LONG, _PAIR = 12, 16, 0.4
"""The number of content words up to which a query is short, and from which it is long, and the
words that a pair of characters counts for, in scripts without spaces."""


@frozen
class RankingQuery:
    """A query, as `understand` reads it."""

    full: tuple[str, ...]
    """Distinct tokens without the stop words."""
    content: tuple[str, ...]
    """`full` without question words, by which candidates are looked up."""
    spellings: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Tokens of other spellings, each with those in `full` that a text with it holds."""
    identifiers: tuple[str, ...] = ()
    """The tokens of each identifier of several words, joined by spaces."""
    asked: datetime | None = None
    """The time of the question, in the zone of the user."""
    days: tuple[date, date] | None = None
    """The first and the last day of the time that it names."""
    asks_when: bool = False
    """True if it asks for a time."""
    literal: tuple[str, ...] = ()
    """All that a literal answer holds: the words of a short query, or quoted phrases as tokens
    joined by spaces; empty for a longer query."""
    is_foreign: bool = False
    is_spaced: bool = True
    """False if its language puts no spaces between words."""

    @property
    def length(self) -> float:
        """0 for a short query, 1 for one of several sentences, and between them a share."""
        words = sum(_PAIR if is_unspaced(term[:1]) else 1 for term in self.content)
        return min(1.0, max(0.0, (words - _SHORT) / (_LONG - _SHORT)))


def understand(text: str, asked: datetime | None = None) -> RankingQuery:
    """Returns the query for `text`, asked at `asked`; without that, it names no days."""
    terms = query_terms(text)
    may_quote = '"' in text or not text.isascii()
    parts = compiled(_QUOTED).findall(text) if may_quote else ()
    quoted = (" ".join(tokenize(phrase)) for phrase in parts)
    phrases, held = tuple(filter(None, quoted)), {*terms.content}
    words = sum(not held.isdisjoint(tokenize(word)) for word in text.split())
    return RankingQuery(
        full=terms.full,
        content=terms.content,
        spellings=terms.spellings,
        identifiers=identifiers(text),
        asked=asked,
        days=_days(text, asked) if asked else None,
        asks_when=compiled(_WHEN).match(text) is not None,
        literal=phrases or (terms.content if words <= _FEW else ()),
        is_foreign=terms.is_foreign,
        is_spaced=not is_unspaced(text),
    )


def closeness(day: date, start: date, end: date) -> float:
    """Returns 1 for a day from `start` to `end`, and exp(-gap / (length + 2)) outside."""
    gap = max((start - day).days, (day - end).days, 0)
    return exp(-gap / ((end - start).days + 2))


def _days(text: str, asked: datetime) -> tuple[date, date] | None:
    """Returns the first and the last day of the time that a question names."""
    from mimo.when.question import named_time

    named = named_time(text, asked)
    return named.days(asked.tzinfo) if named and not named.is_present else None
