"""Vectors by the hash of the text that they stand for, in an SQLite file of their own."""

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import islice
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

from mimo.index.cosine import clipped, numpy_pays, products_with
from mimo.index.vector_file import is_damaged, is_gone, open_newest, transaction, translated

if TYPE_CHECKING:
    from mimo.index.graph import Graph
    from mimo.index.nearest import Matrix

_CHUNK = 500
"""Names in one query; SQLite takes some thousand."""

# Another process may have emptied the file for another model since we opened it.
_OURS = "(SELECT value FROM meta WHERE name = 'model') = ?"

_T = TypeVar("_T")


class Vectors:
    """The vectors of one model; other processes and threads may use them at the same time."""

    def __init__(self, folder: Path | None, model: str) -> None:
        """Open the file in `folder`, or one in memory for None; another model's is emptied.

        Raises `StorageFailed` where the folder can't be written.
        """
        self._folder = folder
        self._model = model
        self._turn = RLock()
        self._scans = 0
        self._graph: tuple[object, Graph] | None = None
        self._matrix: tuple[object, Matrix] | None = None
        with translated(folder):
            self._connection, self._number = open_newest(folder, model)

    @classmethod
    def open(cls, folder: Path | None, model: str) -> "Vectors":
        """Returns the vectors in `folder`, as the constructor does."""
        return cls(folder, model)

    def known(self, names: Iterable[bytes]) -> set[bytes]:
        """Returns those of `names` (hashes of 16 bytes) that have a vector, be it empty."""
        return {row[0] for row in self._select("name", names)}

    def get(self, names: Iterable[bytes]) -> dict[bytes, bytes]:
        """Returns the vectors of those of `names` that have one."""
        return dict(self._select("name, vector", names))

    def put(self, vectors: Mapping[bytes, bytes]) -> None:
        """Keeps vectors by name; a name that has one already keeps it."""
        rows = [(name, vector, self._model) for name, vector in sorted(vectors.items())]
        insert = f"INSERT OR IGNORE INTO vectors SELECT ?, ? WHERE {_OURS}"
        self._write(lambda connection: connection.executemany(insert, rows))

    def prune(self, keep: Collection[bytes]) -> int:
        """Removes the vectors of all names but `keep`; returns how many there were."""
        kept = frozenset(keep)
        gone = [row for row in self._rows("SELECT name FROM vectors", ()) if row[0] not in kept]
        self._write(lambda c: c.executemany("DELETE FROM vectors WHERE name = ?", gone))
        return len(gone)

    def count(self) -> int:
        """Returns the number of vectors."""
        return int(self._rows("SELECT count(*) FROM vectors", ())[0][0])

    def size(self) -> int:
        """Returns the bytes that the file takes, its journal included; 0 in memory."""
        if self._folder is None:
            return 0
        return sum(path.stat().st_size for path in self._folder.glob("vectors*.db*"))

    def nearest(self, query: bytes, k: int) -> list[tuple[bytes, float]]:
        """Returns the names and cosines of the `k` vectors nearest to `query`, nearest first.

        All vectors are compared, unless `build_graph` has been called since they last changed.
        Equal ones stand in the order of their names.
        """
        if not query:
            return []
        if self._graph and self._graph[0] == self._version():
            return self._nearest_by_graph(self._graph[1], query, k)
        self._scans += 1
        # Whoever scans twice lives long enough for numpy and the matrix to pay.
        if self._scans > 1 or numpy_pays(self.count()):
            found = self._all_in_matrix().nearest(query, k)
        else:
            product = products_with(query)
            scored = ((-product(vector), name) for name, vector in self._all())
            found = [(name, -negative) for negative, name in nsmallest(k, scored)]
        return [(name, clipped(product)) for name, product in found]

    def build_graph(self) -> bool:
        """Returns whether `nearest` goes by an approximate index from now on until a change.

        It is made, or brought up to date, where there are more vectors than a scan is quick for.
        For a process that lives long, in a thread of its own: the first time takes minutes.
        """
        from mimo.index.graph import EXACT, Graph

        version = self._version()
        rows = self._all() if self.count() > EXACT else []
        if not rows:
            self._graph = None
            return False
        graph = self._graph[1] if self._graph else Graph(self._folder, self._model, len(rows[0][1]))
        graph.update(rows)
        self._graph = (version, graph)
        return True

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    def _nearest_by_graph(self, graph: "Graph", query: bytes, k: int) -> list[tuple[bytes, float]]:
        product = products_with(query)
        vectors = self.get(graph.nearest(query, k))
        scored = nsmallest(k, ((-product(vector), name) for name, vector in vectors.items()))
        return [(name, clipped(-negative)) for negative, name in scored]

    def _select(self, columns: str, names: Iterable[bytes]) -> Iterator[Any]:
        """Yields the rows of those of `names` that have a vector."""
        for chunk in _chunks(names):
            marks = ",".join("?" * len(chunk))
            query = f"SELECT {columns} FROM vectors WHERE name IN ({marks}) AND {_OURS}"
            yield from self._rows(query, (*chunk, self._model))

    def _rows(self, query: str, values: Sequence[Any]) -> list[Any]:
        return self._run(lambda connection: connection.execute(query, values).fetchall())

    def _all(self) -> list[tuple[bytes, bytes]]:
        """Returns every name and vector but the empty ones, in the order of the names."""
        query = f"SELECT name, vector FROM vectors WHERE vector != x'' AND {_OURS} ORDER BY name"
        return self._rows(query, (self._model,))

    def _all_in_matrix(self) -> "Matrix":
        """Returns the vectors as a matrix, read again only where they have changed."""
        from mimo.index.nearest import Matrix

        with self._turn:
            version = self._version()
            if self._matrix is None or self._matrix[0] != version:
                rows = self._all()
                matrix = Matrix([name for name, _ in rows], [vector for _, vector in rows])
                self._matrix = (version, matrix)
            return self._matrix[1]

    def _version(self) -> object:
        """Returns a value that changes whenever the file does."""
        return self._run(
            lambda c: (c.execute("PRAGMA data_version").fetchone()[0], c.total_changes)
        )

    def _write(self, change: Callable[[sqlite3.Connection], object]) -> None:
        def in_transaction(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                change(connection)

        self._run(in_transaction)

    def _run(self, operation: Callable[[sqlite3.Connection], _T]) -> _T:
        """Returns what `operation` does, on an empty file where ours is damaged or gone."""
        with self._turn, translated(self._folder):
            try:
                return operation(self._connection)
            except sqlite3.DatabaseError as error:
                damaged = is_damaged(error)
                if not damaged and not is_gone(error):
                    raise
                self._replace(above=self._number if damaged else -1)
                return operation(self._connection)

    def _replace(self, above: int) -> None:
        self._connection.close()
        self._matrix = self._graph = None
        self._connection, self._number = open_newest(self._folder, self._model, above=above)


def _chunks(names: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yields `names` in lists of at most `_CHUNK`."""
    rest = iter(names)
    while chunk := list(islice(rest, _CHUNK)):
        yield chunk
