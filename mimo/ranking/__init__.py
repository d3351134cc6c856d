"""The order and the scores of search results; docs/retrieval.md explains the method."""

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from math import exp
from operator import mul

from mimo.ranking import dates, evidence
from mimo.ranking.evidence import Evidence, Examiner
from mimo.ranking.model import (
    BIAS,
    LATIN_SHARE,
    ORDER,
    SCORE,
    WORDS_BIAS,
    Candidate,
    Features,
    Ranked,
    RankingQuery,
    Signals,
    Statistics,
)
from mimo.text.tokens import query_terms

_when = re.compile(
    r"\W*(?:(?:since|until|by) when|when|how long|(?:(?:in|on|at|by) )?(?:what|which) "
    r"(?:date|day|week|month|year|time))\b",
    re.IGNORECASE,
)


def understand(text: str, asked: datetime | None = None) -> RankingQuery:
    """Returns the query for `text`, asked at `asked`.

    Without `asked`, words such as "last week" are ignored.
    """
    terms = query_terms(text)
    return RankingQuery(
        text=text,
        full=terms.full,
        content=terms.content,
        asked=asked,
        windows=dates.windows(text, asked.date() if asked else None),
        asks_when=_when.match(text) is not None,
        latin=_is_latin(text),
    )


def _is_latin(text: str) -> bool:
    letters = [character for character in text if character.isalpha()]
    latin = sum([character < "\u0250" or "\u1e00" <= character < "\u1f00" for character in letters])
    return latin >= LATIN_SHARE * len(letters)


def below_successors(
    ranked: Sequence[Ranked], successors: Mapping[int, Collection[int]]
) -> list[Ranked]:
    """Returns `ranked` with every superseded memory moved right below its successors.

    `successors` has the keys of the memories that supersede a memory. A memory whose successors
    are not in the list keeps its place; the rest keeps its order, and a circle is ignored.
    """
    if not successors:
        return list(ranked)
    listed = {memory.key for memory in ranked}
    above = {key: _above(key, successors) & listed for key in listed}
    waiting = list(ranked)
    placed: set[int] = set()
    order: list[Ranked] = []
    while waiting:
        ready = next(memory for memory in waiting if above[memory.key] <= placed)
        waiting.remove(ready)
        placed.add(ready.key)
        order.append(ready)
    return order


def _above(key: int, successors: Mapping[int, Collection[int]]) -> set[int]:
    """Returns the successors of `key`, except those that `key` supersedes in turn."""
    return {new for new in successors.get(key, ()) if key not in _reached(new, successors)}


def _reached(key: int, successors: Mapping[int, Collection[int]]) -> set[int]:
    """Returns `key` and its direct and indirect successors."""
    reached: set[int] = set()
    ahead = [key]
    while ahead:
        if (memory := ahead.pop()) not in reached:
            reached.add(memory)
            ahead.extend(successors.get(memory, ()))
    return reached


def rank(
    query: RankingQuery, candidates: Sequence[Candidate], statistics: Statistics
) -> list[Ranked]:
    """Returns the candidates, best first; equal ones keep their order."""
    examiner = Examiner(query, statistics)
    measured = examiner.examine(candidates)
    largest = Evidence(
        document=max([item.document for item in measured], default=0.0),
        passage=max([item.passage for item in measured], default=0.0),
        phrase=max([item.phrase for item in measured], default=0.0),
        neighbour=max([item.neighbour for item in measured], default=0.0),
    )
    ranked = [
        Ranked(
            key=candidate.key,
            order=sum(map(mul, _features(query, candidate, item, largest), ORDER)),
            score=_score(
                _signals(query, item, examiner.ideal),
                BIAS if query.latin and candidate.unit_cosines else WORDS_BIAS,
            ),
            unit=item.unit,
        )
        for candidate, item in zip(candidates, measured, strict=True)
    ]
    return sorted(ranked, key=lambda item: -item.order)


def _share(value: float, of: float) -> float:
    return value / of if of else 0.0


def _features(
    query: RankingQuery, candidate: Candidate, measured: Evidence, largest: Evidence
) -> Features:
    return Features(
        document=_share(measured.document, largest.document),
        passage=_share(measured.passage, largest.passage),
        coverage=measured.coverage,
        phrase=_share(measured.phrase, largest.phrase),
        unit_meaning=measured.unit_meaning,
        document_meaning=measured.document_meaning,
        neighbour=_share(measured.neighbour, largest.neighbour),
        parent=measured.parent,
        date=measured.date,
        time=measured.time,
        speaker=measured.speaker,
        title=measured.title,
        topic=measured.topic,
        importance=candidate.importance - 0.5,
        age=evidence.freshness(candidate.created, query.asked),
    )


def _signals(query: RankingQuery, measured: Evidence, ideal: float) -> Signals:
    return Signals(
        coverage=measured.coverage,
        document_coverage=measured.document_coverage,
        passage=min(_share(measured.passage, ideal), 1.2),
        unit=min(_share(measured.unit_bm25, ideal), 1.2),
        phrase=min(_share(measured.phrase, ideal), 1.0),
        unit_meaning=measured.unit_meaning,
        document_meaning=measured.document_meaning,
        query_length=min(len(query.content), 12) / 12,
        wide_coverage=measured.wide_coverage,
        parent=measured.parent,
        date=measured.date,
        neighbour=min(_share(measured.neighbour, ideal), 1.0),
    )


def _score(signals: Signals, bias: float) -> float:
    return 1 / (1 + exp(-bias - sum(map(mul, signals, SCORE))))
