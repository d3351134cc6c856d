"""How well words match: BM25, coverage and phrases over one stretch of tokens."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import log

from mimo.domain.ranking.model import RankingQuery, Statistics
from mimo.domain.ranking.weights import K1, PHRASE_DISTANCE, B


@dataclass(slots=True)
class Hits:
    """The query's terms in one stretch of tokens."""

    length: int = 0
    """Tokens in all."""
    counts: dict[str, int] = field(default_factory=dict)
    phrases: dict[str, int] = field(default_factory=dict)
    """How often each term follows the one before it in the query."""


def inverse_frequencies(query: RankingQuery, statistics: Statistics) -> dict[str, float]:
    """Returns what each term is worth: ln(1 + (N - n + 0.5) / (n + 0.5)), as in Lucene.

    A term that the store doesn't know counts ln(1 + N).
    """
    total = statistics.units
    worth = {}
    for term in (*query.full, *query.content):
        units = statistics.frequencies.get(term, 0)
        worth[term] = log(1 + (total - units + 0.5) / (units + 0.5)) if units else log(1 + total)
    return worth


def predecessors(content: tuple[str, ...]) -> dict[str, str]:
    """Returns, for each content term but the first, the one before it in the query."""
    return dict(zip(content[1:], content, strict=False))


def find(text: str, terms: Collection[str], before: Mapping[str, str]) -> Hits:
    """Returns where `terms` stand in `text`, a string of tokens joined by spaces."""
    tokens = text.split(" ")
    hits = Hits(length=len(tokens) if text else 0)
    counts = hits.counts
    last: dict[str, int] = {}
    for place, token in [(i, token) for i, token in enumerate(tokens) if token in terms]:
        counts[token] = counts.get(token, 0) + 1
        previous = before.get(token)
        if previous in last and place - last[previous] <= PHRASE_DISTANCE:
            hits.phrases[token] = hits.phrases.get(token, 0) + 1
        last[token] = place
    return hits


def together(parts: Iterable[Hits]) -> Hits:
    """Returns the hits of several stretches as of one."""
    whole = Hits()
    for part in parts:
        whole.length += part.length
        for term, count in part.counts.items():
            whole.counts[term] = whole.counts.get(term, 0) + count
        for term, count in part.phrases.items():
            whole.phrases[term] = whole.phrases.get(term, 0) + count
    return whole


def bm25(hits: Hits, worth: Mapping[str, float], mean_length: float) -> float:
    """Returns BM25 of a stretch for the terms in `worth`, against stretches of `mean_length`."""
    norm = _norm(hits, mean_length)
    return sum(
        [
            worth[term] * count * (K1 + 1) / (count + norm)
            for term, count in hits.counts.items()
            if term in worth
        ]
    )


def coverage(terms: Iterable[str], worth: Mapping[str, float], total: float) -> float:
    """Returns the share of `total`, the worth of all terms, that `terms` make up: 0..1."""
    return sum([worth[term] for term in terms if term in worth]) / total if total else 0.0


def phrase(
    hits: Hits, worth: Mapping[str, float], before: Mapping[str, str], mean_length: float
) -> float:
    """Returns BM25 of the pairs of neighbouring query terms that stand together as well.

    A pair is worth the mean of its two terms.
    """
    norm = _norm(hits, mean_length)
    return sum(
        [
            (worth[term] + worth[before[term]]) / 2 * count * (K1 + 1) / (count + norm)
            for term, count in hits.phrases.items()
        ]
    )


def _norm(hits: Hits, mean_length: float) -> float:
    return K1 * (1 - B + B * hits.length / mean_length)
