"""The vectors of one model, named by hashes of their texts, in an SQLite file of their own."""

import errno
import math
import os
import re
import sqlite3
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from heapq import nsmallest
from operator import mul
from pathlib import Path
from sqlite3 import Connection
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar
from zlib import crc32

from mimo import disk
from mimo.errors import StorageFailed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EXACT = 100_000
"""Up to this number of vectors, a search compares every one."""

NUMPY_PAYS = 8_000
"""The number of cosines that take about as long in plain Python as importing numpy."""

_CHUNK = 500
"""The number of names in one query; SQLite allows about a thousand."""

_SQUARE = 127 * 127

_BLOCK = 1024
"""Rows at a time: 1 MB of float32 fits the cache, and is too little for BLAS to use threads."""

_CANDIDATES = 256
"""The number of candidates that a search of the graph keeps; 64, the default, finds 91 %."""

_NAME = re.compile(r"vectors(?:-([1-9][0-9]{0,8}))?\.db")

_TABLES = """
    meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    vectors (name BLOB PRIMARY KEY, vector BLOB NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID
"""

# Another process may have emptied the file for another model since it was opened.
_OURS = "(SELECT value FROM meta WHERE name = 'model') = ?"

_T = TypeVar("_T")

_Row = tuple[bytes, bytes, int]
"""A name, its vector, and the checksum of both."""


class Vectors:
    """The vectors of one model, which processes and threads can use at the same time."""

    def __init__(self, folder: Path | None, model: str) -> None:
        """Open the file in `folder`, or in memory for None; vectors of another model are removed.

        Raises `StorageFailed` if the folder can't be written.
        """
        self._folder = folder
        self._model = model
        self._file = VectorFile(folder, model)
        self._scans = 0
        self._graph: tuple[object, Graph] | None = None
        self._matrix: tuple[object, Matrix] | None = None

    def known(self, names: Iterable[bytes]) -> set[bytes]:
        """Returns those of `names` (hashes of 16 bytes) that have a vector, possibly empty."""
        return {name for (name,) in self._select("name", names)}

    def get(self, names: Iterable[bytes]) -> dict[bytes, bytes]:
        """Returns the vectors of `names`, without names that have none."""
        return dict(self._sound(self._select("name, vector, checksum", names)))

    def put(self, vectors: Mapping[bytes, bytes]) -> None:
        """Stores vectors by name; a stored vector is not replaced."""
        rows = [
            (name, vector, crc32(vector, crc32(name)), self._model)
            for name, vector in sorted(vectors.items())
        ]
        insert = f"INSERT OR IGNORE INTO vectors SELECT ?, ?, ? WHERE {_OURS}"
        self._file.change(lambda connection: connection.executemany(insert, rows))

    def prune(self, keep: Collection[bytes]) -> int:
        """Removes the vectors of all names but `keep`; returns the number of removed vectors."""
        kept = frozenset(keep)
        unused = [row for row in self._rows("SELECT name FROM vectors") if row[0] not in kept]
        self._file.change(lambda c: c.executemany("DELETE FROM vectors WHERE name = ?", unused))
        return len(unused)

    @property
    def losses(self) -> int:
        """The number of times that vectors were found damaged or missing since opening."""
        return self._file.losses

    def note_loss(self) -> None:
        """Counts a loss that the caller noticed: vectors that must be stored are missing."""
        self._file.note_loss()

    def verify(self) -> None:
        """Removes every vector whose checksum does not match."""
        self._sound(self._rows("SELECT name, vector, checksum FROM vectors"))

    def count(self) -> int:
        """Returns the number of vectors."""
        return int(self._rows("SELECT count(*) FROM vectors")[0][0])

    def size(self) -> int:
        """Returns the size of the file and its journal in bytes; 0 in memory."""
        if self._folder is None:
            return 0
        return sum(path.stat().st_size for path in self._folder.glob("vectors*.db*"))

    def nearest(self, query: bytes, k: int) -> list[tuple[bytes, float]]:
        """Returns the names and cosines of the `k` vectors nearest to `query`, nearest first.

        All vectors are compared, unless `build_graph` was called since they last changed. Equally
        near ones are in the order of their names.
        """
        if not query:
            return []
        if graph := self._by_graph():
            return self._nearest_by_graph(graph, query, k)
        self._scans += 1
        # A process that scans twice runs long enough for numpy and the matrix to pay off.
        if self._scans > 1 or numpy_pays(self.count()):
            best = self._all_in_matrix().nearest(query, k)
        else:
            product = products_with(query)
            scored = ((-product(vector), name) for name, vector in self._all())
            best = [(name, -negative) for negative, name in nsmallest(k, scored)]
        return [(name, clipped(product)) for name, product in best]

    def among(self, query: bytes, names: Iterable[bytes], k: int) -> list[tuple[bytes, float]]:
        """Returns the names and cosines of the `k` of `names` nearest to `query`, nearest first."""
        if not query:
            return []
        self._scans += 1
        if self._scans > 1 and not self._by_graph():
            best = self._all_in_matrix().among(query, names, k)
            return [(name, clipped(product)) for name, product in best]
        vectors = {name: vector for name, vector in self.get(names).items() if vector}
        scored = zip(cosines(query, list(vectors.values())), vectors, strict=True)
        near = nsmallest(k, scored, key=lambda pair: (-pair[0], pair[1]))
        return [(name, cosine) for cosine, name in near]

    def build_graph(self) -> bool:
        """Builds or updates an approximate index if there are more vectors than `EXACT`.

        Returns whether `nearest` uses it until the next change. For the thread of a long-running
        process: 100,000 new vectors take 20 s.
        """
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
        """Returns the approximate index if it has every vector."""
        return self._graph[1] if self._graph and self._graph[0] == self._file.version() else None

    def _nearest_by_graph(self, graph: "Graph", query: bytes, k: int) -> list[tuple[bytes, float]]:
        product = products_with(query)
        vectors = self.get(graph.nearest(query, k))
        scored = nsmallest(k, ((-product(vector), name) for name, vector in vectors.items()))
        return [(name, clipped(-negative)) for negative, name in scored]

    def _select(self, columns: str, names: Iterable[bytes]) -> Iterator[Any]:
        """Yields the rows of those of `names` that have a vector."""
        wanted = list(names)
        for start in range(0, len(wanted), _CHUNK):
            chunk = wanted[start : start + _CHUNK]
            marks = ",".join("?" * len(chunk))
            query = f"SELECT {columns} FROM vectors WHERE name IN ({marks}) AND {_OURS}"
            yield from self._rows(query, (*chunk, self._model))

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._file.run(lambda connection: connection.execute(query, values).fetchall())

    def _all(self) -> list[tuple[bytes, bytes]]:
        """Returns all names and vectors that are not empty, in the order of the names."""
        query = (
            "SELECT name, vector, checksum FROM vectors"
            f" WHERE vector != x'' AND {_OURS} ORDER BY name"
        )
        return self._sound(self._rows(query, (self._model,)))

    def _sound(self, rows: Iterable[_Row]) -> list[tuple[bytes, bytes]]:
        """Returns the names and vectors whose checksum matches, and removes the others."""
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
        """Returns the vectors as a matrix, read again only if they have changed."""
        version = self._file.version()
        if self._matrix is not None and self._matrix[0] == version:
            return self._matrix[1]
        rows = self._all()
        matrix = Matrix([name for name, _ in rows], [vector for _, vector in rows])
        self._matrix = (version, matrix)
        return matrix


class VectorFile:
    """The newest file of a folder, or a database in memory; replaced if it is damaged."""

    def __init__(self, folder: Path | None, model: str) -> None:
        """Open or create the file. A file with another model's vectors is emptied.

        Raises `StorageFailed` if the folder can't be written.
        """
        self._folder = folder
        self._model = model
        self._turn = RLock()
        self._openings = 0
        self._path: Path | None = None
        self.losses = 0
        """The number of times that vectors were found damaged and removed."""
        with _translated(folder):
            self._open()

    def run(self, operation: Callable[[Connection], _T]) -> _T:
        """Returns the result of `operation`, on an empty file if this one is damaged or removed."""
        with self._turn, _translated(self._folder):
            # SQLite would go on writing to a removed file, which no other process sees.
            if self._inode() != self._opened_inode:
                self.close()
                self._open()
            try:
                return operation(self._connection)
            except sqlite3.DatabaseError as error:
                if not _is_damaged(error):
                    raise
                self.close()
                self._open(above=self._number)
                self.losses += 1
                return operation(self._connection)

    def change(self, operation: Callable[[Connection], object]) -> None:
        """Runs `operation` in a transaction."""

        def in_transaction(connection: Connection) -> None:
            with _transaction(connection):
                operation(connection)

        self.run(in_transaction)

    def note_loss(self) -> None:
        """Counts a loss that a caller noticed, and replaces the file if its structure is damaged.

        SQLite looks up a key without checking the order of pages; only a check of the whole file
        reveals a page at the wrong place.
        """
        self.losses += 1
        with self._turn:
            (verdict,) = self.run(lambda c: c.execute("PRAGMA integrity_check(1)").fetchone())
            if verdict != "ok":
                self.close()
                self._open(above=self._number)

    def version(self) -> object:
        """Returns a value that changes whenever the file does."""
        changed_here = self.run(lambda connection: connection.total_changes)
        changed_elsewhere = self.run(lambda c: c.execute("PRAGMA data_version").fetchone()[0])
        return self._openings, changed_here, changed_elsewhere

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    def _open(self, above: int = -1) -> None:
        """Opens the newest whole file, or a new one; files up to number `above` are damaged."""
        self._openings += 1
        folder, self._number, self._path = self._folder, 0, None
        if folder is None:
            self._connection = _connect(None, self._model)
        else:
            disk.make_folder(folder)
            self._number = max([0, above + 1, *_numbers(folder)])
            self._path = _path(folder, self._number)
            try:
                self._connection = _connect(self._path, self._model)
            except (sqlite3.DatabaseError, OSError) as error:
                if not _is_damaged(error):
                    raise
                self._number += 1
                self._path = _path(folder, self._number)
                self._connection = _connect(self._path, self._model)
            _remove_older(folder, self._number)
        self._opened_inode = self._inode()

    def _inode(self) -> int:
        """Returns the inode of the file; 0 if it is missing or in memory."""
        try:
            return self._path.stat().st_ino if self._path else 0
        except FileNotFoundError:
            return 0


def _connect(path: Path | None, model: str) -> Connection:
    """Returns a connection to a file of vectors of `model`; creates a missing file.

    Raises `sqlite3.DatabaseError` if the file is damaged.
    """
    connection = disk.connect(path)
    try:
        disk.limit_waits(connection)
        # Of two processes that create the file at once, only one can switch the mode.
        with suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        if _model_of(connection) != model:
            with _transaction(connection):
                for table in _TABLES.split(";"):
                    connection.execute(f"CREATE TABLE IF NOT EXISTS {table}")
                if _model_of(connection) != model:
                    connection.execute("DELETE FROM vectors")
                    connection.execute("INSERT OR REPLACE INTO meta VALUES ('model', ?)", (model,))
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def _model_of(connection: Connection) -> str | None:
    """Returns the model of the vectors in a file; None for an empty file."""
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'vectors'").fetchone() is None:
        return None
    row = connection.execute("SELECT value FROM meta WHERE name = 'model'").fetchone()
    return str(row[0]) if row else None


@contextmanager
def _transaction(connection: Connection) -> Iterator[None]:
    disk.begin(connection)
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.rollback()


def _is_damaged(error: sqlite3.DatabaseError | OSError) -> bool:
    """Returns whether an error means that the file is damaged, or is not a file of vectors."""
    if isinstance(error, OSError):
        return error.errno == errno.EINVAL
    code = getattr(error, "sqlite_errorcode", 0)
    return (
        code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
        or code == sqlite3.SQLITE_IOERR_SHORT_READ
        or str(error).startswith(("no such table", "no such column"))
    )


@contextmanager
def _translated(folder: Path | None) -> Iterator[None]:
    """Raises errors of SQLite and of the file system as `StorageFailed`."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StorageFailed(
            f"the vectors in `{folder}` can't be used ({error})",
            hint="check the disk's free space and the folder's permissions",
        ) from error


def _numbers(folder: Path) -> list[int]:
    matches = (_NAME.fullmatch(name) for name in os.listdir(folder))  # noqa: PTH208
    return [int(match[1] or 0) for match in matches if match]


def _path(folder: Path, number: int) -> Path:
    return folder / (f"vectors-{number}.db" if number else "vectors.db")


def _remove_older(folder: Path, number: int) -> None:
    """Removes files that a newer one has replaced, as far as possible."""
    for older in _numbers(folder):
        if older < number:
            path = _path(folder, older)
            for suffix in ("", "-wal", "-shm"):
                with suppress(OSError):
                    path.with_name(path.name + suffix).unlink()


def _sum_of_products(p: Sequence[int], q: Sequence[int]) -> int:
    return sum(map(mul, p, q))


# Python 3.12 has a function that takes half the time.
_dot: Callable[[Sequence[int], Sequence[int]], int] = getattr(math, "sumprod", _sum_of_products)


def cosine(a: bytes, b: bytes) -> float:
    """Returns the cosine of two int8 vectors, in -1..1; 0 if one of them is empty.

    Their length counts as 127, which is exact to half a percent after rounding.
    """
    return clipped(products_with(a)(b))


def cosines(query: bytes, vectors: Sequence[bytes]) -> list[float]:
    """Returns the cosine of `query` with each of `vectors`, exactly as `cosine` does."""
    if not numpy_pays(len(vectors)):
        return list(map(clipped, map(products_with(query), vectors)))
    result = [0.0] * len(vectors)
    places = [place for place, vector in enumerate(vectors) if query and vector]
    numbers = products(query, [vectors[place] for place in places])
    for place, product in zip(places, numbers, strict=True):
        result[place] = clipped(product)
    return result


def numpy_pays(count: int) -> bool:
    """Returns whether numpy is imported already, or worth importing for `count` products."""
    return "numpy" in sys.modules or count >= NUMPY_PAYS


def products_with(query: bytes) -> Callable[[bytes], int]:
    """Returns a function that computes dot products with `query`; 0 if a vector is empty."""
    if not query:
        return lambda vector: 0
    # A list holds its numbers; a view would make them again for each vector.
    numbers = list(memoryview(query).cast("b"))
    return lambda vector: _dot(numbers, memoryview(vector).cast("b")) if vector else 0


def clipped(product: int) -> float:
    """Returns the cosine for a dot product."""
    return max(-1.0, min(1.0, product / _SQUARE))


class Matrix:
    """Named vectors in one block of memory: an exact search with numpy."""

    def __init__(self, names: Sequence[bytes], vectors: Sequence[bytes]) -> None:
        """Take vectors of the same length, none of them empty."""
        self._names = names
        self._places: dict[bytes, int] = {}
        self._rows = _matrix(vectors)

    def nearest(self, query: bytes, k: int) -> list[tuple[bytes, int]]:
        """Returns the names with the `k` largest dot products with `query`, largest first.

        Of equal products, the vector that was given first comes first.
        """
        return [(self._names[place], product) for place, product in _best(query, self._rows, k)]

    def among(self, query: bytes, names: Iterable[bytes], k: int) -> list[tuple[bytes, int]]:
        """Returns the same for those of `names` that are in the matrix."""
        import numpy as np

        self._places = self._places or {name: place for place, name in enumerate(self._names)}
        wanted = (self._places.get(name, -1) for name in names)
        places = np.unique(np.fromiter(wanted, dtype=np.intp))
        places = places[places >= 0]
        best = _best(query, self._rows[places], k)
        return [(self._names[places[place]], product) for place, product in best]


def products(query: bytes, vectors: Sequence[bytes]) -> list[int]:
    """Returns the dot product of `query` with each of `vectors`, none of them empty."""
    if not vectors:
        return []
    return [int(product) for product in _products(query, _matrix(vectors)).tolist()]


def _best(query: bytes, rows: "NDArray[np.int8]", k: int) -> list[tuple[int, int]]:
    """Returns the `k` rows with the largest products, with these, largest first."""
    import numpy as np

    products = _products(query, rows)
    k = min(k, len(products))
    if k < 1:
        return []
    least = np.partition(products, -k)[-k]
    places = np.flatnonzero(products >= least)
    best = places[np.argsort(-products[places], kind="stable")][:k]
    return [(place, int(products[place])) for place in best.tolist()]


def _matrix(vectors: Sequence[bytes]) -> "NDArray[np.int8]":
    import numpy as np

    width = len(vectors[0]) if vectors else 0
    return np.frombuffer(b"".join(vectors), dtype=np.int8).reshape(len(vectors), width)


def _products(query: bytes, rows: "NDArray[np.int8]") -> "NDArray[np.float32]":
    """Returns the dot products; float32 holds them exactly, as they are below 2**24."""
    import numpy as np

    numbers = np.frombuffer(query, dtype=np.int8).astype(np.float32)
    products = np.empty(len(rows), dtype=np.float32)
    for start in range(0, len(rows), _BLOCK):
        end = start + _BLOCK
        products[start:end] = rows[start:end].astype(np.float32) @ numbers
    return products


class Graph:
    """An approximate index of many vectors (usearch), in a file beside them."""

    def __init__(self, folder: Path | None, model: str, dims: int) -> None:
        """Open the file in `folder`; start empty if there is none or it can't be read."""
        file = f"vectors-{sha256(model.encode()).hexdigest()[:12]}.usearch"
        self._path = folder / file if folder else None
        self._names: dict[int, bytes] = {}
        self._index = _load(self._path, dims) if self._path and self._path.exists() else _new(dims)

    def update(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        """Adds and removes vectors so that it has exactly `rows`, and saves changes.

        100,000 new vectors take about 20 s.
        """
        import numpy as np

        self._names = {_key(name): name for name, _ in rows}
        old = set(self._index.keys[:].tolist()) if len(self._index) else set()
        removed = old - self._names.keys()
        for key in removed:
            self._index.remove(key)
        new = {key: vector for name, vector in rows if (key := _key(name)) not in old}
        if new:
            keys = np.array(list(new), dtype=np.uint64)
            block = np.frombuffer(b"".join(new.values()), dtype=np.int8)
            self._index.add(keys, block.reshape(len(new), -1), threads=1)
        if self._path and (new or removed):
            draft = self._path.with_suffix(".draft")
            self._index.save(draft)
            draft.replace(self._path)

    def nearest(self, query: bytes, k: int) -> list[bytes]:
        """Returns the names of about the `k` nearest vectors, in no particular order."""
        import numpy as np

        matches = self._index.search(np.frombuffer(query, dtype=np.int8), k)
        return [self._names[key] for key in matches.keys.tolist() if key in self._names]


def _load(path: Path, dims: int) -> Any:
    """Returns the index in a file; an empty one if the file is damaged."""
    index = _new(dims)
    try:
        index.load(path)
    # The library does not document its exceptions for a damaged file.
    except Exception:  # noqa: BLE001
        return _new(dims)
    return index


def _new(dims: int) -> Any:
    from usearch.index import Index

    return Index(ndim=dims, metric="cos", dtype="i8", expansion_search=_CANDIDATES)


def _key(name: bytes) -> int:
    """Returns the number of a vector in the index; among a million, duplicates hardly occur."""
    return int.from_bytes(name[:8], "little")
