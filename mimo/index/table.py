"""The vectors of a store by memory: the row of each unit's vector, and the nearest memories.

It is kept between searches. After a change, only the changed memories are read again, and only the
new vectors are looked up.
"""

from __future__ import annotations

import sqlite3
from _thread import allocate_lock
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mimo.frozen import NamedTuple
from mimo.index import catalog
from mimo.index.content import State
from mimo.index.embedding import ENCODED_LENGTH
from mimo.index.matrix import NAME, Matrix, products, rows_of
from mimo.index.schema import marks, portions
from mimo.index.vectors import Vectors
from mimo.memory.model import Filter

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Keys = NDArray[np.int64]
    Places = NDArray[np.intp]
    Names = NDArray[np.uint8]

_MISSING = -1
"""The row of a unit whose vector is not made yet."""

_UNREADABLE = -2
"""The row of a unit that the encoder can't read."""

_EXAMINED = 256
"""The number of nearest memories that are examined before a filter is applied to all."""


class Table(NamedTuple):
    """The vectors at one time, in the order of the memories."""

    matrix: Matrix | None
    keys: Keys
    """The memories that have a vector, each once."""
    starts: Places
    """The first row of each memory in `rows`."""
    rows: Places
    incomplete: Keys
    """Memories some of whose units have no vector."""
    lacking: Keys
    """Memories some of whose vectors are not made yet."""
    missing: int
    """The number of units whose vector is not made yet."""
    unreadable: int
    """The number of units that the encoder can't read."""

    def complete(self, keys: Iterable[int]) -> Keys:
        """Returns those of some memories all of whose units have vectors, each once."""
        wanted = np.array(sorted(set(keys)), np.int64)
        return wanted[np.isin(wanted, self.keys) & ~np.isin(wanted, self.incomplete)]

    def has_any(self, names: Sequence[bytes]) -> bool:
        """Returns whether any of `names` has a row."""
        if self.matrix is None or not names:
            return False
        return bool((self.matrix.places(rows_of(names)) >= 0).any())

    def best(self, query: bytes, keys: Keys) -> NDArray[np.float64]:
        """Returns the largest cosine of a vector of each of `keys`, memories with vectors."""
        if self.matrix is None or not len(keys):
            return np.empty(0)
        at = np.searchsorted(self.keys, keys)
        counts = np.append(self.starts, len(self.rows))[at + 1] - self.starts[at]
        first = np.cumsum(counts) - counts
        places = np.arange(counts.sum()) + np.repeat(self.starts[at] - first, counts)
        values = products(query, self.matrix.vectors[self.rows[places]])
        return _cosines(np.maximum.reduceat(values, first))

    def nearest(
        self, sql: sqlite3.Connection, query: bytes, filter: Filter, most: int
    ) -> tuple[tuple[int, float], ...]:
        """Returns the keys and cosines of the memories nearest to a query, nearest first.

        Only memories that pass the filter are returned, at most `most`.
        """
        if self.matrix is None or not len(self.rows):
            return ()
        values = products(query, self.matrix.vectors)
        cosines = _cosines(np.maximum.reduceat(values[self.rows], self.starts))
        keys = self.keys
        if filter != Filter():
            near = _first(keys, cosines, _EXAMINED)
            admitted = _admitted(sql, filter, near.tolist())
            if len(admitted) < most and len(near) < len(keys):
                where, bound = catalog.condition(filter)
                every = sql.execute(f"SELECT m.key FROM memories m WHERE {where}", bound)
                admitted = np.fromiter((key for (key,) in every), np.int64)
            passing = np.isin(keys, admitted)
            keys, cosines = keys[passing], cosines[passing]
        return _in_order(sql, keys, cosines, most)


def _starts(sorted_keys: Keys) -> Places:
    """Returns the first place of each key. `np.unique` would import the masked arrays."""
    is_first = np.ones(len(sorted_keys), np.bool_)
    is_first[1:] = sorted_keys[1:] != sorted_keys[:-1]
    return np.flatnonzero(is_first)


def _first(keys: Keys, cosines: NDArray[np.float64], most: int) -> Keys:
    """Returns the keys of the `most` largest cosines, and of those equal to the last."""
    if len(keys) <= most:
        return keys
    chosen: Keys = keys[cosines >= np.partition(cosines, -most)[-most]]
    return chosen


def _in_order(
    sql: sqlite3.Connection, keys: Keys, cosines: NDArray[np.float64], most: int
) -> tuple[tuple[int, float], ...]:
    """Returns the keys of the largest cosines, the largest first; equal ones newest first."""
    first = np.isin(keys, _first(keys, cosines, most))
    near = dict(zip(keys[first].tolist(), cosines[first].tolist(), strict=True))
    counts = Counter(near.values())
    tied = [key for key, cosine in near.items() if counts[cosine] > 1]
    ages: dict[int, tuple[Any, ...]] = {}
    for some in portions(tied):
        query = "SELECT -created, coalesce(parent, ''), position, id, key FROM memories"
        for *age, key in sql.execute(f"{query} WHERE key IN ({marks(some)})", some):
            ages[key] = tuple(age)
    return tuple(sorted(near.items(), key=lambda pair: (-pair[1], ages.get(pair[0], ())))[:most])


def _admitted(sql: sqlite3.Connection, filter: Filter, keys: Sequence[int]) -> Keys:
    where, values = catalog.condition(filter)
    admitted: list[int] = []
    for some in portions(keys):
        query = f"SELECT m.key FROM memories m WHERE m.key IN ({marks(some)}) AND {where}"
        admitted += (key for (key,) in sql.execute(query, (*some, *values)))
    return np.array(admitted, np.int64)


def _cosines(values: NDArray[Any]) -> NDArray[np.float64]:
    return np.clip(values.astype(np.float64) / ENCODED_LENGTH**2, -1, 1)


class Units:
    """Keeps the table of one store; threads can use it at the same time."""

    def __init__(self) -> None:
        """Nothing is read yet."""
        self._turn = allocate_lock()
        self.forget()

    def forget(self) -> None:
        """Makes the next call read everything: another database has the units."""
        with self._turn:
            self._revision = -1
            self._state: State | None = None
            self._memories: Keys = np.empty(0, np.int64)
            self._names: Names = np.empty((0, NAME), np.uint8)
            self._rows: Places = np.empty(0, np.intp)
            self._table: Table | None = None

    def table(self, sql: sqlite3.Connection, vectors: Vectors) -> Table:
        """Returns the table of the present state of the store and of its vectors."""
        with self._turn:
            revision, state = catalog.totals(sql).revision, vectors.compared_state()
            if self._table and (revision, state) == (self._revision, self._state):
                return self._table
            if revision != self._revision:
                self._read(sql)
            if self._state and state.file != self._state.file:
                self._rows[:] = _MISSING
            # Another process may add vectors now; they are looked up next time.
            matrix = vectors.matrix()
            self._locate(matrix, vectors)
            self._revision, self._state = revision, state
            self._table = self._arranged(matrix)
            return self._table

    def _read(self, sql: sqlite3.Connection) -> None:
        """Reads the units of the changed memories, or all of them."""
        changed = None
        if self._revision >= 0:
            changed = catalog.changed_since(sql, self._revision)  # Sorted.
        query = (
            "SELECT u.memory, u.vector FROM units u JOIN memories m ON m.key = u.memory"
            " WHERE m.shadowed = 0 AND {} ORDER BY u.memory, u.key"
        )
        if changed is None:
            new = sql.execute(query.format("1")).fetchall()
            kept = np.zeros(len(self._memories), np.bool_)
        else:
            new = []
            for chunk in portions(changed):
                new += sql.execute(query.format(f"u.memory IN ({marks(chunk)})"), chunk)
            kept = ~np.isin(self._memories, np.array(changed, np.int64))
        memories = np.fromiter((key for key, _ in new), np.int64, len(new))
        names = np.frombuffer(b"".join(name for _, name in new), np.uint8).reshape(len(new), NAME)
        rows = np.full(len(new), _MISSING, np.intp)
        if kept.any():
            old = self._memories[kept]
            at = np.searchsorted(old, memories)
            self._memories = np.insert(old, at, memories)
            self._names = np.insert(self._names[kept], at, names, axis=0)
            self._rows = np.insert(self._rows[kept], at, rows)
        else:
            self._memories, self._names, self._rows = memories, names, rows

    def _locate(self, matrix: Matrix | None, vectors: Vectors) -> None:
        """Looks up the vectors that were missing so far."""
        missing = np.flatnonzero(self._rows == _MISSING)
        if not len(missing):
            return
        if matrix:
            self._rows[missing] = matrix.places(self._names[missing])
            missing = missing[self._rows[missing] == _MISSING]
        empty = set(vectors.empty()) if len(missing) else ()
        if empty:
            names = self._names[missing]
            unreadable = [name.tobytes() in empty for name in names]
            self._rows[missing[unreadable]] = _UNREADABLE

    def _arranged(self, matrix: Matrix | None) -> Table:
        has_row = self._rows >= 0
        rows, memories = self._rows[has_row], self._memories[has_row]
        starts = _starts(memories)
        is_missing = self._rows == _MISSING
        without_row, lacking = self._memories[~has_row], self._memories[is_missing]
        return Table(
            matrix=matrix,
            keys=memories[starts],
            starts=starts,
            rows=rows,
            incomplete=without_row[_starts(without_row)],
            lacking=lacking[_starts(lacking)],
            missing=int(np.count_nonzero(is_missing)),
            unreadable=int(np.count_nonzero(~has_row) - np.count_nonzero(is_missing)),
        )
