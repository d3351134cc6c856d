"""All that speaks for one candidate, measured before candidates are compared."""

from collections.abc import Sequence
from dataclasses import dataclass

from mimo.domain.ranking import context, lexical
from mimo.domain.ranking.lexical import Hits
from mimo.domain.ranking.model import Candidate, RankingQuery, Statistics
from mimo.domain.ranking.weights import K1, ORDER


@dataclass(slots=True)
class Evidence:
    """Raw measures of one candidate; BM25s and phrases are not yet shares of anything."""

    unit: int = 0
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
    """Measures candidates for one query; what siblings share is read once."""

    def __init__(
        self, query: RankingQuery, candidates: Sequence[Candidate], statistics: Statistics
    ) -> None:
        """Weigh the terms of `query` by how rare they are in the store."""
        self.query = query
        self.statistics = statistics
        self.full = lexical.inverse_frequencies(query, statistics)
        self.content = {term: self.full[term] for term in query.content}
        self.worth = sum(self.content.values())
        self.before = lexical.predecessors(query.content)
        self.speakers = context.named_speakers(candidates, query.full)
        self._read: dict[str, Hits] = {}

    @property
    def ideal(self) -> float:
        """The BM25 that no text exceeds: every content term, endlessly often."""
        return (K1 + 1) * self.worth

    def examine(self, candidate: Candidate) -> Evidence:
        """Returns the evidence for one candidate."""
        found = Evidence()
        heading = self._heading(candidate, found)
        units = [self._find(unit) for unit in candidate.units]
        self._weigh_units(candidate, units, heading, found)
        self._weigh_passages(candidate, units, heading, found)
        self._weigh_surroundings(candidate, found)
        return found

    def _find(self, text: str) -> Hits:
        hits = self._read.get(text)
        if hits is None:
            hits = self._read[text] = lexical.find(text, self.full, self.before)
        return hits

    def _coverage(self, hits: Hits) -> float:
        return lexical.coverage(hits.counts, self.content, self.worth)

    def _heading(self, candidate: Candidate, found: Evidence) -> Hits | None:
        if not (candidate.title or candidate.topic):
            return None
        title, topic = self._find(candidate.title), self._find(candidate.topic)
        found.title, found.topic = self._coverage(title), self._coverage(topic)
        return lexical.together((title, topic))

    def _weigh_units(
        self, candidate: Candidate, units: list[Hits], heading: Hits | None, found: Evidence
    ) -> None:
        whole = lexical.together([*units, heading] if heading else units)
        found.document = lexical.bm25(whole, self.full, self.statistics.document_tokens)
        found.document_coverage = self._coverage(whole)
        read = [lexical.together((unit, heading)) for unit in units] if heading else units
        covered = [self._coverage(unit) for unit in read]
        found.coverage = max(covered, default=found.document_coverage)
        found.wide_coverage = self._wide_coverage(read, found)
        mean = self.statistics.unit_tokens
        found.unit_bm25 = max([lexical.bm25(u, self.content, mean) for u in read], default=0.0)
        if self.query.asks_when:
            found.time = max(
                [c for c, text in zip(covered, candidate.units, strict=True)
                 if c > found.time and context.holds_time(text)],
                default=0.0,
            )
        if self.speakers:
            found.speaker = max(
                [c for c, names in zip(covered, candidate.speakers, strict=False)
                 if not self.speakers.isdisjoint(names.split())],
                default=0.0,
            )
        self._weigh_meaning(candidate, covered, found)

    def _wide_coverage(self, units: list[Hits], found: Evidence) -> float:
        if len(units) <= 3 or found.coverage == found.document_coverage:
            return found.document_coverage if len(units) <= 2 else max(
                self._coverage(lexical.together(units[max(i - 1, 0) : i + 2])) for i in range(len(units)))
        return max(
            self._coverage(lexical.together(units[max(i - 1, 0) : i + 2]))
            for i in range(len(units))
        )

    def _weigh_meaning(
        self, candidate: Candidate, covered: list[float], found: Evidence
    ) -> None:
        cosines = candidate.unit_cosines if self.query.latin else ()
        if cosines:
            found.unit_meaning = max(0.0, *cosines)
            found.document_meaning = max(0.0, candidate.document_cosine)
        best = 0.0
        for unit, share in enumerate(covered):
            meaning = cosines[unit] if cosines else 0.0
            value = ORDER.coverage * share + ORDER.unit_meaning * meaning
            if value > best:
                best, found.unit = value, unit

    def _weigh_passages(
        self, candidate: Candidate, units: list[Hits], heading: Hits | None, found: Evidence
    ) -> None:
        passages = [self._find(p) for p in candidate.passages] if candidate.passages else units
        mean = self.statistics.passage_tokens
        for plain in passages:
            hits = lexical.together((plain, heading)) if heading else plain
            found.passage = max(found.passage, lexical.bm25(hits, self.content, mean))
            found.phrase = max(found.phrase, lexical.phrase(hits, self.content, self.before, mean))

    def _weigh_surroundings(self, candidate: Candidate, found: Evidence) -> None:
        found.date = context.date_match(candidate.created, self.query.windows)
        if candidate.parent:
            found.parent = self._coverage(self._find(candidate.parent))
            found.neighbour = max(
                [self._dated_bm25(p, candidate) for p in (*candidate.previous, *candidate.following)],
                default=0.0,
            )

    def _dated_bm25(self, passage: str, candidate: Candidate) -> float:
        hits = self._find(passage)
        if candidate.created is not None:
            named = [t for t in context.date_tokens(candidate.created.date()) if t in self.content]
            if named:
                hits = lexical.together((hits, Hits(length=len(named), counts=dict.fromkeys(named, 1))))
        return lexical.bm25(hits, self.content, self.statistics.passage_tokens)
