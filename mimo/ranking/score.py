"""The score of a match, 0 to 1: the probability that it answers the query.

It is a logistic function of evidence that is comparable between stores: how surprising the shared
words are against their frequency in general, and how far the meaning is above chance in this
store. docs/retrieval.md has the figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log

from mimo.frozen import NamedTuple

BELIEF = 300
"""The general frequency of a word counts as much as that many units of the store."""

MOST_PHRASES = 3
MOST_NAMED = 2
_LONG = 50
"""Tokens of a memory from which its length makes a match by chance more likely."""

CONTAINED = {"bias": -3.4, "coverage": 3.2, "surprise": 0.15, "named": 0.3}
"""The weights for a memory that has the words, however many others have them too."""

BY_WORDS = {
    "bias": -3.4,
    "coverage": 2.5,
    "surprise": 0.15,
    "above": 2.7,
    "gap": 2.4,
    "margin": 0.28,
    "named": 0.2,
}
"""The weights with static vectors only."""

BY_MEANING = {"bias": -2.85, "lead": 4.6, "margin": 0.75, "phrases": 0.4}
"""The weights with the encoder's vectors.

A logistic regression on the stores in `tests/bench/asks` and four other sets, in which every
question is also asked without its answers in the store: half of all questions have no answer.
"""

BY_GLOSS = {"bias": -2.7, "lead": 6.3, "margin": 0.55}
"""The weights for a query that is not English: its cosines are closer together.

Chosen by the same measure on two Korean stores and a bilingual one.
"""

MOST_MARGIN = 3.0

LEAST_ASKED = 4.5
"""The worth of a query (nats) below which even all its words are weak evidence: "the", "help"."""


EXPECTED = (0.02, 0.65)
"""The encoder's cosine is about the first plus the second times the static one."""


class Nearness(NamedTuple):
    """The nearness of the memories that pass a filter to a query, each by its nearest unit."""

    nearest: tuple[tuple[int, float], ...]
    """The keys and cosines of the nearest ones, nearest first."""
    of: Mapping[int, float]
    """The cosines of the memories all of whose units have vectors, by key."""
    share: float
    """The share of units that have vectors, 0..1."""

    @property
    def sixth(self) -> float:
        """Returns the cosine of the sixth nearest memory; 0 if there are fewer."""
        return self.nearest[5][1] if len(self.nearest) > 5 else 0.0


class Matched(NamedTuple):
    """The words of a query in a memory."""

    matched: float
    """The worth of those in its best unit, with title and topic (nats)."""
    asked: float
    """The worth of all of them."""
    phrases: int
    """Neighbours in the query that are neighbours in its best passage."""
    named: int
    """Words in its title or topic."""


def worth(rarity: float, holding: int, units: int) -> float:
    """Returns the information in a word: -ln of its frequency, in nats.

    `holding` of `units` of the store contain it; `rarity` is the same measure in texts at large.
    """
    return max(0.0, -log((holding + BELIEF * exp(-rarity)) / (units + BELIEF)))


def by_words(
    match: Matched, cosine: float, others: Sequence[float], memories: int, tokens: float
) -> dict[str, float]:
    """Returns the evidence of words and static vectors, by the names in `BY_WORDS`.

    `others` are the static cosines of the other candidates.
    """
    mean = sum(others) / len(others) if others else 0.0
    # As if ten more memories had a usual mean.
    shrunk = (memories * mean + 10 * 0.15) / (memories + 10)
    return {
        **_words(match, memories, tokens),
        "above": cosine - shrunk,
        "gap": min(0.3, max(-0.3, cosine - max(others, default=0.1))),
    }


def by_meaning(
    match: Matched, cosine: float, sixth: float, memories: int, tokens: float
) -> dict[str, float]:
    """Returns the evidence of words and the encoder, by the names in `BY_MEANING`.

    `sixth` is the cosine of the sixth nearest memory.
    """
    return {
        **_words(match, memories, tokens),
        "lead": min(0.4, max(-0.3, cosine - max(0.12, sixth))),
        "cosine": cosine,
    }


def score(evidence: Mapping[str, float], margin: float, weights: Mapping[str, float]) -> float:
    """Returns the probability for some evidence.

    `margin` is how far the match is ahead of the best other one in the order.
    """
    ahead = weights["margin"] * min(MOST_MARGIN, max(-MOST_MARGIN, margin))
    total = max(ahead + _sum(evidence, weights), _sum(evidence, CONTAINED))
    return 1 / (1 + exp(-total))


def _sum(evidence: Mapping[str, float], weights: Mapping[str, float]) -> float:
    weighted = ((name, weights[name]) for name in evidence if name in weights)
    return weights["bias"] + sum(weight * evidence[name] for name, weight in weighted)


def _words(match: Matched, memories: int, tokens: float) -> dict[str, float]:
    """Returns the evidence of words.

    `surprise` is -ln of the number of memories that hold these words by chance.
    """
    by_chance = log(max(1, memories)) + log(max(tokens, _LONG) / _LONG)
    return {
        "coverage": match.matched / max(match.asked, LEAST_ASKED),
        "phrases": min(match.phrases, MOST_PHRASES),
        "surprise": min(20.0, max(-3.0, match.matched - by_chance)),
        "named": min(match.named, MOST_NAMED),
    }
