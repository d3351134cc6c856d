"""How well words match: BM25, coverage and phrases over one stretch of tokens."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import log

from mimo.domain.ranking.model import RankingQuery, Statistics
from mimo.domain.ranking.weights import K1, PHRASE_DISTANCE, B

Place = tuple[int, str]
"""A character's number in a text of tokens, and the query's term that begins there."""


@dataclass(slots=True)
class Hits:
    """The query's terms in one stretch of tokens."""

    length: int = 0
    """Tokens in all."""
    counts: dict[str, int] = field(default_factory=dict)
    phrases: dict[str, int] = field(default_factory=dict)
    """How often each term follows the one before it in the query."""


def inverse_frequency(holding: float, total: float) -> float:
    """Returns what a term is worth: ln(1 + (N - n + 0.5) / (n + 0.5)), as in Lucene.

    `holding` (n) of `total` (N) texts hold it; one that none holds counts ln(1 + N).
    """
    return log(1 + (total - holding + 0.5) / (holding + 0.5)) if holding else log(1 + total)


def inverse_frequencies(query: RankingQuery, statistics: Statistics) -> dict[str, float]:
    """Returns what each term of `query` is worth by the number of units that hold it."""
    known, total = statistics.frequencies, statistics.units
    return {
        term: inverse_frequency(known.get(term, 0), total) for term in (*query.full, *query.content)
    }


def predecessors(content: tuple[str, ...]) -> dict[str, str]:
    """Returns, for each content term but the first, the one before it in the query."""
    return dict(zip(content[1:], content, strict=False))


def places(text: str, terms: Iterable[str]) -> list[Place]:
    """Returns where `terms` stand in `text`: tokens with a space before and after each.

    Looking for each term is quicker than cutting the text into tokens, most of which are of no
    interest to the query.
    """
    found = []
    for term in terms:
        needle = f" {term} "
        place = text.find(needle)
        while place >= 0:
            found.append((place, term))
            place = text.find(needle, place + len(term) + 1)
    found.sort()
    return found


def hits(text: str, found: Iterable[Place], length: int, before: Mapping[str, str]) -> Hits:
    """Returns the terms found in a stretch of `length` tokens, counted alone and as phrases.

    A phrase is a term that stands within two tokens of `before[term]`, after it.
    """
    counts: dict[str, int] = {}
    phrases: dict[str, int] = {}
    last: dict[str, int] = {}
    for place, term in found:
        counts[term] = counts.get(term, 0) + 1
        last[term] = place
        start = last.get(before.get(term, ""))
        if start is not None and text.count(" ", start, place) <= PHRASE_DISTANCE:
            phrases[term] = phrases.get(term, 0) + 1
    return Hits(length, counts, phrases)


def together(parts: Iterable[Hits]) -> Hits:
    """Returns the hits of several stretches as of one."""
    length = 0
    counts: dict[str, int] = {}
    phrases: dict[str, int] = {}
    for part in parts:
        length += part.length
        for term, count in part.counts.items():
            counts[term] = counts.get(term, 0) + count
        for term, count in part.phrases.items():
            phrases[term] = phrases.get(term, 0) + count
    return Hits(length, counts, phrases)


def bm25(found: Hits, worth: Mapping[str, float], mean_length: float) -> float:
    """Returns BM25 of a stretch for the terms in `worth`, against stretches of `mean_length`."""
    norm = _norm(found.length, mean_length)
    return (K1 + 1) * sum(
        [worth[t] * count / (count + norm) for t, count in found.counts.items() if t in worth]
    )


def phrase(
    found: Hits, worth: Mapping[str, float], before: Mapping[str, str], mean_length: float
) -> float:
    """Returns BM25 of the pairs of neighbouring query terms that stand together as well.

    A pair is worth the mean of its two terms.
    """
    if not found.phrases:
        return 0.0
    norm = _norm(found.length, mean_length)
    return (K1 + 1) * sum(
        [
            (worth[term] + worth[before[term]]) / 2 * count / (count + norm)
            for term, count in found.phrases.items()
        ]
    )


def coverage(terms: Iterable[str], worth: Mapping[str, float], total: float) -> float:
    """Returns the share of `total`, the worth of all terms, that `terms` make up: 0..1."""
    return sum([worth[term] for term in terms if term in worth]) / total if total else 0.0


def _norm(length: int, mean_length: float) -> float:
    return K1 * (1 - B + B * length / mean_length)
