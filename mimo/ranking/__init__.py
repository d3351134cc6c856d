"""The order and the score of what a search found; docs/retrieval.md tells the recipe."""

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

# A query's text -> what the ranking looks for.


_when = re.compile(
    r"\W*(?:(?:since|until|by) when|when|how long|(?:(?:in|on|at|by) )?(?:what|which) "
    r"(?:date|day|week|month|year|time))\b",
    re.IGNORECASE,
)


def understand(text: str, asked: datetime | None = None) -> RankingQuery:
    """Returns the query that `text` is, asked at `asked`.

    Without `asked`, words such as "last week" name no date.
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


# Memories that others supersede stand below those.


def below_successors(
    ranked: Sequence[Ranked], successors: Mapping[int, Collection[int]]
) -> list[Ranked]:
    """Returns `ranked` with every superseded memory moved down to right below its successors.

    `successors` names, by key, those that supersede a memory. One whose successors are not in
    the list keeps its place; nothing else changes order, and a circle is left as it stands.
    """
    if not successors:
        return list(ranked)
    listed = {one.key for one in ranked}
    above = {key: _above(key, successors) & listed for key in listed}
    waiting = list(ranked)
    placed: set[int] = set()
    order: list[Ranked] = []
    while waiting:
        ready = next(one for one in waiting if above[one.key] <= placed)
        waiting.remove(ready)
        placed.add(ready.key)
        order.append(ready)
    return order


def _above(key: int, successors: Mapping[int, Collection[int]]) -> set[int]:
    """Returns what supersedes `key`, without that which `key` supersedes in turn."""
    return {new for new in successors.get(key, ()) if key not in _reached(new, successors)}


def _reached(key: int, successors: Mapping[int, Collection[int]]) -> set[int]:
    """Returns `key` and all that supersedes it, over any number of steps."""
    reached: set[int] = set()
    ahead = [key]
    while ahead:
        if (one := ahead.pop()) not in reached:
            reached.add(one)
            ahead.extend(successors.get(one, ()))
    return reached


# Candidates -> the order and the scores of an answer.


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
        age=evidence.freshness(candidate.created, query.asked),
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
