"""How likely the best memory is the one that was meant, given the score of a search.

`confidence(score)` is the share of questions whose first answer was right, in six bands of the
score, joined by straight lines: between two knots (s0, p0), (s1, p1) it is
p0 + (p1 - p0)(score - s0)/(s1 - s0). It never falls as the score rises.
"""

from itertools import pairwise

KNOTS = (
    (0.0, 0.0),
    (0.12, 0.01),
    (0.4, 0.11),
    (0.61, 0.3),
    (0.78, 0.41),
    (0.91, 0.55),
    (0.98, 0.72),
    (1.0, 0.72),
)


def confidence(score: float) -> float:
    """Returns the calibrated probability, 0..1, that a first answer of that score is right."""
    score = min(max(score, 0.0), 1.0)
    for (low, low_share), (high, high_share) in pairwise(KNOTS):
        if score <= high:
            return low_share + (high_share - low_share) * (score - low) / (high - low)
    return KNOTS[-1][1]
