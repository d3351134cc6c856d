"""The evidence for each candidate, measured before candidates are compared."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cache
from math import log

from mimo.ranking.dates import Window, closeness, searchable
from mimo.ranking.model import (
    AGE_HALF_LIFE_DAYS,
    K1,
    ORDER,
    PHRASE_DISTANCE,
    SPEAKER_LINES,
    B,
    Candidate,
    RankingQuery,
    Statistics,
)
from mimo.text.calendar import MONTHS, WEEKDAYS
from mimo.text.tokens import tokenize

# BM25, coverage and phrases of one stretch of tokens.

Place = tuple[int, str]
"""A position in a text of tokens, and the query's term that begins there."""


@dataclass(slots=True)
class Hits:
    """The query's terms in one stretch of tokens."""

    length: int = 0
    """Tokens in all."""
    counts: dict[str, int] = field(default_factory=dict)
    phrases: dict[str, int] = field(default_factory=dict)
    """Number of times that each term follows its predecessor in the query."""


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


def predecessors(content: tuple[str, ...]) -> dict[str, str]:
    """Returns the previous term in the query for each content term except the first."""
    return dict(zip(content[1:], content, strict=False))


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
    places.sort()
    return places


def hits(text: str, places: Iterable[Place], length: int, before: Mapping[str, str]) -> Hits:
    """Returns the counts of terms and phrases in a stretch of `length` tokens.

    A phrase is a term at most two tokens after `before[term]`.
    """
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
    counts: dict[str, int] = {}
    phrases: dict[str, int] = {}
    for part in parts:
        length += part.length
        for term, count in part.counts.items():
            counts[term] = counts.get(term, 0) + count
        for term, count in part.phrases.items():
            phrases[term] = phrases.get(term, 0) + count
    return Hits(length, counts, phrases)


def bm25(hits: Hits, worth: Mapping[str, float], mean_length: float) -> float:
    """Returns BM25 of a stretch for the terms in `worth`, against stretches of `mean_length`."""
    norm = _norm(hits.length, mean_length)
    return (K1 + 1) * sum(
        [worth[t] * count / (count + norm) for t, count in hits.counts.items() if t in worth]
    )


def phrase(
    hits: Hits, worth: Mapping[str, float], before: Mapping[str, str], mean_length: float
) -> float:
    """Returns BM25 of the pairs of neighbouring query terms that occur together.

    The weight of a pair is the mean of its two terms.
    """
    if not hits.phrases:
        return 0.0
    norm = _norm(hits.length, mean_length)
    return (K1 + 1) * sum(
        [
            (worth[term] + worth[before[term]]) / 2 * count / (count + norm)
            for term, count in hits.phrases.items()
        ]
    )


def coverage(terms: Iterable[str], worth: Mapping[str, float], total: float) -> float:
    """Returns the share of `terms` in `total`, the weight of all terms: 0..1."""
    return sum([worth[term] for term in terms if term in worth]) / total if total else 0.0


def _norm(length: int, mean_length: float) -> float:
    return K1 * (1 - B + B * length / mean_length)


# Dates, words of time, and speakers.


def date_match(created: datetime | None, windows: Iterable[Window]) -> float:
    """Returns the closeness of `created` to the closest date in the question: 0..1."""
    if created is None:
        return 0.0
    day = created.date()
    return max([closeness(day, window) for window in windows], default=0.0)


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
    return not _time_tokens().isdisjoint(tokens) or any(map(_is_year, tokens))


def _is_year(token: str) -> bool:
    return len(token) == 4 and token.isdecimal() and token[:2] in ("19", "20")


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


@dataclass(slots=True)
class Reading:
    """The hits of a query in a candidate; those of title and topic count for each part."""

    candidate: Candidate
    title: Hits
    topic: Hits
    units: list[Hits]
    passages: list[Hits]
    document: Hits


class Reader:
    """Reads candidates for one query; texts that siblings share are read once."""

    def __init__(self, terms: Collection[str], before: Mapping[str, str]) -> None:
        """Keep the terms to search, and the previous term of each for phrases."""
        self._terms = terms
        self._before = before
        self._hits: dict[str, Hits] = {"": Hits()}
        self._held: dict[str, list[str]] = {}

    def find(self, tokens: str) -> Hits:
        """Returns the terms in `tokens`, which are joined by spaces."""
        result = self._hits.get(tokens)
        if result is None:
            text = f" {tokens} "
            places = places_of(text, self._terms)
            result = hits(text, places, tokens.count(" ") + 1, self._before)
            self._hits[tokens] = result
        return result

    def held(self, tokens: str) -> list[str]:
        """Returns the terms that occur in `tokens`, for long texts that candidates share."""
        terms = self._held.get(tokens)
        if terms is None:
            text = f" {tokens} "
            terms = self._held[tokens] = [term for term in self._terms if f" {term} " in text]
        return terms

    def read(self, candidate: Candidate) -> Reading:
        """Returns the hits of the terms in `candidate`."""
        units, passages = self._stretches(candidate)
        title, topic = self.find(candidate.title), self.find(candidate.topic)
        document = units[0] if len(units) == 1 else together(units)
        if title.length or topic.length:
            heading = together((title, topic))
            whole = len(units) == 1
            headed = [together((heading, unit)) for unit in units] or [heading]
            if passages is units:
                passages = headed
            else:
                passages = [together((heading, passage)) for passage in passages] or [heading]
            units = headed
            document = units[0] if whole else together((heading, document))
        return Reading(candidate, title, topic, units, passages, document)

    def _stretches(self, candidate: Candidate) -> tuple[list[Hits], list[Hits]]:
        if not candidate.passages:
            units = [self.find(unit) for unit in candidate.units]
            return units, units
        text = f" {' '.join(candidate.units)} "
        places = places_of(text, self._terms)
        units = self._cut(text, places, candidate.units)
        # Passages with all tokens of the units reuse the places; those of a chat have fewer tokens.
        if sum(map(len, candidate.passages)) + len(candidate.passages) + 1 == len(text):
            return units, self._cut(text, places, candidate.passages)
        return units, [self.find(passage) for passage in candidate.passages]

    def _cut(self, text: str, places: list[Place], parts: Sequence[str]) -> list[Hits]:
        """Returns the hits of neighbouring parts of `text`."""
        stretches, first, end = [], 0, 0
        for part in parts:
            end += len(part) + 1
            last = first
            while last < len(places) and places[last][0] < end:
                last += 1
            length = part.count(" ") + 1
            stretches.append(hits(text, places[first:last], length, self._before))
            first = last
        return stretches


@dataclass(slots=True)
class Evidence:
    """Raw measures of one candidate; BM25s and phrases are absolute values."""

    unit: int = 0
    """The number of its best unit, from 0."""
    document: float = 0.0
    document_coverage: float = 0.0
    passage: float = 0.0
    phrase: float = 0.0
    unit_bm25: float = 0.0
    coverage: float = 0.0
    wide_coverage: float = 0.0
    time: float = 0.0
    speaker: float = 0.0
    unit_meaning: float = 0.0
    document_meaning: float = 0.0
    neighbour: float = 0.0
    parent: float = 0.0
    date: float = 0.0
    title: float = 0.0
    topic: float = 0.0


class Examiner:
    """Measures the candidates of one query."""

    def __init__(self, query: RankingQuery, statistics: Statistics) -> None:
        """Weight the terms of `query` by their rarity in the store."""
        terms = inverse_frequencies(query, statistics)
        self.query = query
        self.statistics = statistics
        self.content = {term: terms[term] for term in query.content}
        self.worth = sum(self.content.values())
        self.before = predecessors(query.content)
        self.reader = Reader(terms, self.before)

    @property
    def ideal(self) -> float:
        """The upper bound of BM25: every content term infinitely often."""
        return (K1 + 1) * self.worth

    def examine(self, candidates: Sequence[Candidate]) -> list[Evidence]:
        """Returns the evidence for each candidate."""
        readings = [self.reader.read(candidate) for candidate in candidates]
        rarity = document_worth(self.query.full, readings, self.statistics)
        speakers = named_speakers(candidates, self.query.full)
        return [self._weigh(reading, rarity, speakers) for reading in readings]

    def _weigh(
        self, reading: Reading, rarity: Mapping[str, float], speakers: frozenset[str]
    ) -> Evidence:
        candidate = reading.candidate
        covered = [self._coverage(unit) for unit in reading.units]
        everything = covered[0] if len(covered) == 1 else self._coverage(reading.document)
        measured = Evidence(
            document=bm25(reading.document, rarity, self.statistics.document_tokens),
            document_coverage=everything,
            coverage=max(covered, default=0.0),
            wide_coverage=self._wide_coverage(reading.units, covered, everything),
            unit_bm25=self._unit_bm25(reading.units, covered),
            passage=self._largest(reading.passages, self.statistics.passage_tokens),
            phrase=self._phrase(reading.passages),
            date=date_match(candidate.created, self.query.windows),
        )
        if self.query.asks_when:
            measured.time = time_coverage(candidate.units, covered)
        if speakers:
            measured.speaker = speaker_coverage(candidate.speakers, covered, speakers)
        if candidate.title or candidate.topic:
            measured.title, measured.topic = (
                self._coverage(reading.title),
                self._coverage(reading.topic),
            )
        if candidate.parent:
            held = self.reader.held(candidate.parent)
            measured.parent = coverage(held, self.content, self.worth)
            measured.neighbour = self._neighbour(candidate)
        self._weigh_meaning(candidate, covered, measured)
        return measured

    def _coverage(self, hits: Hits) -> float:
        return coverage(hits.counts, self.content, self.worth)

    def _largest(self, stretches: Iterable[Hits], mean_length: float) -> float:
        return max([bm25(stretch, self.content, mean_length) for stretch in stretches], default=0.0)

    def _phrase(self, passages: Iterable[Hits]) -> float:
        mean = self.statistics.passage_tokens
        return max(
            [phrase(passage, self.content, self.before, mean) for passage in passages], default=0.0
        )

    def _unit_bm25(self, units: Sequence[Hits], covered: Sequence[float]) -> float:
        """Returns the largest BM25 of a unit; none exceeds its coverage's share of the ideal."""
        best = 0.0
        for share, unit in sorted(zip(covered, units, strict=True), key=_first, reverse=True):
            if share * self.ideal <= best:
                break
            best = max(best, bm25(unit, self.content, self.statistics.unit_tokens))
        return best

    def _wide_coverage(self, units: Sequence[Hits], covered: Sequence[float], most: float) -> float:
        """Returns the largest coverage by a unit and its two neighbours, at most `most`."""
        best = max(covered, default=0.0)
        if len(units) == 1:
            return best
        for i in range(len(units)):
            around = slice(max(i - 1, 0), i + 2)
            if best < min(sum(covered[around]), most):
                held = {term for unit in units[around] for term in unit.counts}
                best = max(best, coverage(held, self.content, self.worth))
        return best

    def _neighbour(self, candidate: Candidate) -> float:
        passages = [self.reader.find(p) for p in (*candidate.previous, *candidate.following)]
        if candidate.created is not None:
            named = date_tokens(candidate.created.date()) & self.content.keys()
            date = Hits(len(named), dict.fromkeys(named, 1))
            passages = [together((passage, date)) for passage in passages] if named else passages
        return self._largest(passages, self.statistics.passage_tokens)

    def _weigh_meaning(
        self, candidate: Candidate, covered: Sequence[float], measured: Evidence
    ) -> None:
        cosines: Sequence[float] = ()
        if self.query.latin and candidate.unit_cosines:
            cosines = candidate.unit_cosines
            measured.unit_meaning = max(0.0, *cosines)
            measured.document_meaning = max(0.0, candidate.document_cosine)
        values = [ORDER.coverage * share for share in covered]
        for unit, cosine in enumerate(cosines):
            values[unit] += ORDER.unit_meaning * cosine
        measured.unit = max(range(len(values)), key=values.__getitem__, default=0)


def _first(pair: tuple[float, Hits]) -> float:
    return pair[0]


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
