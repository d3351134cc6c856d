"""The order and the scores of search results; docs/retrieval.md explains the method."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from math import exp

from mimo.frozen import frozen
from mimo.ranking import dates
from mimo.ranking.evidence import Candidate, Evidence, Examiner, RankingQuery, Statistics
from mimo.text.tokens import query_terms

ORDER = {
    "document": 1.5,
    "passage": 2.0,
    "coverage": 2.75,
    "phrase": 0.75,
    "unit_meaning": 5.0,
    "document_meaning": 2.0,
    "neighbour": 2.25,
    "parent": 0.5,
    "date": 4.0,
    "time": 1.5,
    "speaker": 0.3,
    "title": 0.5,
    "topic": 0.25,
    "importance": 0.3,
    "age": 0.15,
}
"""The weights of the order, by the fields of `Evidence`.

Fitted on development parts of chat, knowledge and multilingual sets, then rounded. The last four
are priors of ours: those sets have no titles, topics or importance.
"""

_RELATIVE = ("document", "passage", "phrase", "neighbour")
"""The measures that count as shares of the largest among the candidates."""

FLOOR = 0.3
"""The least share of the ideal BM25 that counts as the largest.

Otherwise one common pair of characters would be a full match in a store of another language.
"""

SCORE = {
    "coverage": 2.01,
    "document_coverage": 0.76,
    "passage": 2.07,
    "unit_bm25": 0.65,
    "phrase": 1.43,
    "unit_meaning": 1.90,
    "document_meaning": 2.35,
    "wide_coverage": 1.52,
    "parent": 0.88,
    "date": 0.85,
    "neighbour": 0.49,
}
"""The weights of the 0..1 score, which is comparable between queries.

Logistic regression: documents labelled right against the results of another set's queries.
"""

_CAPS = {"passage": 1.2, "unit_bm25": 1.2, "phrase": 1.0, "neighbour": 1.0}
"""The measures that count as shares of the ideal BM25, each with the largest share."""

LENGTH_WEIGHT = 0.81
"""The weight of a query of 12 terms or more in the score."""

BIAS = -4.5
"""A threshold of 0.3 then cuts 1 to 2 in 100 right answers and 74 of 100 unrelated ones."""

WORDS_BIAS = -2.4
"""The same for candidates without a comparison by meaning: 2 in 100, and 70 of 100."""

MODELLED_SHARE = 0.5
"""Share of letters of the model's scripts in a query below which its vector is ignored."""

_MODELLED = (
    (0x0000, 0x024F), (0x1E00, 0x1EFF), (0x1100, 0x11FF), (0x3130, 0x318F), (0xAC00, 0xD7A3),
    (0x3005, 0x3005), (0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF),
)  # fmt: skip
"""Latin, Hangul, kana and Han."""

_when = re.compile(
    r"\W*(?:(?:since|until|by) when|when|how long|(?:(?:in|on|at|by) )?(?:what|which) "
    r"(?:date|day|week|month|year|time))\b",
    re.IGNORECASE,
)


@frozen
class Ranked:
    """One candidate's place in the answer."""

    key: int
    order: float
    """The sort key, largest first; comparable only within one query."""
    score: float
    """0..1, comparable between queries: 0.3 separates related from unrelated."""
    unit: int
    """The number of its best unit, from 0."""


def understand(text: str, asked: datetime | None = None) -> RankingQuery:
    """Returns the query for `text`, asked at `asked`.

    Without `asked`, words such as "last week" are ignored.
    """
    terms = query_terms(text)
    letters = [character for character in text if character.isalpha()]
    return RankingQuery(
        text=text,
        full=terms.full,
        content=terms.content,
        asked=asked,
        windows=dates.windows(text, asked.date() if asked else None),
        asks_when=_when.match(text) is not None,
        modelled=sum(map(_is_modelled, letters)) >= MODELLED_SHARE * len(letters),
    )


def _is_modelled(letter: str) -> bool:
    return any(first <= ord(letter) <= last for first, last in _MODELLED)


def below_successors(
    ranked: Sequence[Ranked], successors: Mapping[int, Collection[int]]
) -> list[Ranked]:
    """Returns `ranked` with the successors of every superseded memory moved right above it.

    `successors` has the keys of the memories that supersede a memory. They answer what it answers,
    so each has at least its score. Successors that are not in the list are ignored, and so is a
    circle; the rest keeps its order.
    """
    if not successors:
        return list(ranked)
    listed = {memory.key: memory for memory in ranked}
    above = {
        key: [
            new.key
            for new in ranked
            if new.key in successors.get(key, ()) and key not in _reached(new.key, successors)
        ]
        for key in listed
        if key in successors
    }
    order: dict[int, Ranked] = {}

    def place(key: int, score: float) -> None:
        memory = listed[key]
        score = max(score, memory.score)
        for new in above.get(key, ()):
            if new not in order:
                place(new, score)
        order[key] = memory if score == memory.score else replace(memory, score=score)

    for memory in ranked:
        if memory.key not in order:
            place(memory.key, memory.score)
    return list(order.values())


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
    floor = FLOOR * examiner.ideal
    largest = {
        name: max([floor, *(getattr(item, name) for item in measured)]) for name in _RELATIVE
    }
    ranked = [
        Ranked(
            key=candidate.key,
            order=_order(item, largest),
            score=_score(query, item, examiner.ideal),
            unit=_best_unit(item),
        )
        for candidate, item in zip(candidates, measured, strict=True)
    ]
    return sorted(ranked, key=lambda item: -item.order)


def _order(measured: Evidence, largest: Mapping[str, float]) -> float:
    total = 0.0
    for name, weight in ORDER.items():
        value = getattr(measured, name)
        total += weight * (_share(value, largest[name]) if name in largest else value)
    return total


def _score(query: RankingQuery, measured: Evidence, ideal: float) -> float:
    total = BIAS if measured.cosines else WORDS_BIAS
    total += LENGTH_WEIGHT * min(len(query.content), 12) / 12
    for name, weight in SCORE.items():
        value = getattr(measured, name)
        if name in _CAPS:
            value = min(_share(value, ideal), _CAPS[name])
        total += weight * value
    return 1 / (1 + exp(-total))


def _share(value: float, of: float) -> float:
    return value / of if of else 0.0


def _best_unit(measured: Evidence) -> int:
    """Returns the number of the unit that adds most to the order."""
    values = [ORDER["coverage"] * share for share in measured.covered]
    for unit, cosine in enumerate(measured.cosines):
        values[unit] += ORDER["unit_meaning"] * cosine
    return max(range(len(values)), key=values.__getitem__, default=0)
