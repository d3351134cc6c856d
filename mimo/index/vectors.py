"""Vectors by the hash of the text that they stand for, in an SQLite file of their own."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from mimo.index.cosine import clipped, cosines, numpy_pays, products_with
from mimo.index.vector_file import VectorFile

if TYPE_CHECKING:
    from mimo.index.graph import Graph
    from mimo.index.nearest import Matrix

_CHUNK = 500
"""Names in one query; SQLite takes some thousand."""

# Another process may have emptied the file for another model since we opened it.
_OURS = "(SELECT value FROM meta WHERE name = 'model') = ?"


_Row = tuple[bytes, bytes, int]
"""The name, the vector and the checksum of both, as the file has them."""


class Vectors:
    """The vectors of one model; other processes and threads may use them at the same time."""

    def __init__(self, folder: Path | None, model: str) -> None:
        """Open the file in `folder`, or one in memory for None; another model's is emptied.

        Raises `StorageFailed` where the folder can't be written.
        """
        self._folder = folder
        self._model = model
        self._file = VectorFile(folder, model)
        self._scans = 0
        self._graph: tuple[object, Graph] | None = None
        self._matrix: tuple[object, Matrix] | None = None

    @classmethod
    def open(cls, folder: Path | None, model: str) -> "Vectors":
        """Returns the vectors in `folder`, as the constructor does."""
        return cls(folder, model)

    def known(self, names: Iterable[bytes]) -> set[bytes]:
        """Returns those of `names` (hashes of 16 bytes) that have a vector, be it empty."""
        return {row[0] for row in self._select("name", names)}

    def get(self, names: Iterable[bytes]) -> dict[bytes, bytes]:
        """Returns the vectors of those of `names` that have one."""
        return dict(self._sound(self._select("name, vector, checksum", names)))

    def put(self, vectors: Mapping[bytes, bytes]) -> None:
        """Keeps vectors by name; a name that has one already keeps it."""
        rows = [
            (name, vector, crc32(vector, crc32(name)), self._model)
            for name, vector in sorted(vectors.items())
        ]
        insert = f"INSERT OR IGNORE INTO vectors SELECT ?, ?, ? WHERE {_OURS}"
        self._file.change(lambda connection: connection.executemany(insert, rows))

    def prune(self, keep: Collection[bytes]) -> int:
        """Removes the vectors of all names but `keep`; returns how many there were."""
        kept = frozenset(keep)
        gone = [row for row in self._rows("SELECT name FROM vectors", ()) if row[0] not in kept]
        self._file.change(lambda c: c.executemany("DELETE FROM vectors WHERE name = ?", gone))
        return len(gone)

    @property
    def losses(self) -> int:
        """How often vectors turned out to be damaged or missing since this was opened."""
        return self._file.losses

    def note_loss(self) -> None:
        """Counts a loss that the caller noticed: vectors that must be here are not."""
        self._file.note_loss()

    def verify(self) -> None:
        """Drops every vector whose checksum does not match."""
        self._sound(self._rows("SELECT name, vector, checksum FROM vectors", ()))

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
        if graph := self._by_graph():
            return self._nearest_by_graph(graph, query, k)
        self._scans += 1
        # Whoever scans twice lives long enough for numpy and the matrix to pay.
        if self._scans > 1 or numpy_pays(self.count()):
            found = self._all_in_matrix().nearest(query, k)
        else:
            product = products_with(query)
            scored = ((-product(vector), name) for name, vector in self._all())
            found = [(name, -negative) for negative, name in nsmallest(k, scored)]
        return [(name, clipped(product)) for name, product in found]

    def among(self, query: bytes, names: Iterable[bytes], k: int) -> list[tuple[bytes, float]]:
        """Returns the names and cosines of the `k` of `names` nearest to `query`, nearest first."""
        if not query:
            return []
        self._scans += 1
        if self._scans > 1 and not self._by_graph():
            best = self._all_in_matrix().among(query, names, k)
            return [(name, clipped(product)) for name, product in best]
        known = {name: vector for name, vector in self.get(names).items() if vector}
        scored = zip(cosines(query, list(known.values())), known, strict=True)
        return [(name, cosine) for cosine, name in nsmallest(k, scored, key=_nearest_first)]

    def build_graph(self) -> bool:
        """Returns whether `nearest` goes by an approximate index from now on until a change.

        It is made, or brought up to date, where there are more vectors than a scan is quick for.
        For a process that lives long, in a thread of its own: 100,000 new vectors take 20 s.
        """
        from mimo.index.graph import EXACT, Graph

        version = self._file.version()
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
        self._file.close()

    def _by_graph(self) -> "Graph | None":
        """Returns the approximate index, where there is one that knows every vector."""
        return self._graph[1] if self._graph and self._graph[0] == self._file.version() else None

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
        return self._file.run(lambda connection: connection.execute(query, values).fetchall())

    def _all(self) -> list[tuple[bytes, bytes]]:
        """Returns every name and vector but the empty ones, in the order of the names."""
        query = (
            "SELECT name, vector, checksum FROM vectors"
            f" WHERE vector != x'' AND {_OURS} ORDER BY name"
        )
        return self._sound(self._rows(query, (self._model,)))

    def _sound(self, rows: Iterable[_Row]) -> list[tuple[bytes, bytes]]:
        """Returns the names and vectors whose checksum matches, and drops the others."""
        rows = list(rows)
        sound = [
            (name, vector)
            for name, vector, checksum in rows
            if type(vector) is bytes and crc32(vector, crc32(name)) == checksum
        ]
        if len(sound) < len(rows):
            self.note_loss()
            kept = {name for name, _ in sound}
            damaged = [(name,) for name, *_ in rows if name not in kept]
            self._file.change(
                lambda c: c.executemany("DELETE FROM vectors WHERE name = ?", damaged)
            )
        return sound

    def _all_in_matrix(self) -> "Matrix":
        """Returns the vectors as a matrix, read again only where they have changed."""
        from mimo.index.nearest import Matrix

        version = self._file.version()
        if (kept := self._matrix) is not None and kept[0] == version:
            return kept[1]
        rows = self._all()
        matrix = Matrix([name for name, _ in rows], [vector for _, vector in rows])
        self._matrix = (version, matrix)
        return matrix


def _nearest_first(scored: tuple[float, bytes]) -> tuple[float, bytes]:
    cosine, name = scored
    return -cosine, name


def _chunks(names: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yields `names` in lists of at most `_CHUNK`."""
    rest = iter(names)
    while chunk := list(islice(rest, _CHUNK)):
        yield chunk
