"""The units that hold words, in memory: a process that searches often ranks them faster than FTS5.

FTS5 finds the units that hold a word quickly, and takes ten times as long for their BM25. Here the
numbers of a word that was asked for are kept, up to `_MOST_BYTES`, until the index changes. The
result is that of FTS5, to the last bit.
"""

from __future__ import annotations

import sqlite3
from _thread import allocate_lock
from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING

from mimo.frozen import NamedTuple
from mimo.index import catalog
from mimo.index.schema import marks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST_BYTES = 32 * 1024 * 1024
_MOST_CHANGED = 500
"""The number of changed memories from which all lengths are read again."""

_K1, _B = 1.2, 0.75
_COMMON = 1e-6
"""FTS5's constants; the last one is its weight of a word in more than half of the units."""

_EACH_INSTANCE = "CREATE VIRTUAL TABLE temp.instances USING fts5vocab(main, words, instance)"

# In one row, since SQLite frees the interpreter's lock for each.
_UNITS = "SELECT group_concat(key), group_concat(memory) FROM units"
_LENGTHS = "SELECT group_concat(id), group_concat(hex(sz), '') FROM words_docsize"
_HOLDING = "SELECT group_concat(doc) FROM temp.instances WHERE term = ?"

_LONG = "SELECT id, sz FROM words_docsize"
_SHORT_BYTES = 2
"""The bytes of a length, if a unit has fewer than 128 tokens in each of its two columns."""


class _Word(NamedTuple):
    """The units that hold a word."""

    units: NDArray[np.int64]
    weights: NDArray[np.float64]
    """The word's part of the BM25 of each."""


class Postings:
    """The units of the words that were asked for last; may be used by several threads."""

    def __init__(self) -> None:
        """Starts with nothing."""
        import numpy as np

        self._lock = allocate_lock()
        self._revision = -1
        self._words: dict[str, _Word] = {}
        self._bytes = 0
        self._lengths: NDArray[np.uint32] = np.zeros(0, dtype=np.uint32)
        """The number of tokens of each unit, by its key."""
        self._memories: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        """The memory of each unit, by the key of the unit."""
        self._mean = 1.0
        self._sums: NDArray[np.float64] = np.zeros(0)
        """By the key of a unit; all zero between two queries."""

    def best(
        self, sql: sqlite3.Connection, terms: Sequence[str], totals: catalog.Totals, most: int
    ) -> list[tuple[int, float]]:
        """Returns the memories of the units with the highest BM25 for any of the terms, best first.

        Each comes with its unit's BM25. Equal units are in the order of their keys.
        """
        import numpy as np

        with self._lock:
            self._renew(sql, totals)
            words = self._fetched(sql, terms, totals.units)
            for word in words:
                self._sums[word.units] += word.weights
            sums = []
            for word in words:
                sums.append(self._sums[word.units])
                self._sums[word.units] = 0  # A unit counts with the first of its words.
            if not words:
                return []
            units, values = np.concatenate([word.units for word in words]), np.concatenate(sums)
            # Equal units are all kept until they are sorted.
            least = np.partition(values, -most)[-most] if len(values) > most else 0.0
            places = np.flatnonzero((values >= least) & (values > 0))
            units, values = units[places], values[places]
            order = np.lexsort((units, -values))[:most]
            memories = self._memories[units[order]]
        return list(zip(memories.tolist(), values[order].tolist(), strict=True))

    def _renew(self, sql: sqlite3.Connection, totals: catalog.Totals) -> None:
        """Drops outdated words if the index has changed."""
        if self._revision == totals.revision:
            return
        changed = catalog.changed_since(sql, self._revision) if self._revision >= 0 else None
        self._words, self._bytes = {}, 0
        if changed is None or len(changed) > _MOST_CHANGED:
            self._lengths, self._memories = self._lengths[:0], self._memories[:0]
            self._measure(sql, "", "1", ())
        else:
            of_changed = f"WHERE memory IN ({marks(changed)})"
            among = f"id IN (SELECT key FROM units {of_changed})"
            self._measure(sql, of_changed, among, changed)
        (tokens,) = sql.execute("SELECT block FROM words_data WHERE id = 1").fetchone()
        self._mean = sum(_numbers(tokens)[1:]) / max(totals.units, 1)
        self._revision = totals.revision

    def _measure(
        self, sql: sqlite3.Connection, of_memories: str, of_units: str, keys: Sequence[int]
    ) -> None:
        """Reads the lengths and the memories of units: of those that two conditions select."""
        import numpy as np

        units, memories = sql.execute(f"{_UNITS} {of_memories}", keys).fetchone()
        places = _integers(units)
        highest = int(places.max(initial=0))
        if highest >= len(self._lengths):
            size = highest + 1 + highest // 8
            self._lengths = np.append(self._lengths, np.zeros(size, dtype=np.uint32))[:size]
            self._memories = np.append(self._memories, np.zeros(size, dtype=np.int64))[:size]
            self._sums = np.zeros(size)
        self._memories[places] = _integers(memories)
        is_short = f"length(sz) = {_SHORT_BYTES}"
        units, sizes = sql.execute(f"{_LENGTHS} WHERE {of_units} AND {is_short}", keys).fetchone()
        counts = np.frombuffer(bytes.fromhex(sizes or ""), dtype=np.uint8)
        self._lengths[_integers(units)] = counts.reshape(-1, _SHORT_BYTES).sum(axis=1)
        for unit, size in sql.execute(f"{_LONG} WHERE {of_units} AND NOT {is_short}", keys):
            self._lengths[unit] = sum(_numbers(size))

    def _fetched(self, sql: sqlite3.Connection, terms: Sequence[str], units: int) -> list[_Word]:
        """Returns the postings of each term, which were kept or are read."""
        missing = [term for term in terms if term not in self._words]
        if missing:
            sql.execute(_EACH_INSTANCE)
        for term in missing:
            self._words[term] = word = self._read(sql, term, units)
            self._bytes += word.units.nbytes + word.weights.nbytes
        words = [self._words.pop(term) for term in terms]
        # The words that were asked for last are the last to go.
        self._words |= zip(terms, words, strict=True)
        while self._bytes > _MOST_BYTES:
            word = self._words.pop(next(iter(self._words)))
            self._bytes -= word.units.nbytes + word.weights.nbytes
        return words

    def _read(self, sql: sqlite3.Connection, term: str, units: int) -> _Word:
        import numpy as np

        (joined,) = sql.execute(_HOLDING, (term,)).fetchone()
        every = _integers(joined)
        holding, counts = np.unique(every, return_counts=True)
        number = len(holding)
        weight = log((units - number + 0.5) / (number + 0.5))
        # In the order of FTS5's own operations, so that equal units stay equal.
        norms = _K1 * (1 - _B + _B * self._lengths[holding] / self._mean)
        return _Word(holding, max(weight, _COMMON) * (counts * (_K1 + 1) / (counts + norms)))


def _integers(joined: str | None) -> NDArray[np.int64]:
    """Returns the integers that SQLite has joined by commas; None for none."""
    import numpy as np

    return np.fromstring(joined or "", dtype=np.int64, sep=",")


def _numbers(data: bytes) -> list[int]:
    """Returns the numbers that SQLite has stored as varints of less than nine bytes."""
    numbers, number = [], 0
    for byte in data:
        number = number << 7 | byte & 127
        if byte < 128:
            numbers.append(number)
            number = 0
    return numbers
