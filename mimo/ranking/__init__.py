"""The order and the scores of search results; docs/retrieval.md explains the method."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from math import inf
from operator import attrgetter

from mimo.frozen import frozen, replace
from mimo.ranking import dates
from mimo.ranking import score as scoring
from mimo.ranking.evidence import Candidate, Evidence, Examiner, RankingQuery, Shape
from mimo.ranking.score import Nearness
from mimo.text.clean import compiled
from mimo.text.tokens import UNSPACED, identifiers, query_terms

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
    "identifier": 6.0,
    "title": 0.5,
    "topic": 0.25,
    "importance": 0.3,
    "age": 0.15,
}
"""The weights of the order, by the fields of `Evidence`.

Fitted on development parts of chat, knowledge and multilingual sets, then rounded. The last four
are priors of ours: those sets have no titles, topics or importance.
"""

_measures: Callable[[Evidence], tuple[float, ...]] = attrgetter(*ORDER)

Score = Callable[[int], float]
"""Returns the score of the candidate at a place in the list."""

_RELATIVE = ("document", "passage", "phrase", "neighbour")
"""The measures that count as shares of the largest among the candidates."""

FLOOR = 0.3
"""The least share of the ideal BM25 that counts as the largest.

Otherwise one common pair of characters would be a full match in a store of another language.
"""

_MEANING_WEIGHT = {
    Shape.TURN: 3.0,
    Shape.CONVERSATION: 9.0,
    Shape.NOTE: 24.0,
    Shape.DOCUMENT: 18.0,
}
"""The weight of the encoder's cosine: in a short memory meaning leads, in a conversation words."""

_CHATS = (Shape.TURN, Shape.CONVERSATION)
_NEAREST = 10
"""At the mean cosine of so many nearest candidates, a chat counts as much as a document.

Otherwise the documents of a store would stand above its chats for any question.
"""

_NEAR_UNITS = 5

_STATIC_SHARE = 0.5
"""The share of the static cosines' weights that remains beside the encoder's."""

_GATE = (0.3, 0.9)
"""The coverages by the best candidate up to which words do not count, and from which they do.

Between them, their weight rises linearly. If no candidate holds much of the query, the words that
some share are chance.
"""

_GLOSSED_GATE = (0.2, 0.6)
_GLOSSED_SHARE = 0.6
"""The same, and the share of meaning's weight, for a query that is not English.

The pairs of characters at the end of a word change with its particle, so that few texts hold them
all: half of them is as much as most of an English query. And cosines with texts in the query's own
language are higher than those with others.
"""

_GATED = ("document", "passage", "coverage", "phrase")
_STATIC = ("unit_meaning", "document_meaning")
_LONG = (12, 16)
"""The number of content words up to which a query is short, and from which it is long.

No unit contains much of a long query, whose parts several units of a text answer. So the whole text
counts for more, and words count even if the best unit holds few of them.
"""

_PAIR = 0.4
"""The words that a pair of characters counts for, in scripts without spaces."""

_LONG_DOCUMENT = 4.0
"""The weight of the whole text's BM25 for a long query, except in turns of a conversation."""

SUFFICIENT_COVERAGE = 0.7
SUFFICIENT_LEAD = 3.0
"""The encoder is not asked if the first candidate covers this much and leads by this much."""

_CHANCE = 5.0
"""The order of a memory that is unrelated to a query."""

_READY = 0.9
"""The share of units with vectors from which the encoder decides the order."""

_STANDS_OUT = 0.3
"""Before that, the memory nearest by meaning comes first if its cosine is at least this."""

_WHEN = (
    r"(?i)\W*(?:(?:since|until|by) when|when|how long|(?:(?:in|on|at|by) )?(?:what|which) "
    r"(?:date|day|week|month|year|time))\b"
)


@frozen
class Ranked:
    """One candidate's place in the answer."""

    key: int
    order: float
    """The sort key, largest first; comparable only within one query."""
    score: float
    """The probability that it answers the query; comparable between queries."""
    unit: int
    """The number of its best unit, from 0."""
    coverage: float
    """The share of the query, in idf, that its best unit contains."""


def understand(text: str, asked: datetime | None = None) -> RankingQuery:
    """Returns the query for `text`, asked at `asked`.

    Without `asked`, words such as "last week" are ignored.
    """
    terms = query_terms(text)
    return RankingQuery(
        text=text,
        full=terms.full,
        content=terms.content,
        is_foreign=terms.is_foreign,
        identifiers=identifiers(text),
        asked=asked,
        windows=dates.windows(text, asked.date() if asked else None),
        asks_when=compiled(_WHEN).match(text) is not None,
    )


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
    examiner: Examiner,
    candidates: Sequence[Candidate],
    near: Nearness | None = None,
    *,
    threshold: float = 0.0,
    least: int = 0,
) -> list[Ranked]:
    """Returns the candidates that reach `threshold`, best first; equal ones keep their order.

    At least the best two are returned, and the best `least`: no others need scores. `examiner` has
    the query, and what it has read of candidates for an earlier call. `near` has the encoder's
    cosines; without it, words and static vectors decide.
    """
    query = examiner.query
    measured = examiner.examine(candidates)
    floor = FLOOR * examiner.ideal
    largest = {
        name: max([floor, *(getattr(item, name) for item in measured)]) for name in _RELATIVE
    }
    long = _ramp(sum(map(_words_in, query.content)), _LONG)
    factors = {"document": 1 + long * (_LONG_DOCUMENT / ORDER["document"] - 1)}
    if near and near.share >= _READY:
        trust, ends = _trusted(query)
        best = max([item.coverage for item in measured], default=0.0)
        words = max(long, _ramp(best, ends))
        orders = _by_meaning(candidates, measured, largest, near, factors, words, trust)
    else:
        weigh, weigh_turn = _by_words(largest, factors), _by_words(largest, {})
        orders = [
            weigh_turn(item) if candidate.shape is Shape.TURN else weigh(item)
            for candidate, item in zip(candidates, measured, strict=True)
        ]
    score = _scores(examiner, candidates, measured, orders, near)
    if near and near.share < _READY:
        score = _put_first(candidates, orders, score, near)
    ranked: list[Ranked] = []
    lowest = 1.0
    for place in sorted(range(len(orders)), key=lambda place: -orders[place]):
        # A match is not surer than one that is above it.
        lowest = min(lowest, score(place))
        if lowest < threshold and len(ranked) >= max(2, least):
            break
        candidate, item = candidates[place], measured[place]
        ranked.append(
            Ranked(
                key=candidate.key,
                order=orders[place],
                score=lowest,
                unit=_best_unit(candidate, item),
                coverage=item.coverage,
            )
        )
    return ranked


def words_suffice(ranked: Sequence[Ranked]) -> bool:
    """Returns whether the order by words is clear enough to do without the encoder."""
    if not ranked or ranked[0].coverage < SUFFICIENT_COVERAGE:
        return False
    return len(ranked) == 1 or ranked[0].order - ranked[1].order >= SUFFICIENT_LEAD


def _by_words(
    largest: Mapping[str, float], factors: Mapping[str, float]
) -> Callable[[Evidence], float]:
    """Returns the function that sums the weighted measures; `factors` change some weights."""
    weights = [weight * factors.get(name, 1.0) for name, weight in ORDER.items()]
    most = [largest.get(name, 1.0) or inf for name in ORDER]

    def order(measured: Evidence) -> float:
        total = 0.0
        for weight, value, of in zip(weights, _measures(measured), most, strict=True):
            if value:
                total += weight * (value / of)
        return total

    return order


def _trusted(query: RankingQuery) -> tuple[float, tuple[float, float]]:
    """Returns the share of meaning's weight, and the coverages between which words begin to count.

    Cosines between languages are less reliable, so words count for more.
    """
    if query.is_foreign:
        return _GLOSSED_SHARE, _GLOSSED_GATE
    return 1.0, _GATE


def _by_meaning(
    candidates: Sequence[Candidate],
    measured: Sequence[Evidence],
    largest: Mapping[str, float],
    near: Nearness,
    changed: Mapping[str, float],
    gate: float,
    trust: float,
) -> list[float]:
    """Returns the order of each candidate, with the encoder's cosines.

    `changed` has factors of weights, but not of turns. `gate` and `trust` are the shares of the
    words' and of meaning's weights.
    """
    cosines = _encoded(candidates, measured, near)
    words = dict.fromkeys(_GATED, gate) | dict.fromkeys(_STATIC, gate * _STATIC_SHARE)
    words |= {name: gate * factor for name, factor in changed.items()}
    weigh = dict.fromkeys(Shape, _by_words(largest, words))
    # A conversation is about many things, so that the words of the question decide.
    weigh[Shape.TURN] = _by_words(largest, dict.fromkeys(_STATIC, _STATIC_SHARE))
    weigh[Shape.CONVERSATION] = _by_words(largest, changed)
    cosines = [
        max(0.0, _of_conversation(candidate, cosine))
        for candidate, cosine in zip(candidates, cosines, strict=True)
    ]
    highest = sorted(cosines)[-_NEAREST:]
    typical = sum(highest) / max(1, len(highest))
    orders = []
    for candidate, item, cosine in zip(candidates, measured, cosines, strict=True):
        meant = _MEANING_WEIGHT[candidate.shape] * cosine
        if candidate.shape in _CHATS:
            meant += (_MEANING_WEIGHT[Shape.DOCUMENT] - _MEANING_WEIGHT[candidate.shape]) * typical
        orders.append(trust * meant + weigh[candidate.shape](item))
    return orders


def _of_conversation(candidate: Candidate, cosine: float) -> float:
    """Returns the cosine of a candidate; in a conversation, five near units count as much as one.

    One unit of a long chat may be near by chance.
    """
    nearest = sorted(candidate.encoded_cosines)[-_NEAR_UNITS:]
    if candidate.shape is not Shape.CONVERSATION or len(nearest) < _NEAR_UNITS:
        return cosine
    return (cosine + sum(nearest) / _NEAR_UNITS) / 2


def _encoded(
    candidates: Sequence[Candidate], measured: Sequence[Evidence], near: Nearness
) -> list[float]:
    """Returns the encoder's cosine of each candidate, estimated if a vector is missing.

    The estimate is the expectation from the static cosine, shifted as for the other candidates of
    this query.
    """
    base, slope = scoring.EXPECTED
    pairs = list(zip(candidates, measured, strict=True))
    shifts = [
        near.of[candidate.key] - (base + slope * item.unit_meaning)
        for candidate, item in pairs
        if candidate.key in near.of
    ]
    shift = sum(shifts) / len(shifts) if shifts else 0.0
    return [
        near.of.get(candidate.key, base + slope * item.unit_meaning + shift)
        for candidate, item in pairs
    ]


def _put_first(
    candidates: Sequence[Candidate], orders: list[float], score: Score, near: Nearness
) -> Score:
    """Puts the note that is nearest by meaning above the others, if it is near enough.

    It is at least as likely as the best by words: its score is the highest one.
    """
    places = {
        candidate.key: place
        for place, candidate in enumerate(candidates)
        if candidate.shape is Shape.NOTE
    }
    for key, cosine in near.nearest:
        if key in places and cosine >= _STANDS_OUT:
            first = places[key]
            orders[first] = max(orders) + 1
            highest = max(map(score, range(len(orders))))
            return lambda place: highest if place == first else score(place)
    return score


def _scores(
    examiner: Examiner,
    candidates: Sequence[Candidate],
    measured: Sequence[Evidence],
    orders: Sequence[float],
    near: Nearness | None,
) -> Score:
    """Returns the function that scores a candidate."""
    statistics = examiner.statistics
    store = (statistics.memories, statistics.document_tokens)
    margins = _margins(orders)
    if near and near.share >= _READY:
        encoded, sixth = _encoded(candidates, measured, near), near.sixth
        weights = scoring.BY_GLOSS if examiner.query.is_foreign else scoring.BY_MEANING

        def by_meaning(place: int) -> float:
            matched = examiner.matched(measured[place].reading)
            evidence = scoring.by_meaning(matched, encoded[place], sixth, *store)
            return scoring.score(evidence, margins[place], weights)

        return by_meaning

    cosines = [item.unit_meaning for item in measured]

    def by_words(place: int) -> float:
        matched = examiner.matched(measured[place].reading)
        rest = [*cosines[:place], *cosines[place + 1 :]]
        evidence = scoring.by_words(matched, cosines[place], rest, *store)
        return scoring.score(evidence, margins[place], scoring.BY_WORDS)

    return by_words


def _margins(orders: Sequence[float]) -> list[float]:
    """Returns how far each candidate is ahead of the best other one, below 0 if behind.

    A candidate by chance is always assumed.
    """
    first, second = sorted([*orders, _CHANCE, _CHANCE], reverse=True)[:2]
    return [order - (second if order == first else first) for order in orders]


def _words_in(term: str) -> float:
    return 1.0 if term.isascii() or not compiled(f"[{UNSPACED}]").match(term) else _PAIR


def _ramp(value: float, ends: tuple[float, float]) -> float:
    """Returns 0 up to the first end, 1 from the second on, and between them a linear share."""
    low, high = ends
    return min(1.0, max(0.0, (value - low) / (high - low)))


def _best_unit(candidate: Candidate, measured: Evidence) -> int:
    """Returns the number of the unit that adds most to the order."""
    values = [ORDER["coverage"] * share for share in measured.covered]
    for unit, cosine in enumerate(measured.cosines):
        values[unit] += ORDER["unit_meaning"] * cosine
    for unit, cosine in enumerate(candidate.encoded_cosines):
        values[unit] += _MEANING_WEIGHT[candidate.shape] * cosine
    return max(range(len(values)), key=values.__getitem__, default=0)
