"""The order and the scores of search results; docs/lab/retrieval.md explains the method.

One line ranks notes and documents: the cosine of the nearest unit, and the cube of the mean of BM25
and the share of the query that the best unit contains, so that words that are shared by chance
count little. A missing cosine is estimated from the static model; then words count for more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import repeat
from math import inf

from mimo.frozen import NamedTuple
from mimo.ranking.query import RankingQuery as RankingQuery
from mimo.ranking.query import closeness
from mimo.ranking.query import understand as understand
from mimo.ranking.words import Candidate as Candidate
from mimo.ranking.words import Reader
from mimo.ranking.words import Shape as Shape
from mimo.ranking.words import Statistics as Statistics
from mimo.text.calendar import in_zone

WORDS, PLAIN_WORDS = 0.2, 0.2
"""The weight of the cube of words, and that of words themselves if most cosines are estimates."""

NOTE = 0.1
"""The lead of a note over a document, one of whose many units may be near by chance."""

LONG = 0.2
"""The weight of BM25 in a query of several sentences: no unit contains much of it."""

IDENTIFIER, DATE, IMPORTANCE, AGE = 0.25, 0.16, 0.0125, 0.006
"""The weights of identifiers as they are written, of named days, and of two small priors."""

FOREIGN = 0.5
"""The weight of the cosine for a query that is not English: texts in its language are nearer."""

FLOOR = 0.3
"""The least share of the ideal BM25 that counts as the largest.

Otherwise one common pair of characters would be a full match in a store of another language.
"""

_HALF_LIFE = timedelta(days=180)

_NEXT, _MISSING, _UNRELATED, _GUESSED = 5, 0.27, 0.2, 0.1
"""The number of others that a match is compared with, the order assumed for each that the store
lacks, the least one, and how much more both are with estimated cosines: otherwise some memory
would be far ahead in a store that has nothing to do with the query."""

RARE = 0.06
"""The weight of a query's rare words."""

SUFFICIENT_LEAD = 0.15
"""No vectors are compared if the first candidate holds all words of a short query and leads by
this much."""

FAR = 0.17
"""The cosine of the nearest unit below which a query is about something else than the store."""


class Ranked(NamedTuple):
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
    is_literal: bool = False
    """True if it holds all words of a short query."""


class Cosines(NamedTuple):
    """The cosines of a query with the vectors of units."""

    of: Mapping[bytes, float]
    """By the name of the vector."""
    is_guessed: bool = True
    """True if most are estimates, as of an index whose vectors are still made."""


class Ranker:
    """Ranks the candidates of one query; each is read once, however often it is ranked."""

    def __init__(self, query: RankingQuery, statistics: Statistics, sure: float) -> None:
        """Takes the query, the frequencies of its words, and the least score of a literal match."""
        self._query, self._sure = query, sure
        self._reader = Reader(query, statistics)

    def has_literal(self, candidates: Sequence[Candidate]) -> bool:
        """Returns whether one of the candidates holds all words of a short query."""
        if not self._query.literal:
            return False
        self._reader.read(candidates)
        return any(self._reader[item.key].is_literal for item in candidates)

    def rank(
        self,
        candidates: Sequence[Candidate],
        around: Iterable[Candidate] = (),
        cosines: Cosines | None = None,
    ) -> Iterator[Ranked]:
        """Yields the candidates, best first; equal ones keep their order.

        `around` are parts beside candidates, which are not candidates themselves.
        """
        self._reader.read((*candidates, *around))
        of, is_guessed = cosines or Cosines({})
        near = [[of.get(name, 0.0) for name in item.vectors] if of else [] for item in candidates]
        is_plain = is_guessed or (self._query.is_foreign and self._query.is_spaced)
        orders = self._orders(candidates, near, PLAIN_WORDS if is_plain else 0.0)
        ahead = self.ahead(orders, is_guessed)
        nearest = max((cosine for cosines in near for cosine in cosines), default=0.0)
        if nearest < FAR:  # Some text is always the first, so its lead does not count.
            ahead = [-inf] * len(orders)
        lowest = 1.0
        literal = [self._reader[item.key].is_literal for item in candidates]
        places = sorted(range(len(orders)), key=lambda place: (not literal[place], -orders[place]))
        for place in places:
            key = candidates[place].key
            # A match is not surer than one that is above it.
            lowest = min(lowest, self._reader.score(key, ahead[place]))
            if literal[place]:
                lowest = max(lowest, self._sure)
            reading = self._reader[key]
            shares, unit = reading.coverages, 0
            if len(shares) > 1:  # The unit that adds most to the order.
                pairs = zip(shares, near[place] or repeat(0.0), strict=False)
                values = [WORDS / 2 * share + cosine for share, cosine in pairs]
                unit = values.index(max(values))
            yield Ranked(key, orders[place], lowest, unit, reading.coverage, reading.is_literal)

    def ahead(self, orders: Sequence[float], is_guessed: bool) -> list[float]:
        """Returns how far each candidate is ahead of the mean of the best `_NEXT` others.

        This is on one scale for all queries: the lower weight of cosines for a query that is not
        English is taken out. If most cosines are estimates, more is assumed for unrelated and for
        missing memories.
        """
        trust = FOREIGN if self._query.is_foreign else 1.0
        orders = [order / trust for order in orders]
        guessed = _GUESSED if is_guessed else 0.0
        least = _UNRELATED + guessed
        assumed = [_MISSING + guessed] * (_NEXT + 1 - len(orders))
        shown = (max(order, least) for order in orders)
        best = sorted([*shown, *assumed], reverse=True)[: _NEXT + 1]
        total = sum(best)
        return [order - (total - max(order, best[-1])) / _NEXT for order in orders]

    def _orders(
        self, candidates: Sequence[Candidate], near: Sequence[Sequence[float]], plain: float
    ) -> list[float]:
        """Returns the sort key of each candidate, all of which were read.

        `near` has the cosines of their units, and `plain` is the weight of words themselves.
        """
        reader, query = self._reader, self._query
        floor = FLOOR * reader.ideal
        trust = FOREIGN if query.is_foreign else 1.0
        terms = reader.content if query.is_foreign and query.is_spaced else reader.full
        words = [reader.bm25(item.key, terms) for item in candidates]
        peak, long = max([floor, *words]) or 1.0, LONG * query.length
        order_of_chat: Callable[[int], float] = float
        if any(item.shape in (Shape.TURN, Shape.CONVERSATION) for item in candidates):
            from mimo.ranking.chats import Chats

            order_of_chat = Chats(reader, candidates, near, floor).order
        orders = []
        for place, candidate in enumerate(candidates):
            reading = reader[candidate.key]
            if candidate.shape in (Shape.NOTE, Shape.DOCUMENT):
                bm25 = words[place] / peak
                held = (bm25 + reading.coverage) / 2
                order = trust * max((0.0, *near[place])) + WORDS * held**3 + plain * held
                order += long * bm25 + NOTE * (candidate.shape is Shape.NOTE)
            else:
                order = order_of_chat(place)
            order += RARE * reading.rare
            order += IDENTIFIER * reading.identifiers + IMPORTANCE * (candidate.importance - 0.5)
            orders.append(order + self._by_time(candidate.created))
        return orders

    def _by_time(self, created: datetime | None) -> float:
        asked, days = self._query.asked, self._query.days
        if created is None or asked is None:
            return 0.0
        order: float = AGE * 0.5 ** max((asked - created) / _HALF_LIFE, 0.0)
        if days:
            order += DATE * closeness(in_zone(created, asked.tzinfo).date(), *days)
        return order


def words_suffice(ranked: Sequence[Ranked]) -> bool:
    """Returns whether the order by words is clear enough to do without vectors."""
    if not ranked or not ranked[0].is_literal:
        return False
    return len(ranked) == 1 or ranked[0].order - ranked[1].order >= SUFFICIENT_LEAD
