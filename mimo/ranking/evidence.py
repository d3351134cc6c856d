"""A query, its candidates, and the evidence for each candidate, before candidates are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from enum import Enum
from functools import cache
from math import log

from mimo.frozen import frozen, record
from mimo.ranking.dates import Window, closeness, searchable
from mimo.ranking.score import Matched, worth
from mimo.text.background import rarity
from mimo.text.calendar import MONTHS, WEEKDAYS
from mimo.text.tokens import tokenize


@frozen
class RankingQuery:
    """A query, as `understand` reads it."""

    text: str
    full: tuple[str, ...]
    """Distinct tokens without the stop words."""
    content: tuple[str, ...]
    """`full` without question words, by which candidates are looked up."""
    identifiers: tuple[str, ...] = ()
    """The tokens of each identifier of several words, joined by spaces."""
    asked: datetime | None = None
    """The time from which ages are counted; None ignores ages."""
    windows: tuple[Window, ...] = ()
    """Dates that the query names."""
    is_foreign: bool = False
    """True if it is in another language than English."""
    asks_when: bool = False
    """True if it asks for a time."""


class Shape(Enum):
    """The kind of a candidate, which decides the weight of meaning."""

    TURN = "turn"
    """A part of a conversation."""
    CONVERSATION = "conversation"
    """A whole conversation."""
    NOTE = "note"
    """Any other memory of at most 300 words that is not an included file."""
    DOCUMENT = "document"
    """Any other: a document, code, a long memory."""


@frozen
class Statistics:
    """Frequencies of a query's words in this store."""

    units: int
    """Units in the store."""
    frequencies: Mapping[str, int]
    """Number of units with each of the query's terms; absent if there are none."""
    unit_tokens: float
    """Mean number of tokens in a unit."""
    passage_tokens: float
    """Mean number of tokens in a passage."""
    document_tokens: float
    """Mean number of tokens in a document."""
    memories: int = 1
    """Memories that pass the filter."""


@frozen
class Candidate:
    """A document that may answer a query, as the index keeps it; tokens are joined by spaces."""

    key: int
    units: Sequence[str]
    """Tokens of each unit, in the order of the text."""
    passages: Sequence[str] = ()
    """Tokens of each passage; empty if they are the units."""
    title: str = ""
    """Tokens of the title."""
    topic: str = ""
    """Tokens of the topic and the tags."""
    created: datetime | None = None
    importance: float = 0.5
    speakers: Sequence[str] = ()
    """For each unit, the names that its lines begin with (`Unit.speakers`); empty for none."""
    unit_cosines: Sequence[float] = ()
    """Cosine of the query with each unit; empty if the document has no vectors."""
    document_cosine: float = 0.0
    """Cosine of the query with the mean of the passages' vectors."""
    previous: Sequence[str] = ()
    """Passages of the part before it in the same parent."""
    following: Sequence[str] = ()
    """Passages of the part after it in the same parent."""
    parent: str = ""
    """Tokens of all the parts of its parent, the same string for each; empty without a parent."""
    shape: Shape = Shape.DOCUMENT
    encoded_cosines: Sequence[float] = ()
    """Cosine of the query with each unit by the encoder; empty if a vector is missing."""


K1 = 1.2
B = 0.75
"""BM25's constants, as FTS5 has them (S. Robertson, H. Zaragoza, 2009)."""

PHRASE_DISTANCE = 2
"""Most tokens from the first to the second term of a phrase."""

SPEAKER_LINES = 5
"""Fewest candidate units with a line that begins with a name, for it to be a speaker."""

AGE_HALF_LIFE_DAYS = 180.0


# BM25, coverage and phrases of one stretch of tokens.

Place = tuple[int, str]
"""A position in a text of tokens, and the query's term that begins there."""


_NONE: Mapping[str, int] = {}


class Hits:
    """The query's terms in one stretch of tokens; most stretches have none."""

    __slots__ = ("counts", "length", "phrases")

    def __init__(
        self,
        length: int = 0,
        counts: Mapping[str, int] = _NONE,
        phrases: Mapping[str, int] = _NONE,
    ) -> None:
        """Takes the number of tokens, of each term, and of each term after its predecessor."""
        self.length = length
        self.counts = counts
        self.phrases = phrases


def inverse_frequency(holding: float, total: float) -> float:
    """Returns the weight of a term: ln(1 + (N - n + 0.5) / (n + 0.5)), as in Lucene.

    `holding` (n) of `total` (N) texts have it; the weight of an unknown term is ln(1 + N).
    """
    return log(1 + (total - holding + 0.5) / (holding + 0.5)) if holding else log(1 + total)


def inverse_frequencies(query: RankingQuery, statistics: Statistics) -> dict[str, float]:
    """Returns the weight of each term of `query` by the number of units with it."""
    frequencies, total = statistics.frequencies, statistics.units
    return {
        term: inverse_frequency(frequencies.get(term, 0), total)
        for term in (*query.full, *query.content)
    }


def places_of(text: str, terms: Iterable[str]) -> list[Place]:
    """Returns the places of `terms` in `text`: tokens with a space before and after each.

    A search for each term is faster than splitting the text into tokens.
    """
    places = []
    for term in terms:
        needle = f" {term} "
        place = text.find(needle)
        while place >= 0:
            places.append((place, term))
            place = text.find(needle, place + len(term) + 1)
    if len(places) > 1:
        places.sort()
    return places


def hits(text: str, places: Collection[Place], length: int, before: Mapping[str, str]) -> Hits:
    """Returns the counts of terms and phrases in a stretch of `length` tokens.

    A phrase is a term at most two tokens after `before[term]`.
    """
    if not places:
        return Hits(length)
    counts: dict[str, int] = {}
    phrases: dict[str, int] = {}
    last: dict[str, int] = {}
    for place, term in places:
        counts[term] = counts.get(term, 0) + 1
        last[term] = place
        start = last.get(before.get(term, ""))
        if start is not None and text.count(" ", start, place) <= PHRASE_DISTANCE:
            phrases[term] = phrases.get(term, 0) + 1
    return Hits(length, counts, phrases)


def together(parts: Iterable[Hits]) -> Hits:
    """Returns the hits of several stretches as of one."""
    length = 0
    holding = []
    for part in parts:
        length += part.length
        if part.counts:
            holding.append(part)
    if len(holding) < 2:
        return Hits(length, holding[0].counts, holding[0].phrases) if holding else Hits(length)
    counts = dict(holding[0].counts)
    phrases = dict(holding[0].phrases)
    for part in holding[1:]:
        for term, count in part.counts.items():
            counts[term] = counts.get(term, 0) + count
        for term, count in part.phrases.items():
            phrases[term] = phrases.get(term, 0) + count
    return Hits(length, counts, phrases)


def headed(heading: Hits, parts: Sequence[Hits]) -> list[Hits]:
    """Returns the hits of each part with those of a heading; only the heading if there are none."""
    if heading.counts:
        return [together((heading, part)) for part in parts] or [heading]
    more = heading.length
    return [Hits(more + part.length, part.counts, part.phrases) for part in parts] or [heading]


def bm25(hits: Hits, worth: Mapping[str, float], mean_length: float) -> float:
    """Returns BM25 of a stretch for the terms in `worth`, against stretches of `mean_length`."""
    if not hits.counts:
        return 0.0
    norm = K1 * (1 - B + B * hits.length / mean_length)
    total = 0.0
    for term, count in hits.counts.items():
        total += worth.get(term, 0.0) * count / (count + norm)
    return (K1 + 1) * total


def phrase(
    hits: Hits, worth: Mapping[str, float], before: Mapping[str, str], mean_length: float
) -> float:
    """Returns BM25 of the pairs of neighbouring query terms that occur together.

    The weight of a pair is the mean of its two terms.
    """
    if not hits.phrases:
        return 0.0
    norm = K1 * (1 - B + B * hits.length / mean_length)
    total = 0.0
    for term, count in hits.phrases.items():
        total += (worth[term] + worth[before[term]]) / 2 * count / (count + norm)
    return (K1 + 1) * total


def coverage(terms: Iterable[str], worth: Mapping[str, float], total: float) -> float:
    """Returns the share of `terms` in `total`, the weight of all terms: 0..1."""
    return sum([worth[term] for term in terms if term in worth]) / total if total else 0.0


# Dates, words of time, and speakers.


def freshness(created: datetime | None, asked: datetime | None) -> float:
    """Returns 1 for now, halved with every half-life; 0 if either time is unknown."""
    if created is None or asked is None:
        return 0.0
    days = max((asked - created).total_seconds() / 86_400, 0.0)
    return float(0.5 ** (days / AGE_HALF_LIFE_DAYS))


@cache
def date_tokens(day: date) -> frozenset[str]:
    """Returns the tokens of the usual names of `day`."""
    return frozenset(tokenize(searchable(day)))


def time_coverage(units: Sequence[str], covered: Sequence[float]) -> float:
    """Returns the largest coverage among units that name a time: a month, "yesterday", 2021."""
    timed = (share for share, unit in zip(covered, units, strict=False) if share and _timed(unit))
    return max(timed, default=0.0)


def speaker_coverage(
    speakers: Sequence[str], covered: Sequence[float], named: frozenset[str]
) -> float:
    """Returns the largest coverage among units of one of the `named` speakers."""
    pairs = zip(covered, speakers, strict=False)
    return max([c for c, names in pairs if not named.isdisjoint(names.split())], default=0.0)


def _timed(unit: str) -> bool:
    tokens = unit.split(" ")
    return not _time_tokens().isdisjoint(tokens) or any(
        len(token) == 4 and token.isdecimal() and token[:2] in ("19", "20") for token in tokens
    )


@cache
def _time_tokens() -> frozenset[str]:
    months = [month for month in MONTHS if month != "may"]
    words = "yesterday today tonight tomorrow ago last next day week weekend month year hour"
    return frozenset(tokenize(" ".join([*months, *WEEKDAYS, words])))


def named_speakers(candidates: Sequence[Candidate], terms: Iterable[str]) -> frozenset[str]:
    """Returns the speakers that a question of `terms` names.

    A name before a colon is a speaker if it begins lines in several of the units.
    """
    words = set(terms)
    seen = Counter(
        name for candidate in candidates for unit in candidate.speakers for name in unit.split()
    )
    return frozenset(
        name
        for name, units in seen.items()
        if units >= SPEAKER_LINES and words.issuperset(name.split("_"))
    )


# The terms of a query in a candidate.


@record
class Reading:
    """The hits of a query in a candidate; those of title and topic count for each part."""

    title: Hits
    topic: Hits
    units: list[Hits]
    passages: list[Hits]
    document: Hits


@record
class Evidence:
    """Raw measures of one candidate; BM25s and phrases are absolute values."""

    reading: Reading
    covered: Sequence[float]
    """The coverage of each unit."""
    importance: float
    """Above or below the default."""
    age: float
    passage: float
    phrase: float
    coverage: float
    date: float
    """The closeness of its day to the closest date in the question."""
    cosines: Sequence[float] = ()
    """The cosine of each unit; empty if the query or the candidate has no vector."""
    document: float = 0.0
    unit_meaning: float = 0.0
    document_meaning: float = 0.0
    time: float = 0.0
    speaker: float = 0.0
    neighbour: float = 0.0
    parent: float = 0.0
    title: float = 0.0
    topic: float = 0.0
    identifier: float = 0.0
    """The share of the identifiers that it contains as they are written."""


class Examiner:
    """Measures the candidates of one query; texts that siblings share are read once."""

    def __init__(self, query: RankingQuery, statistics: Statistics) -> None:
        """Weighs the terms of `query` by their rarity in the store."""
        self.query = query
        self.statistics = statistics
        self._terms = inverse_frequencies(query, statistics)
        self._content = {term: self._terms[term] for term in query.content}
        self._worth = sum(self._content.values())
        self._before = dict(zip(query.content[1:], query.content, strict=False))
        """The previous term of each, for phrases."""
        self._hits: dict[str, Hits] = {"": Hits()}
        self._coverages: dict[tuple[str, ...], float] = {(): 0.0}
        self._held: dict[str, list[str]] = {}
        self._measured: dict[int, Evidence] = {}
        self._information = {
            term: worth(rarity(term), statistics.frequencies.get(term, 0), statistics.units)
            for term in query.content
        }
        self.ideal = (K1 + 1) * self._worth
        """The upper bound of BM25: every content term infinitely often."""

    def examine(self, candidates: Sequence[Candidate]) -> list[Evidence]:
        """Returns the evidence for each candidate.

        What an earlier call measured is used again: only the cosines may have changed, and the
        other candidates. The earlier evidence changes with it.
        """
        measured = list(map(self._measure, candidates))
        readings = [item.reading for item in measured]
        rarity = document_worth(self.query.full, readings, self.statistics)
        speakers = named_speakers(candidates, self.query.full)
        mean = self.statistics.document_tokens
        for candidate, item in zip(candidates, measured, strict=True):
            item.document = bm25(item.reading.document, rarity, mean)
            item.cosines = candidate.unit_cosines
            item.unit_meaning = max((0.0, *item.cosines))
            item.document_meaning = max(0.0, candidate.document_cosine) if item.cosines else 0.0
            if speakers:
                item.speaker = speaker_coverage(candidate.speakers, item.covered, speakers)
        return measured

    def read(self, candidate: Candidate) -> Reading:
        """Returns the hits of the terms in `candidate`."""
        parts = (candidate.title, candidate.topic, *candidate.units)
        text = f" {' '.join(parts)} "
        places = places_of(text, self._terms)
        title, topic, *units = self._cut(text, places, parts)
        passages = self._passages(candidate, text, places) or units
        heading = together((title, topic))
        document = together((heading, *units))
        if heading.length:
            whole, units = units, headed(heading, units)
            passages = units if passages is whole else headed(heading, passages)
        return Reading(
            title=title,
            topic=topic,
            units=units,
            passages=passages,
            document=document,
        )

    def find(self, tokens: str) -> Hits:
        """Returns the terms in `tokens`, which are joined by spaces."""
        result = self._hits.get(tokens)
        if result is None:
            text = f" {tokens} "
            (result,) = self._cut(text, places_of(text, self._terms), (tokens,))
            self._hits[tokens] = result
        return result

    def _passages(self, candidate: Candidate, text: str, places: Sequence[Place]) -> list[Hits]:
        """Returns the hits of the passages, if they are not the units."""
        passages = candidate.passages
        # Passages with all tokens of the units reuse the places; those of a chat have fewer tokens.
        before = len(candidate.title) + len(candidate.topic) + 2
        if before + sum(map(len, passages)) + len(passages) + 1 != len(text):
            return [self.find(passage) for passage in passages]
        own = [place for place in places if place[0] >= before]
        return self._cut(text, own, passages, before)

    def _cut(
        self, text: str, places: Sequence[Place], parts: Sequence[str], end: int = 0
    ) -> list[Hits]:
        """Returns the hits of neighbouring parts of `text`, which begin at `end`."""
        stretches, first, count = [], 0, len(places)
        for part in parts:
            end += len(part) + 1
            last = first
            while last < count and places[last][0] < end:
                last += 1
            length = part.count(" ") + 1 if part else 0
            if last == first:
                stretches.append(Hits(length))
            else:
                stretches.append(hits(text, places[first:last], length, self._before))
                first = last
        return stretches

    def _measure(self, candidate: Candidate) -> Evidence:
        """Returns what follows from the words and times of a candidate alone."""
        measured = self._measured.get(candidate.key)
        if measured is not None:
            return measured
        reading = self.read(candidate)
        covered = [self._coverage(unit.counts) for unit in reading.units]
        mean = self.statistics.passage_tokens
        phrases = [
            phrase(part, self._content, self._before, mean)
            for part in reading.passages
            if part.phrases
        ]
        created, windows = candidate.created, self.query.windows
        day = self._day(created) if windows and created else None
        days = [closeness(day, span) for span in windows] if day else []
        measured = self._measured[candidate.key] = Evidence(
            reading=reading,
            covered=covered,
            importance=candidate.importance - 0.5,
            age=freshness(created, self.query.asked),
            coverage=max(covered, default=0.0),
            passage=self._best_passage(reading.passages),
            phrase=max(phrases, default=0.0),
            date=max(days, default=0.0),
        )
        if self.query.asks_when:
            measured.time = time_coverage(candidate.units, covered)
        if named := self.query.identifiers:
            text = " \n ".join(("", candidate.title, candidate.topic, *candidate.units, ""))
            measured.identifier = sum(f" {name} " in text for name in named) / len(named)
        if reading.title.counts or reading.topic.counts:
            measured.title = self._coverage(reading.title.counts)
            measured.topic = self._coverage(reading.topic.counts)
        if candidate.parent:
            measured.parent = self._parent(candidate.parent)
            measured.neighbour = self._neighbour(candidate)
        return measured

    def matched(self, reading: Reading) -> Matched:
        """Returns the words of the query in a candidate, for its score."""
        weights = self._information
        sums = [sum(weights.get(term, 0.0) for term in unit.counts) for unit in reading.units]
        heading = {*reading.title.counts, *reading.topic.counts}
        return Matched(
            matched=max(sums, default=0.0),
            asked=sum(weights.values()),
            phrases=max([len(part.phrases) for part in reading.passages], default=0),
            named=len(heading & weights.keys()),
        )

    def _coverage(self, terms: Iterable[str]) -> float:
        held = tuple(terms)
        share = self._coverages.get(held)
        if share is None:
            share = self._coverages[held] = coverage(held, self._content, self._worth)
        return share

    def _best_passage(self, passages: Iterable[Hits]) -> float:
        mean = self.statistics.passage_tokens
        return max([bm25(passage, self._content, mean) for passage in passages], default=0.0)

    def _parent(self, tokens: str) -> float:
        """Returns the coverage by a whole parent, a long text that its parts share."""
        terms = self._held.get(tokens)
        if terms is None:
            text = f" {tokens} "
            terms = self._held[tokens] = [term for term in self._terms if f" {term} " in text]
        return self._coverage(terms)

    def _day(self, moment: datetime) -> date:
        """Returns the day of a moment in the zone of the question."""
        asked = self.query.asked
        return (moment.astimezone(asked.tzinfo) if asked else moment).date()

    def _neighbour(self, candidate: Candidate) -> float:
        passages = [self.find(p) for p in (*candidate.previous, *candidate.following)]
        if candidate.created is not None:
            named = date_tokens(self._day(candidate.created)) & self._content.keys()
            date = Hits(len(named), dict.fromkeys(named, 1))
            passages = [together((passage, date)) for passage in passages] if named else passages
        return self._best_passage(passages)


def document_worth(
    terms: Iterable[str], readings: Sequence[Reading], statistics: Statistics
) -> dict[str, float]:
    """Returns the weights of terms by the number of documents, not units, with them.

    The store has the number of units; the ratio of units to documents is that of the candidates.
    In long documents a common word is in every document but in few of the units.
    """
    units: dict[str, int] = {}
    documents: dict[str, int] = {}
    for reading in readings:
        for term in reading.document.counts:
            documents[term] = documents.get(term, 0) + 1
        for unit in reading.units:
            for term in unit.counts:
                units[term] = units.get(term, 0) + 1
    total = statistics.units * statistics.unit_tokens / statistics.document_tokens
    worth = {}
    for term in terms:
        frequency = float(statistics.frequencies.get(term, 0))
        if term in documents:
            frequency = max(frequency * documents[term] / units[term], documents[term])
        worth[term] = inverse_frequency(min(frequency, total), total)
    return worth
