"""Memories that may answer a query, as the ranking wants them."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mimo.domain.query import Filter
from mimo.domain.ranking import Candidate
from mimo.index import rows
from mimo.index.catalog import condition
from mimo.index.cosine import cosines

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
