"""Candidates -> the order and the scores of an answer."""

from collections.abc import Sequence
from math import exp
from operator import mul

from mimo.domain.ranking import context
from mimo.domain.ranking.evidence import Evidence, Examiner
from mimo.domain.ranking.model import Candidate, Ranked, RankingQuery, Statistics
from mimo.domain.ranking.weights import BIAS, ORDER, SCORE, WORDS_BIAS, Features, Signals


def rank(
    query: RankingQuery, candidates: Sequence[Candidate], statistics: Statistics
) -> list[Ranked]:
    """Returns the candidates best first; equals keep the order in which they were given."""
    examiner = Examiner(query, statistics)
    found = examiner.examine(candidates)
    largest = Evidence(
        document=max([one.document for one in found], default=0.0),
        passage=max([one.passage for one in found], default=0.0),
        phrase=max([one.phrase for one in found], default=0.0),
        neighbour=max([one.neighbour for one in found], default=0.0),
    )
    ranked = [
        Ranked(
            key=candidate.key,
            order=sum(map(mul, _features(query, candidate, one, largest), ORDER)),
            score=_score(
                _signals(query, one, examiner.ideal),
                BIAS if query.latin and candidate.unit_cosines else WORDS_BIAS,
            ),
            unit=one.unit,
        )
        for candidate, one in zip(candidates, found, strict=True)
    ]
    return sorted(ranked, key=lambda one: -one.order)


def _share(value: float, of: float) -> float:
    return value / of if of else 0.0


def _features(
    query: RankingQuery, candidate: Candidate, found: Evidence, largest: Evidence
) -> Features:
    return Features(
        document=_share(found.document, largest.document),
        passage=_share(found.passage, largest.passage),
        coverage=found.coverage,
        phrase=_share(found.phrase, largest.phrase),
        unit_meaning=found.unit_meaning,
        document_meaning=found.document_meaning,
        neighbour=_share(found.neighbour, largest.neighbour),
        parent=found.parent,
        date=found.date,
        time=found.time,
        speaker=found.speaker,
        title=found.title,
        topic=found.topic,
        importance=candidate.importance - 0.5,
        age=context.freshness(candidate.created, query.asked),
    )


def _signals(query: RankingQuery, found: Evidence, ideal: float) -> Signals:
    return Signals(
        coverage=found.coverage,
        document_coverage=found.document_coverage,
        passage=min(_share(found.passage, ideal), 1.2),
        unit=min(_share(found.unit_bm25, ideal), 1.2),
        phrase=min(_share(found.phrase, ideal), 1.0),
        unit_meaning=found.unit_meaning,
        document_meaning=found.document_meaning,
        query_length=min(len(query.content), 12) / 12,
        wide_coverage=found.wide_coverage,
        parent=found.parent,
        date=found.date,
        neighbour=min(_share(found.neighbour, ideal), 1.0),
    )


def _score(signals: Signals, bias: float) -> float:
    return 1 / (1 + exp(-bias - sum(map(mul, signals, SCORE))))
