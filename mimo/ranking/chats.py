"""The order of chats, which use more evidence than notes and documents.

A chat is about many things, and the words of a question are spread over its turns. So meaning
counts for less there, and the turns beside a turn count, as do the speakers and times that a
question names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import compress

from mimo.ranking.words import Candidate, Reader, Shape, bm25, inverse_frequency, occurrences
from mimo.text.calendar import MONTHS, WEEKDAYS
from mimo.text.tokens import tokenize

_MEANING = {Shape.TURN: 0.125, Shape.CONVERSATION: 0.5}
"""The weight of the cosine, by which words lead."""

_WORDS, _COVERAGE, _BESIDE, _PASSAGE = 0.1, 0.12, 0.1, 0.08
"""The weights of BM25 of the text, of the coverage, and of BM25 of a neighbour and a passage."""

_PARENT, _TIME, _SPEAKER = 0.04, 0.06, 0.025
"""The weights of the coverage by the whole source, and by lines with a time or of a speaker."""

_NEAREST = 10
"""At the mean cosine of so many nearest candidates, a chat counts as much as a document.

Otherwise the documents of a store would be above its chats for any question.
"""

_MANY_UNITS, _SPEAKER_LINES = 5, 5
"""The best units of a long text that count, and the fewest units with lines of a speaker."""


class Chats:
    """The candidates of a query as chats."""

    def __init__(
        self,
        reader: Reader,
        candidates: Sequence[Candidate],
        near: Sequence[Sequence[float]],
        floor: float,
    ) -> None:
        """Takes all candidates, which are read, the cosines of their units, and the least BM25.

        That counts as the largest at least.
        """
        self._reader, self._candidates = reader, candidates
        self._speakers = _named_speakers(candidates, reader.query.full)
        is_long = [item.shape is Shape.CONVERSATION for item in candidates]
        self._cosines = list(map(best_of, near))
        highest = sorted(self._cosines)[-_NEAREST:]
        self._typical = sum(highest) / max(1, len(highest))
        self._held: dict[str, float] = {"": 0.0}
        content, long_ones = reader.content, compress(candidates, is_long)
        worth = self._by_texts(list(long_ones))
        words, beside, passages = [], [], []
        for item, long in zip(candidates, is_long, strict=True):
            words.append(reader.bm25(item.key, worth if long else content))
            beside.append(max([reader.bm25(key, content) for key in item.beside], default=0.0))
            passages.append(self._best_passage(item) if long else 0.0)
        self._words, self._beside, self._passages = (
            _relative(values, floor) for values in (words, beside, passages)
        )

    def order(self, place: int) -> float:
        """Returns the order of the candidate at a place, without what counts for any candidate."""
        chat, asks_when = self._candidates[place], self._reader.query.asks_when
        coverages, weight = self._reader[chat.key].coverages, _MEANING[chat.shape]
        order = weight * self._cosines[place] + (1 - weight) * self._typical
        is_turn = chat.shape is Shape.TURN
        coverage = best_of(coverages) if is_turn else max(coverages, default=0.0)
        order += _WORDS * self._words[place] + _COVERAGE * coverage
        order += _BESIDE * self._beside[place] + _PASSAGE * self._passages[place]
        order += _PARENT * self._parent(chat.parent)
        pairs = list(zip(chat.units, chat.speakers, coverages, strict=False))
        named = [s for _, names, s in pairs if not self._speakers.isdisjoint(names.split())]
        timed = [s for unit, _, s in pairs if s and asks_when and _time().search(unit)]
        return order + _SPEAKER * max(named, default=0.0) + _TIME * max(timed, default=0.0)

    def _by_texts(self, chats: Sequence[Candidate]) -> dict[str, float]:
        """Returns the weights of terms by the number of conversations, not units, with them.

        The store has the number of units. The ratio is that of the candidates: a common word is in
        every conversation, but in few of the units.
        """
        readings, statistics = [self._reader[chat.key] for chat in chats], self._reader.statistics
        texts = Counter(term for reading in readings for term in reading.counts)
        units = Counter(term for reading in readings for unit in reading.units for term in unit)
        total = statistics.units * len(chats) / max(1, sum(len(chat.units) for chat in chats))
        worth = {}
        for term in self._reader.full:
            frequency = float(statistics.frequencies.get(term, 0))
            if term in texts:
                frequency = max(frequency * texts[term] / units[term], texts[term])
            worth[term] = inverse_frequency(min(frequency, total), total)
        return worth

    def _best_passage(self, chat: Candidate) -> float:
        """Returns BM25 of the best passage: in a chat with an assistant, of the user's lines."""
        content, mean = self._reader.content, self._reader.statistics.passage_tokens
        passages = chat.passages or chat.units
        pairs = zip(occurrences(passages, content), passages, strict=True)
        values = [bm25(terms, text.count(" ") + 1, content, mean) for terms, text in pairs if terms]
        return max(values, default=0.0)

    def _parent(self, tokens: str) -> float:
        """Returns the coverage by a whole source, a long text that its parts share."""
        if tokens not in self._held:
            (terms,) = occurrences([tokens], self._reader.content)
            self._held[tokens] = self._reader.coverage(terms)
        return self._held[tokens]


def _relative(values: Sequence[float], floor: float) -> list[float]:
    """Returns the shares of values in the largest, or in `floor` if that is more."""
    peak = max([floor, *values]) or 1.0
    return [value / peak for value in values]


def best_of(values: Sequence[float]) -> float:
    """Returns the largest value of the units of a text, or 0; of many, five count as much as one.

    One of the many units of a long text is near by chance, or has some words of the query.
    """
    best = max((0.0, *values))
    if len(values) < _MANY_UNITS:
        return best
    return (best + max(0.0, sum(sorted(values)[-_MANY_UNITS:]) / _MANY_UNITS)) / 2


def _named_speakers(candidates: Sequence[Candidate], terms: Iterable[str]) -> frozenset[str]:
    """Returns the speakers that a question of `terms` names.

    A name before a colon is a speaker if it begins lines in several of the units.
    """
    words = set(terms)
    lines = Counter(
        name for candidate in candidates for unit in candidate.speakers for name in unit.split()
    )
    return frozenset(
        name
        for name, units in lines.items()
        if units >= _SPEAKER_LINES and words.issuperset(name.split("_"))
    )


@cache
def _time() -> re.Pattern[str]:
    """Returns the pattern of a token that names a time: a month, "yesterday", 2021."""
    months = [month for month in MONTHS if month != "may"]
    words = "yesterday today tonight tomorrow ago last next day week weekend month year hour"
    names = "|".join(tokenize(" ".join([*months, *WEEKDAYS, words])))
    return re.compile(rf"\b(?:{names}|(?:19|20)[0-9]{{2}})\b")
