"""The order and the score of what a search found; docs/retrieval.md tells the recipe."""

from mimo.domain.ranking.fusion import rank
from mimo.domain.ranking.model import Candidate, Ranked, RankingQuery, Statistics
from mimo.domain.ranking.question import understand
from mimo.domain.ranking.succession import below_successors

__all__ = [
    "Candidate",
    "Ranked",
    "RankingQuery",
    "Statistics",
    "below_successors",
    "rank",
    "understand",
]
