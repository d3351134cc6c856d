"""All that speaks for one candidate, measured before candidates are compared."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mimo.domain.ranking import context, lexical
from mimo.domain.ranking.lexical import Hits, bm25, inverse_frequency, together
from mimo.domain.ranking.model import Candidate, RankingQuery, Statistics
from mimo.domain.ranking.reading import Reader, Reading
from mimo.domain.ranking.weights import K1, ORDER


@dataclass(slots=True)
class Evidence:
    """Raw measures of one candidate; BM25s and phrases are not yet shares of anything."""

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
        """Weigh the terms of `query` by how rare they are in the store."""
        terms = lexical.inverse_frequencies(query, statistics)
        self.query = query
        self.statistics = statistics
        self.content = {term: terms[term] for term in query.content}
        self.worth = sum(self.content.values())
        self.before = lexical.predecessors(query.content)
        self.reader = Reader(terms, self.before)

    @property
    def ideal(self) -> float:
        """The BM25 that no text exceeds: every content term, endlessly often."""
        return (K1 + 1) * self.worth

    def examine(self, candidates: Sequence[Candidate]) -> list[Evidence]:
        """Returns the evidence for each candidate."""
        readings = [self.reader.read(candidate) for candidate in candidates]
        rarity = document_worth(self.query.full, readings, self.statistics)
        speakers = context.named_speakers(candidates, self.query.full)
        return [self._weigh(reading, rarity, speakers) for reading in readings]

    def _weigh(
        self, reading: Reading, rarity: Mapping[str, float], speakers: frozenset[str]
    ) -> Evidence:
        candidate = reading.candidate
        covered = [self._coverage(unit) for unit in reading.units]
        everything = covered[0] if len(covered) == 1 else self._coverage(reading.document)
        found = Evidence(
            document=bm25(reading.document, rarity, self.statistics.document_tokens),
            document_coverage=everything,
            coverage=max(covered, default=0.0),
            wide_coverage=self._wide_coverage(reading.units, covered, everything),
            unit_bm25=self._unit_bm25(reading.units, covered),
            passage=self._largest(reading.passages, self.statistics.passage_tokens),
            phrase=self._phrase(reading.passages),
            date=context.date_match(candidate.created, self.query.windows),
        )
        if self.query.asks_when:
            found.time = context.time_coverage(candidate.units, covered)
        if speakers:
            found.speaker = context.speaker_coverage(candidate.speakers, covered, speakers)
        if candidate.title or candidate.topic:
            found.title, found.topic = self._coverage(reading.title), self._coverage(reading.topic)
        if candidate.parent:
            held = self.reader.held(candidate.parent)
            found.parent = lexical.coverage(held, self.content, self.worth)
            found.neighbour = self._neighbour(candidate)
        self._weigh_meaning(candidate, covered, found)
        return found

    def _coverage(self, hits: Hits) -> float:
        return lexical.coverage(hits.counts, self.content, self.worth)

    def _largest(self, stretches: Iterable[Hits], mean_length: float) -> float:
        return max([bm25(one, self.content, mean_length) for one in stretches], default=0.0)

    def _phrase(self, passages: Iterable[Hits]) -> float:
        mean = self.statistics.passage_tokens
        return max(
            [lexical.phrase(one, self.content, self.before, mean) for one in passages], default=0.0
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
        """Returns the largest coverage by a unit and its two neighbours; `most` is all there is."""
        best = max(covered, default=0.0)
        if len(units) == 1:
            return best
        for i in range(len(units)):
            around = slice(max(i - 1, 0), i + 2)
            if best < min(sum(covered[around]), most):
                held = {term for unit in units[around] for term in unit.counts}
                best = max(best, lexical.coverage(held, self.content, self.worth))
        return best

    def _neighbour(self, candidate: Candidate) -> float:
        passages = [self.reader.find(p) for p in (*candidate.previous, *candidate.following)]
        if candidate.created is not None:
            named = context.date_tokens(candidate.created.date()) & self.content.keys()
            date = Hits(len(named), dict.fromkeys(named, 1))
            passages = [together((one, date)) for one in passages] if named else passages
        return self._largest(passages, self.statistics.passage_tokens)

    def _weigh_meaning(
        self, candidate: Candidate, covered: Sequence[float], found: Evidence
    ) -> None:
        cosines: Sequence[float] = ()
        if self.query.latin and candidate.unit_cosines:
            cosines = candidate.unit_cosines
            found.unit_meaning = max(0.0, *cosines)
            found.document_meaning = max(0.0, candidate.document_cosine)
        values = [ORDER.coverage * share for share in covered]
        for unit, cosine in enumerate(cosines):
            values[unit] += ORDER.unit_meaning * cosine
        found.unit = max(range(len(values)), key=values.__getitem__, default=0)


def _first(pair: tuple[float, Hits]) -> float:
    return pair[0]


def document_worth(
    terms: Iterable[str], readings: Sequence[Reading], statistics: Statistics
) -> dict[str, float]:
    """Returns what terms are worth by the number of documents, not units, that hold them.

    The store knows the units; how many of them one document fills with a term is taken from the
    candidates. In long documents a common word stands in every one, in few of the units.
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
        known = float(statistics.frequencies.get(term, 0))
        if term in documents:
            known = max(known * documents[term] / units[term], documents[term])
        worth[term] = inverse_frequency(min(known, total), total)
    return worth
