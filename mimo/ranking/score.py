"""The score of a match, 0 to 1: the probability that it answers the query.

It is a logistic function of evidence that is comparable between stores: how far the match is ahead
of the next ones in the order, and how surprising the shared words are against their frequency in
general. docs/lab/retrieval.md has the figures.
"""

from __future__ import annotations

from math import exp, log

BELIEF = 300
"""The general frequency of a word counts as much as that many units of the store."""

BIAS, AHEAD = -2.95, 16.0
"""The weights of a match that is ahead of the next ones.

`bench/asks/fit.py` fits -3.6 and 21; these are sure from the same distance, and leave the
nearest memory above `rows.NEAR`. Estimated cosines have the same weights.
"""

CONTAINED = {"bias": -3.4, "coverage": 3.2, "surprise": 0.15, "named": 0.3}
"""The weights for a memory that has the words, however many others have them too."""

_FAR = 0.25
"""A distance in the order from which more of it does not count."""

_LONG = 50
"""Tokens of a memory from which its length makes a match by chance more likely."""

_MOST_NAMED, _LEAST_ASKED = 2, 4.5
"""The most words in a title that count, and the worth of a query (nats) below which even all its
words are weak evidence: "the", "help"."""


def worth(rarity: float, holding: int, units: int) -> float:
    """Returns the information in a word: -ln of its frequency, in nats.

    `holding` of `units` of the store contain it; `rarity` is the same measure in texts at large.
    """
    return max(0.0, -log((holding + BELIEF * exp(-rarity)) / (units + BELIEF)))


def score(
    *, ahead: float, matched: float, asked: float, named: int, memories: int, tokens: float
) -> float:
    """Returns the probability for some evidence.

    `ahead` is the distance in the order to the mean of the next ones, and `matched` the worth of
    the query's words in the best unit, with title and topic (nats), of `asked` in all of them;
    `named` are words in title or topic. `tokens` is the mean length of the searched memories.
    """
    by_chance = log(max(1, memories)) + log(max(tokens, _LONG) / _LONG)
    contained = (
        CONTAINED["bias"]
        + CONTAINED["coverage"] * matched / max(asked, _LEAST_ASKED)
        + CONTAINED["surprise"] * _within(matched - by_chance, -3.0, 20.0)
        + CONTAINED["named"] * min(named, _MOST_NAMED)
    )
    leading = BIAS + AHEAD * _within(ahead, -_FAR, _FAR)
    return 1 / (1 + exp(-max(leading, contained)))


def _within(value: float, low: float, high: float) -> float:
    return min(high, max(low, value))
