"""The words of a query in its candidates: BM25 of a text, and the share of the query in a unit."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from itertools import accumulate
from math import log

from mimo.frozen import NamedTuple, frozen
from mimo.ranking.query import RankingQuery
from mimo.ranking.score import score, worth
from mimo.text.background import rarity

_K1, _B = 1.2, 0.75
"""BM25's constants, as FTS5 has them (S. Robertson, H. Zaragoza, 2009)."""

_RARE_SHARE, _RARE_RARITY = 20, 8.0
"""A rare word is in one of so many memories at most, and as rare in texts at large (nats)."""

_NONE: dict[str, int] = {}
_BETWEEN = "  "  # No word ends one stretch and begins the next.


class Shape(Enum):
    """The kind of a candidate, which decides how it is ranked.

    A note is a memory of at most 300 words that is not an included file, a turn a part of a
    conversation, and a document anything else: code, a page, a long memory.
    """

    TURN = "turn"
    CONVERSATION = "conversation"
    NOTE = "note"
    DOCUMENT = "document"


@frozen
class Statistics:
    """Frequencies of a query's words in this store."""

    units: int
    """Units in the store."""
    frequencies: Mapping[str, int]
    """Number of units with each of the query's terms; absent if there are none."""
    document_tokens: float
    """Mean number of tokens in a document."""
    passage_tokens: float
    """Mean number of tokens in a passage."""
    memories: int = 1
    """Memories that pass the filter."""


class Candidate(NamedTuple):
    """A memory that may answer a query, as the index keeps it; tokens are joined by spaces."""

    key: int
    units: Sequence[str]
    """Tokens of each unit, in the order of the text."""
    heading: str = ""
    """Tokens of the title, the topic and the tags."""
    shape: Shape = Shape.DOCUMENT
    vectors: Sequence[bytes] = ()
    """The names of the units' vectors."""
    created: datetime | None = None
    importance: float = 0.5
    passages: Sequence[str] = ()
    """Tokens of each passage; empty if they are the units."""
    speakers: Sequence[str] = ()
    """For each unit, the names that its lines begin with (`Unit.speakers`); empty for none."""
    beside: tuple[int, ...] = ()
    """The keys of the parts before and after it in the same parent."""
    parent: str = ""
    """Tokens of all the parts of its parent, the same string for each; empty without a parent."""


class Reading(NamedTuple):
    """The words of a query in a candidate."""

    counts: Mapping[str, int]
    """The occurrences of each term in the whole text."""
    length: int
    """Tokens of the whole text."""
    units: Sequence[Mapping[str, int]]
    """The terms in each unit, and those of the heading."""
    coverages: Sequence[float]
    """The share of the query, in idf, that each unit contains."""
    named: int
    """Words in the heading."""
    identifiers: float
    """The share of the query's identifiers that the text contains as they are written."""
    rare: float
    """The share of the query's rare words that it holds."""
    is_literal: bool
    """True if it holds all that a literal answer holds."""

    @property
    def coverage(self) -> float:
        """Returns that of the best unit."""
        return max(self.coverages, default=0.0)


class Reader:
    """Reads candidates of one query, each once."""

    def __init__(self, query: RankingQuery, statistics: Statistics) -> None:
        """Weighs the terms of `query` by their rarity in the store."""
        self.query, self.statistics = query, statistics
        frequencies, units = dict(statistics.frequencies), statistics.units
        for token, parts in query.spellings:
            for part in parts:
                frequencies[part] = max(frequencies.get(part, 0), frequencies.get(token, 0))
        terms = dict.fromkeys((*query.full, *query.content))
        self.full = {term: inverse_frequency(frequencies.get(term, 0), units) for term in terms}
        """The weight of each term by the number of units with it."""
        self.content = {term: self.full[term] for term in query.content}
        self._total = sum(self.content.values())
        self.ideal = (_K1 + 1) * self._total
        """The upper bound of BM25: every content term infinitely often."""
        self._worth = {
            term: worth(rarity(term), frequencies.get(term, 0), units) for term in query.content
        }
        self._asked = sum(self._worth.values())
        most = max(1, statistics.memories // _RARE_SHARE)
        self._rare = {
            term
            for term in query.content
            if 0 < frequencies.get(term, 0) <= most and rarity(term) >= _RARE_RARITY
        }
        self._readings: dict[int, Reading] = {}

    def __getitem__(self, key: int) -> Reading:
        """Returns what was read of a candidate."""
        return self._readings[key]

    def read(self, candidates: Iterable[Candidate]) -> None:
        """Reads the candidates that were not read before, together."""
        new = [item for item in candidates if item.key not in self._readings]
        stretches = [part for item in new for part in (item.heading, *item.units)]
        identifiers, literal = {*self.query.identifiers}, {*self.query.literal}
        counts = occurrences(stretches, dict.fromkeys((*self.full, *identifiers, *literal)))
        for token, parts in self.query.spellings:
            for place, times in enumerate(occurrences(stretches, (token,))):
                if times:
                    counts[place] = dict.fromkeys(parts, times[token]) | counts[place]
        end = 0
        for item in new:
            start, end = end, end + 1 + len(item.units)
            heading, *units = counts[start:end]
            totals: dict[str, int] = {}
            for part in counts[start:end]:
                for term, count in part.items():
                    totals[term] = totals.get(term, 0) + count
            if heading:
                units = [unit | heading if unit else heading for unit in units] or [heading]
            names = totals.keys()
            # A word of several parts is held as it is written, not its parts anywhere.
            is_literal = bool(literal) and literal <= names
            self._readings[item.key] = Reading(
                counts=totals,
                length=sum([part.count(" ") + 1 for part in stretches[start:end] if part]),
                units=units,
                coverages=[self.coverage(unit) if unit else 0.0 for unit in units],
                named=len(heading.keys() & self.content.keys()),
                identifiers=len(names & identifiers) / max(1, len(identifiers)),
                rare=len(names & self._rare) / max(1, len(self._rare)),
                is_literal=is_literal and not (identifiers and identifiers.isdisjoint(names)),
            )

    def bm25(self, key: int, weights: Mapping[str, float]) -> float:
        """Returns BM25 of a whole candidate for weighted terms."""
        reading = self._readings[key]
        return bm25(reading.counts, reading.length, weights, self.statistics.document_tokens)

    def coverage(self, terms: Iterable[str]) -> float:
        """Returns the share of the query, in idf, in some terms: 0..1."""
        content = self.content
        held = sum([content[term] for term in terms if term in content])
        return held / self._total if self._total else 0.0

    def score(self, key: int, ahead: float) -> float:
        """Returns the score of a candidate, which is so far ahead of the next ones."""
        reading, worth = self._readings[key], self._worth
        matched = [sum([worth.get(term, 0.0) for term in unit]) for unit in reading.units if unit]
        return score(
            ahead=ahead,
            matched=max(matched, default=0.0),
            asked=self._asked,
            named=reading.named,
            memories=self.statistics.memories,
            tokens=self.statistics.document_tokens,
        )


def occurrences(stretches: Sequence[str], terms: Collection[str]) -> list[dict[str, int]]:
    """Returns how often each stretch of tokens contains each of `terms`, those that it contains.

    A term may have several tokens. A search for each term in all stretches together is faster than
    splitting them into tokens.
    """
    results = [_NONE] * len(stretches)
    if not terms or not stretches:
        return results
    text = f" {_BETWEEN.join(stretches)} "
    ends = [*accumulate([len(stretch) + len(_BETWEEN) for stretch in stretches])]
    for term in terms:
        needle, step, number = f" {term} ", len(term) + 1, 0
        place = text.find(needle)
        while place >= 0:
            if place >= ends[number]:
                number = bisect_right(ends, place, number)
            counts = results[number]
            if counts is _NONE:
                counts = results[number] = {}
            counts[term] = counts.get(term, 0) + 1
            place = text.find(needle, place + step)
    return results


def inverse_frequency(holding: float, total: float) -> float:
    """Returns the weight of a term: ln(1 + (N - n + 0.5) / (n + 0.5)), as in Lucene.

    `holding` (n) of `total` (N) texts have it; the weight of an unknown term is ln(1 + N).
    """
    return log(1 + (total - holding + 0.5) / (holding + 0.5)) if holding else log(1 + total)


def bm25(
    counts: Mapping[str, int], length: int, weights: Mapping[str, float], mean: float
) -> float:
    """Returns BM25 of `length` tokens for the terms in `weights`, against a `mean` length."""
    norm = _K1 * (1 - _B + _B * length / mean)
    total = 0.0
    for term, count in counts.items():
        if term in weights:
            total += weights[term] * count / (count + norm)
    return (_K1 + 1) * total
