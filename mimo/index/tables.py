"""The source of a search over the tables of an index."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mimo.index import rows, schema, selection
from mimo.index.embedding import Embedder, is_elsewhere
from mimo.index.rows import Newer
from mimo.index.schema import Totals, from_sql, marks, unpacked
from mimo.index.search import CandidateRow, Compared, Stored, StoredUnit, stored_of
from mimo.index.vectors import Vectors
from mimo.memory.model import Filter, Record

if TYPE_CHECKING:
    from mimo.index.meanings import Meanings
    from mimo.ranking import Ranked

REACH = 2
"""The distance up to which parts of the same source are read: they count for their neighbours."""

_NONE: Mapping[bytes, float] = {}


class Tables:
    """The tables as one search sees them: a `Source` over SQLite."""

    def __init__(
        self,
        sql: sqlite3.Connection,
        vectors: Vectors | None,
        embedder: Embedder | None,
        meanings: Callable[[], Meanings | None] = lambda: None,
        make: Callable[[sqlite3.Connection, Collection[bytes] | None], None] = lambda *_: None,
        counts: dict[str, int] | None = None,
    ) -> None:
        """Takes the vectors and their model, None to search by words only, and the encoder's.

        `sql` is in a transaction. `meanings` is called if words do not suffice: the encoder imports
        numpy. `make` is called before, and makes missing static vectors of the names given to it,
        of all without names. `counts` has the numbers of units with terms that were counted before
        in the same state, and gets further ones.
        """
        self._counts = {} if counts is None else counts
        self._sql, self._vectors, self._meanings, self._make = sql, vectors, meanings, make
        self.embedder = embedder if vectors else None
        self._has_all = False
        """True if the encoder's vectors are all made, so that static ones say nothing more."""

    @cached_property
    def totals(self) -> Totals:
        """The sums over the index."""
        return schema.totals(self._sql)

    def count(self, filter: Filter) -> int:
        """Returns the number of memories that pass the filter."""
        return selection.count(self._sql, filter)

    def frequencies(self, terms: Collection[str]) -> Mapping[str, int]:
        """Returns the number of units that hold each term."""
        for term in terms:
            if term not in self._counts:
                self._counts[term] = schema.frequency(self._sql, term)
        return {term: self._counts[term] for term in terms}

    def by_words(
        self, terms: Sequence[str], filter: Filter, *, admitted: int, matches: int
    ) -> list[int]:
        """Returns the memories that hold any of the terms, best first."""
        return selection.memories_with(
            self._sql,
            terms,
            filter,
            memories=self.totals.memories,
            admitted=admitted,
            matches=matches,
        )

    def by_vector(self, query: bytes, filter: Filter) -> list[int]:
        """Returns the memories whose static vectors are nearest, nearest first."""
        if self._vectors is None:
            return []
        self._make(self._sql, None)
        return list(selection.memories_near(self._sql, self._vectors, query, filter))

    def cosines(self, query: bytes, names: Collection[bytes]) -> Mapping[bytes, float]:
        """Returns the cosine of a query with each static vector."""
        if self._vectors is None:
            return _NONE
        self._make(self._sql, () if self._has_all else names)
        return self._vectors.cosines(query, names)

    def compared(
        self, text: str, filter: Filter, by_words: Callable[[], list[Ranked]]
    ) -> Compared | None:
        """Returns the encoder's comparison of a query with the memories that pass the filter."""
        self._make(self._sql, ())
        meanings = self._meanings()
        compared = meanings.compared(self._sql, text, filter, by_words) if meanings else None
        is_local = meanings and not is_elsewhere(meanings.encoder)  # It gets private texts, too.
        self._has_all = compared is not None and not compared.missing and bool(is_local)
        return compared

    def stored(self, keys: Collection[int]) -> dict[int, Stored]:
        """Returns memories by key with all that ranking needs."""
        selected = self._sql.execute(
            f"SELECT {_COLUMNS} FROM memories m WHERE m.key IN ({marks(keys)})", list(keys)
        ).fetchall()
        units = _units(self._sql, [row[0] for row in selected])
        memories = [CandidateRow(*(*row[:6], from_sql(row[6]), *row[7:])) for row in selected]
        return {memory.key: stored_of(memory, units[memory.key]) for memory in memories}

    def around(self, parts: Sequence[CandidateRow], filter: Filter) -> dict[int, bool]:
        """Returns the keys of the parts around some, and whether they pass the filter."""
        places = {
            (part.parent, part.position + step)
            for part in parts
            for step in range(-REACH, REACH + 1)
            if step
        }
        where, values = selection.condition(filter)
        parameters: list[Any] = [value for place in sorted(places, key=str) for value in place]
        if not places:
            return {}
        # SQLite has no index for pairs in a list, and would read all memories.
        selected = self._sql.execute(
            f"WITH places(parent, position) AS (VALUES {','.join(['(?, ?)'] * len(places))})"
            f" SELECT m.key, ({where}) FROM places p CROSS JOIN memories m"
            " ON m.parent = p.parent AND m.position = p.position WHERE m.shadowed = 0",
            (*parameters, *values),
        )
        return {key: bool(admitted) for key, admitted in selected}

    def parents(self, parts: Sequence[CandidateRow]) -> dict[int, tuple[str, bool]]:
        """Returns, by part, the distinct tokens of its source, and whether that is a chat."""
        ids = sorted({part.parent for part in parts if part.parent is not None})
        if not ids:
            return {}
        query = f"SELECT path, id, tokens, is_chat FROM parents WHERE id IN ({marks(ids)})"
        of = {
            (from_sql(path), id): (tokens, bool(is_chat))
            for path, id, tokens, is_chat in self._sql.execute(query, ids)
        }
        places = [(part.key, (part.path, part.parent)) for part in parts]
        return {key: of[place] for key, place in places if place in of}

    def records(self, keys: Collection[int]) -> dict[int, Record]:
        """Returns memories by key."""
        return rows.by_key(self._sql, list(keys))

    def newer(self, ids: Mapping[int, str]) -> dict[int, Newer]:
        """Returns, by key, the memories that claim to supersede each of some."""
        newer = selection.newer(self._sql, list(ids.values()))
        return {key: newer[id] for key, id in ids.items()}

    def competing(self, ids: Mapping[int, str]) -> dict[int, tuple[str, ...]]:
        """Returns, by key, the other current decisions on the topic of each of some."""
        competing = selection.competing(self._sql, list(ids.values()))
        return {key: competing[id] for key, id in ids.items() if id in competing}


_COLUMNS = (
    "m.key, m.created, m.importance, m.title_tokens, m.topic_tokens, m.passages, m.path,"
    " m.parent, m.position, m.id, m.owned"
)


def _units(sql: sqlite3.Connection, keys: Sequence[int]) -> dict[int, list[StoredUnit]]:
    units: dict[int, list[StoredUnit]] = {key: [] for key in keys}
    selected = sql.execute(
        "SELECT tokens, speakers, vector, line, start, length, memory FROM units"
        f" WHERE memory IN ({marks(keys)}) ORDER BY key",
        keys,
    )
    for tokens, *unit in selected:  # a function of SQL for each would take longer
        units[unit[-1]].append(StoredUnit(unpacked(tokens), *unit))
    return units
