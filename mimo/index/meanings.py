"""The encoder's vectors of an index, which are made when there is time, and comparisons by them.

Words and static vectors answer at once; the encoder needs about 6 ms for a short memory. So its
vectors are made in the background, by `mind index`, and a few at a time by searches. A vector is
kept under the hash of its text.
"""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mimo.errors import StorageFailed
from mimo.index import catalog, rows
from mimo.index.documents import document, name_of
from mimo.index.embedding import ENCODED_LENGTH, Embedder
from mimo.index.vectors import Vectors, cosines, products, rows_of
from mimo.memory.model import Filter
from mimo.ranking.score import Nearness

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NEAREST = 20
"""The number of memories nearest to a query that are candidates; more found nothing more."""

MOST_AT_ONCE = 40
"""The number of missing vectors that a search makes before it compares, at most."""

MOST_CHARACTERS = 4_000
"""The text of memories from which it makes no more of them: about 0.3 s."""

_READABLE = 0.1
"""The ratio of readable to other units up to which the encoder is not asked.

In a store of another language, the few texts that it can read would come first.
"""

_WAIT_SECONDS = 0.2


class Compared(NamedTuple):
    """An encoded query, compared with the memories of a store."""

    query: bytes
    near: Nearness
    vectors: Vectors

    def cosines(self, names: Collection[bytes]) -> dict[bytes, float]:
        """Returns the cosine of the query with each of `names` that has a vector."""
        stored = self.vectors.get(names)
        values = cosines(self.query, list(stored.values()), ENCODED_LENGTH)
        return dict(zip(stored, values, strict=True))


class _Table(NamedTuple):
    """The vectors of a store in the order of its memories."""

    keys: "NDArray[np.int64]"
    """The memories, each once."""
    starts: "NDArray[np.intp]"
    """The first row of each memory."""
    matrix: "NDArray[np.int8]"
    incomplete: frozenset[int]
    """Memories some of whose units have no vector."""
    missing: int
    """The number of units without a vector."""
    unreadable: int
    """The number of units that the encoder can't read."""


class Meanings:
    """The vectors of one encoder for the texts of an index."""

    def __init__(self, folder: Path | None, encoder: Embedder) -> None:
        """Take the index's folder, None for memory; nothing is opened yet."""
        self._folder = folder
        self.encoder = encoder
        self._opened: Vectors | None = None
        self._table: tuple[object, _Table] | None = None
        self.is_behind = False
        """True if vectors were missing in the last comparison."""

    @property
    def vectors(self) -> Vectors:
        """The stored vectors. Raises `StorageFailed` if the folder can't be written."""
        if self._opened is None:
            self._opened = Vectors(self._folder, self.encoder.model, "meanings", ENCODED_LENGTH)
        return self._opened

    def close(self) -> None:
        """Closes the file."""
        if self._opened:
            self._opened.close()

    def of(self, texts: Sequence[str], most: int | None = None) -> list[bytes]:
        """Returns the vector of each text, empty for one that the encoder can't read.

        Missing vectors are made and stored, at most `most`; those of later texts are empty.
        """
        names = list(map(name_of, texts))
        stored = self.vectors.get(names)
        pairs = zip(names, texts, strict=True)
        missing = {name: text for name, text in pairs if name not in stored}
        missing = dict(islice(missing.items(), most))
        if missing:
            made = self.encoder.encode_many(list(missing.values()))
            new = dict(zip(missing, made, strict=True))
            with suppress(StorageFailed):  # Another process may be writing; they are made again.
                self.vectors.put(new, wait=_WAIT_SECONDS)
            stored.update(new)
        return [stored.get(name, b"") for name in names]

    def compared(self, sql: sqlite3.Connection, text: str, filter: Filter) -> "Compared | None":
        """Returns the comparison of a query with the memories that pass a filter.

        Makes some missing vectors first. Returns None if there are none.
        """
        query = self.encoder.encode(text)
        if not query:
            return None
        if self._tabulated(sql).missing:
            self._catch_up(sql)
        self.is_behind = self._tabulated(sql).missing > 0
        near = self._near(sql, query, filter)
        return Compared(query, near, self.vectors) if near else None

    def missing(self, sql: sqlite3.Connection) -> list[int]:
        """Returns the keys of the memories that lack vectors: own ones first, newest first."""
        stored = self.vectors.known(names_of(sql))
        selected = sql.execute(
            "SELECT m.key, u.vector FROM memories m CROSS JOIN units u ON u.memory = m.key"
            " WHERE m.shadowed = 0 ORDER BY m.owned DESC, m.parent IS NOT NULL, m.created DESC"
        )
        return list(dict.fromkeys(key for key, name in selected if name not in stored))

    def make(self, sql: sqlite3.Connection, keys: Sequence[int]) -> None:
        """Makes and stores the missing vectors of memories."""
        records = rows.by_key(sql, keys)
        self.of([text for record in records.values() for text in document(record).unit_texts])

    def prune(self, keep: Collection[bytes]) -> None:
        """Removes the vectors of all names but `keep`."""
        self.vectors.prune(keep)

    def _catch_up(self, sql: sqlite3.Connection) -> None:
        """Makes some of the missing vectors.

        The amount of text is limited, not the time: equal stores give equal answers on any machine.
        """
        wanted: list[str] = []
        left = MOST_CHARACTERS
        for key in self.missing(sql):
            for record in rows.by_key(sql, [key]).values():
                texts = document(record).unit_texts
                stored = self.vectors.known(map(name_of, texts))
                wanted += [text for text in texts if name_of(text) not in stored]
                left -= sum(map(len, texts))
            if left <= 0:
                break
        self.of(wanted, most=MOST_AT_ONCE)

    def _near(self, sql: sqlite3.Connection, query: bytes, filter: Filter) -> Nearness | None:
        """Returns how near the memories that pass the filter are; None without enough vectors."""
        import numpy as np

        table = self._tabulated(sql)
        rows_made = len(table.matrix)
        if rows_made <= _READABLE * table.unreadable:
            return None
        where, values = catalog.condition(filter)
        admitted = np.fromiter(
            (key for (key,) in sql.execute(f"SELECT m.key FROM memories m WHERE {where}", values)),
            dtype=np.int64,
        )
        best = np.maximum.reduceat(products(query, table.matrix), table.starts) / ENCODED_LENGTH**2
        passing = np.isin(table.keys, admitted)
        keys, best = table.keys[passing], np.clip(best[passing], -1, 1)
        if not len(keys):
            return None
        order = np.argsort(-best, kind="stable")[:NEAREST]
        return Nearness(
            nearest=tuple(zip(keys[order].tolist(), best[order].tolist(), strict=True)),
            of={
                key: cosine
                for key, cosine in zip(keys.tolist(), best.tolist(), strict=True)
                if key not in table.incomplete
            },
            share=rows_made / (rows_made + table.missing),
            memories=len(keys),
            mean=float(best.mean()),
        )

    def _tabulated(self, sql: sqlite3.Connection) -> _Table:
        """Returns all vectors by memory, read again only if the store or they have changed."""
        import numpy as np

        state = (catalog.totals(sql).revision, self.vectors.version())
        if self._table and self._table[0] == state:
            return self._table[1]
        stored = dict(self.vectors.all())
        wordless = self.vectors.known(set(names_of(sql)) - stored.keys())
        keys: list[int] = []
        whole: list[bytes] = []
        incomplete: set[int] = set()
        missing = unreadable = 0
        units: Iterable[tuple[Any, ...]] = sql.execute(
            "SELECT u.memory, u.vector FROM units u JOIN memories m ON m.key = u.memory"
            " WHERE m.shadowed = 0 ORDER BY u.memory, u.key"
        )
        for key, name in units:
            vector = stored.get(name)
            if vector:
                keys.append(key)
                whole.append(vector)
            else:
                incomplete.add(key)
                missing += name not in wordless
                unreadable += name in wordless
        once, starts = np.unique(np.array(keys, np.int64), return_index=True)
        table = _Table(once, starts, rows_of(whole), frozenset(incomplete), missing, unreadable)
        self._table = (state, table)
        return table


def names_of(sql: sqlite3.Connection) -> Iterator[bytes]:
    """Yields the names of the units' vectors."""
    return (name for (name,) in sql.execute("SELECT vector FROM units"))
