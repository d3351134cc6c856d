"""A query -> the memories that answer it: words find, meaning and words together rank."""

import sqlite3
from collections.abc import Mapping

from mimo.domain.memory import Record
from mimo.domain.ranking import (
    Ranked,
    RankingQuery,
    Statistics,
    below_successors,
    rank,
    understand,
)
from mimo.domain.ranking.lexical import inverse_frequencies
from mimo.index import catalog, rows, words
from mimo.index.candidates import Candidates, StoredUnit
from mimo.index.database import IndexDamaged
from mimo.index.embedding import FAILURES, Embedder
from mimo.index.found import Found, Hit, Newer, Request
from mimo.index.meaning import memories_near
from mimo.index.vectors import Vectors

_FEW = 5
"""So few memories found by words, or fewer, and all vectors are compared as well."""

_LITTLE = 0.3
"""So small a share of the query (in idf) in the best unit, and all vectors are compared as well."""

_LOOKED_AT = 10
"""Among so many of the first candidates the best unit is looked for."""

_KEPT_TERMS = 10_000


class Search:
    """Searches one index; keeps what the next query of the same process needs again."""

    def __init__(self, vectors: Vectors | None, embedder: Embedder | None) -> None:
        """Take what compares by meaning; None of it where only words are searched."""
        self._vectors = vectors
        self._embedder = embedder
        self._frequencies: tuple[int, dict[str, int]] = (-1, {})

    def __call__(self, sql: sqlite3.Connection, request: Request) -> Found:
        """Returns the best memories, best first."""
        query = understand(request.text, request.now)
        considered = catalog.count(sql, request.filter)
        if not query.full or not considered:
            return Found(hits=(), considered=considered)
        try:
            encoded = self._encode(query)
            hits = self._hits(sql, request, query, encoded, considered)
        except FAILURES as error:
            if isinstance(error, IndexDamaged):
                raise
            hits = self._hits(sql, request, query, b"", considered)
            return Found(hits=hits, considered=considered, notice=_by_words(error))
        notice = None if self._embedder else _by_words("there is no model")
        return Found(hits=hits, considered=considered, notice=notice)

    def _encode(self, query: RankingQuery) -> bytes:
        if not query.latin or self._embedder is None:
            return b""
        return self._embedder.encode(query.text)

    def _hits(
        self,
        sql: sqlite3.Connection,
        request: Request,
        query: RankingQuery,
        encoded: bytes,
        considered: int,
    ) -> tuple[Hit, ...]:
        sums = words.totals(sql)
        statistics = _statistics(sums, self._known_frequencies(sql, query, sums.revision))
        terms = words.pruned(query.content, statistics.frequencies, sums.units)
        matches = sum(statistics.frequencies[term] for term in terms)
        reach = words.Reach(memories=sums.memories, admitted=considered, matches=matches)
        keys = words.memories_with(sql, terms, request.filter, reach)
        candidates = Candidates(sql, keys, request.filter)
        if encoded and self._vectors and _needs_meaning(query, candidates, statistics):
            near = memories_near(sql, self._vectors, encoded, request.filter)
            candidates = Candidates(sql, list(dict.fromkeys([*keys, *near])), request.filter)
        names = candidates.vector_names()
        vectors = self._vectors.get(names) if self._vectors and encoded else {}
        if self._vectors and encoded and len(vectors) < len(names) and self._has_all(sql):
            self._vectors.note_loss()
        ranked = rank(query, candidates.ranked_as(encoded, vectors), statistics)
        related = [one for one in ranked if one.score >= request.threshold]
        if related:
            return self._answered(sql, related, candidates, request.limit)
        return self._answered(sql, ranked[: request.nearest], candidates, request.nearest)

    def _has_all(self, sql: sqlite3.Connection) -> bool:
        """Returns whether the index says that the vectors of all its units were made."""
        (model,) = sql.execute("SELECT value FROM meta WHERE name = 'model'").fetchone()
        return self._embedder is not None and model == self._embedder.model

    def _known_frequencies(
        self, sql: sqlite3.Connection, query: RankingQuery, revision: int
    ) -> Mapping[str, int]:
        """Returns the frequency of each term; counted once as long as the index stays the same."""
        counted, known = self._frequencies
        if counted != revision or len(known) > _KEPT_TERMS:
            known = {}
            self._frequencies = (revision, known)
        terms = {*query.full, *query.content}
        known.update((term, words.frequency(sql, term)) for term in terms - known.keys())
        return {term: known[term] for term in terms}

    def _answered(
        self, sql: sqlite3.Connection, ranked: list[Ranked], candidates: Candidates, limit: int
    ) -> tuple[Hit, ...]:
        keys = {candidates.id_of(one.key): one.key for one in ranked}
        newer = catalog.newer_versions(sql, list(keys))
        successors = {
            keys[old]: {keys[id_] for id_ in new.superseded_by if id_ in keys}
            for old, new in newer.items()
        }
        best = below_successors(ranked, successors)[:limit]
        records = rows.by_key(sql, [one.key for one in best])
        names = {one.key: candidates.vector_of(one.key) for one in best}
        vectors = self._vectors.get(names.values()) if self._vectors else {}
        return tuple(
            _hit(
                records[one.key],
                one,
                candidates.unit(one.key, one.unit),
                newer=newer[candidates.id_of(one.key)],
                embedded=bool(vectors.get(names[one.key])),
            )
            for one in best
        )


def _statistics(sums: words.Totals, frequencies: Mapping[str, int]) -> Statistics:
    """Returns what the ranking needs to know of the store."""
    return Statistics(
        units=sums.units,
        frequencies=frequencies,
        unit_tokens=sums.unit_tokens / max(sums.units, 1) or 1.0,
        passage_tokens=sums.passage_tokens / max(sums.passages, 1) or 1.0,
        document_tokens=sums.unit_tokens / max(sums.memories, 1) or 1.0,
    )


def _needs_meaning(query: RankingQuery, found: Candidates, statistics: Statistics) -> bool:
    if len(found.keys) <= _FEW:
        return True
    worth = inverse_frequencies(query, statistics)
    content = {term: worth[term] for term in query.content}
    return found.coverage(content, _LOOKED_AT) < _LITTLE


def _hit(record: Record, ranked: Ranked, unit: StoredUnit, *, newer: Newer, embedded: bool) -> Hit:
    text = record.memory.text[unit.start : unit.start + unit.length]
    return Hit(
        record=record,
        score=ranked.score,
        passage=text or record.memory.heading,
        line=unit.line,
        newer=newer,
        embedded=embedded,
    )


def _by_words(reason: object) -> str:
    return f"searched by words only: {getattr(reason, 'message', None) or reason}"
