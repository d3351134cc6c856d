"""A query -> the memories that answer it: words find, meaning and words together rank."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mimo.index import catalog, rows, words
from mimo.index.catalog import condition
from mimo.index.database import IndexDamaged
from mimo.index.embedding import FAILURES, Embedder
from mimo.index.meaning import memories_near
from mimo.index.rows import Found, Hit, Newer, Request
from mimo.index.vectors import Vectors, cosines
from mimo.memory.model import Filter, Record
from mimo.ranking import below_successors, rank, understand
from mimo.ranking.evidence import inverse_frequencies
from mimo.ranking.model import Candidate, Ranked, RankingQuery, Statistics

# Memories that may answer a query, as the ranking wants them.


_REACH = 2
"""How far parts of the same parent are fetched: the neighbours of a neighbour count for it."""


class _Memory(NamedTuple):
    """A row of `memories`, as far as the ranking looks at it."""

    key: int
    created: int
    importance: float
    title: str
    topic: str
    passages: str | None
    vector: bytes
    path: str | bytes
    parent: str | None
    position: int
    id: str
    admitted: bool
    """Whether it passes the filter."""


class StoredUnit(NamedTuple):
    """A row of `units`."""

    tokens: str
    speakers: str
    vector: bytes
    line: int
    start: int
    length: int


_COLUMNS = (
    "m.key, m.created, m.importance, m.title_tokens, m.topic_tokens, m.passages, m.vector, m.path,"
    " m.parent, m.position, m.id"
)


class Candidates:
    """Memories that were found and their neighbours, with all that is stored about them."""

    def __init__(self, sql: sqlite3.Connection, keys: Sequence[int], filter_: Filter) -> None:
        """Read the memories of `keys`, which pass the filter, and what stands around them."""
        self._memories = {one.key: one for one in _memories(sql, keys)}
        parts = [one for one in self._memories.values() if one.parent is not None]
        around = _around(sql, parts, filter_) if parts else []
        self._memories.update((m.key, m) for m in around if m.key not in self._memories)
        self._by_place = {(m.path, m.parent, m.position): m for m in self._memories.values()}
        self._units = _units(sql, list(self._memories))
        self._parents = _parents(sql, {m.parent for m in parts if m.parent is not None})
        self.keys = self._with_neighbours(keys)

    def vector_names(self) -> set[bytes]:
        """Returns the names of the vectors that the candidates' cosines need."""
        names = {unit.vector for key in self.keys for unit in self._units[key]}
        return names.union(self._memories[key].vector for key in self.keys)

    def id_of(self, key: int) -> str:
        """Returns the id of one memory."""
        return self._memories[key].id

    def vector_of(self, key: int) -> bytes:
        """Returns the name of the vector of one memory's whole text."""
        return self._memories[key].vector

    def unit(self, key: int, number: int) -> StoredUnit:
        """Returns one unit of a memory, counted from 0."""
        return self._units[key][number]

    def coverage(self, worth: Mapping[str, float], first: int) -> float:
        """Returns the largest share of `worth` in one unit of the first candidates."""
        total = sum(worth.values())
        best = 0.0
        for key in self.keys[:first]:
            memory = self._memories[key]
            heading = worth.keys() & f"{memory.title} {memory.topic}".split()
            for unit in self._units[key]:
                held = heading | (worth.keys() & unit.tokens.split())
                best = max(best, sum([worth[term] for term in held]))
        return best / total if total else 0.0

    def ranked_as(self, query: bytes, vectors: Mapping[bytes, bytes]) -> list[Candidate]:
        """Returns the candidates in their order; no cosines for an empty query vector."""
        found: Mapping[bytes, float] = {}
        if query:
            found = dict(zip(vectors, cosines(query, list(vectors.values())), strict=True))
        return [self._candidate(self._memories[key], found) for key in self.keys]

    def _with_neighbours(self, keys: Sequence[int]) -> list[int]:
        order = dict.fromkeys(keys)
        for key in keys:
            for step in (-1, 1):
                beside = self._beside(self._memories[key], step)
                if beside and beside.admitted:
                    order.setdefault(beside.key)
        return list(order)

    def _beside(self, memory: _Memory, step: int) -> _Memory | None:
        if memory.parent is None:
            return None
        return self._by_place.get((memory.path, memory.parent, memory.position + step))

    def _candidate(self, memory: _Memory, found: Mapping[bytes, float]) -> Candidate:
        units = self._units[memory.key]
        return Candidate(
            key=memory.key,
            units=[unit.tokens for unit in units],
            passages=memory.passages.split("\n") if memory.passages else (),
            title=memory.title,
            topic=memory.topic,
            created=rows.to_time(memory.created),
            importance=memory.importance,
            speakers=[unit.speakers for unit in units],
            unit_cosines=[found.get(unit.vector, 0.0) for unit in units] if found else (),
            document_cosine=found.get(memory.vector, 0.0),
            previous=self._passages(self._beside(memory, -1)),
            following=self._passages(self._beside(memory, 1)),
            parent=self._parents.get((memory.path, memory.parent), ""),
        )

    def _passages(self, memory: _Memory | None) -> Sequence[str]:
        if memory is None:
            return ()
        if memory.passages:
            return memory.passages.split("\n")
        return [unit.tokens for unit in self._units[memory.key]]


def _memories(sql: sqlite3.Connection, keys: Sequence[int]) -> Iterable[_Memory]:
    found = sql.execute(
        f"SELECT {_COLUMNS}, 1 FROM memories m WHERE m.key IN ({rows.marks(keys)})", keys
    )
    return [_Memory(*values) for values in found]


def _around(sql: sqlite3.Connection, parts: Sequence[_Memory], filter_: Filter) -> list[_Memory]:
    places = {
        (part.parent, part.position + step)
        for part in parts
        for step in range(-_REACH, _REACH + 1)
        if step
    }
    where, values = condition(filter_)
    wanted: list[Any] = [value for place in sorted(places, key=str) for value in place]
    found = sql.execute(
        f"SELECT {_COLUMNS}, ({where}) FROM memories m WHERE m.shadowed = 0 AND"
        f" (m.parent, m.position) IN (VALUES {','.join(['(?, ?)'] * len(places))})",
        (*values, *wanted),
    )
    return [_Memory(*row) for row in found]


def _units(sql: sqlite3.Connection, keys: Sequence[int]) -> dict[int, list[StoredUnit]]:
    units: dict[int, list[StoredUnit]] = {key: [] for key in keys}
    found = sql.execute(
        "SELECT memory, tokens, speakers, vector, line, start, length FROM units"
        f" WHERE memory IN ({rows.marks(keys)}) ORDER BY key",
        keys,
    )
    for memory, *values in found:
        units[memory].append(StoredUnit(*values))
    return units


def _parents(sql: sqlite3.Connection, ids: Iterable[str]) -> dict[tuple[str | bytes, Any], str]:
    wanted = sorted(ids)
    if not wanted:
        return {}
    found = sql.execute(
        f"SELECT path, id, tokens FROM parents WHERE id IN ({rows.marks(wanted)})", wanted
    )
    return {(path, id_): tokens for path, id_, tokens in found}


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
