"""How likely the best memory is the one that was meant, given the score of a search.

Between two knots (s0, p0) and (s1, p1) it is p0 + (p1 - p0)(score - s0)/(s1 - s0). A knot is the
mean score and the share of right first answers in one of six bands of the score, measured by
`tests/bench/calibration.py` on 11,640 questions of the development sets in docs/retrieval.md, a
fifth of which have no answer there. The bare score has a Brier score of 0.278 and an expected
calibration error of 0.287; these knots 0.213 and 0.103, fitted each time without the sets that they
are held against. The probability never falls as the score rises.
"""

from itertools import pairwise

KNOTS = (
    (0.0, 0.0),
    (0.13, 0.01),
    (0.4, 0.12),
    (0.61, 0.32),
    (0.78, 0.41),
    (0.91, 0.53),
    (0.98, 0.71),
    (1.0, 0.71),
)


def confidence(score: float) -> float:
    """Returns the calibrated probability, 0..1, that a first answer of that score is right."""
    score = min(max(score, 0.0), 1.0)
    for (low, low_share), (high, high_share) in pairwise(KNOTS):
        if score <= high:
            return low_share + (high_share - low_share) * (score - low) / (high - low)
    return KNOTS[-1][1]
