"""The vectors of one model, named by hashes of their texts, in an SQLite file of their own."""

import errno
import math
import sqlite3
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from heapq import nsmallest
from operator import mul
from pathlib import Path
from sqlite3 import Connection
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar
from zlib import crc32

from mimo import disk
from mimo.errors import StorageFailed
from mimo.index.database import generations, is_damage, path_of, remove
from mimo.index.schema import marks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NUMPY_PAYS = 8_000
"""The number of cosines that take about as long in plain Python as importing numpy."""

_CHUNK = 500
"""The number of names in one query; SQLite allows about a thousand."""

LENGTH = 127
"""The length of a static vector."""

_BLOCK = 1024
"""Rows at a time: 1 MB of float32 fits the cache, and is too little for BLAS to use threads."""

_TABLES = """
    meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    vectors (name BLOB PRIMARY KEY, vector BLOB NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID
"""

# Another process may have emptied the file for another model since it was opened.
_OURS = "(SELECT value FROM meta WHERE name = 'model') = ?"

_T = TypeVar("_T")


class Vectors:
    """The vectors of one model, which processes and threads can use at the same time.

    They are in the newest file of a folder, or in memory. A damaged file is replaced.
    """

    def __init__(
        self, folder: Path | None, model: str, name: str = "vectors", length: int = LENGTH
    ) -> None:
        """Open the file `name` in `folder`, or in memory for None; removes another model's vectors.

        `length` is the length of a vector. Raises `StorageFailed` if the folder can't be written.
        """
        self._folder = folder
        self._model = model
        self._name = name
        self._length = length
        self._turn = RLock()
        self._openings = 0
        self._path: Path | None = None
        self._scans = 0
        self._matrix: tuple[object, Matrix] | None = None
        self.losses = 0
        """The number of times that vectors were found damaged or missing since opening."""
        with _translated(folder):
            self._open()

    def known(self, names: Iterable[bytes]) -> set[bytes]:
        """Returns those of `names` (hashes of 16 bytes) that have a vector, possibly empty."""
        return {name for (name,) in self._select("name", names)}

    def get(self, names: Iterable[bytes]) -> dict[bytes, bytes]:
        """Returns the vectors of `names`, without names that have none."""
        return dict(self._sound(self._select("name, vector, checksum", names)))

    def put(self, vectors: Mapping[bytes, bytes], wait: float = disk.WAIT_SECONDS) -> None:
        """Stores vectors by name; a stored vector is not replaced.

        Raises `StorageFailed` if another process is writing for more than `wait` seconds.
        """
        rows = [
            (name, vector, crc32(vector, crc32(name)), self._model)
            for name, vector in sorted(vectors.items())
        ]
        insert = f"INSERT OR IGNORE INTO vectors SELECT ?, ?, ? WHERE {_OURS}"
        self._change(lambda connection: connection.executemany(insert, rows), wait)

    def prune(self, keep: Collection[bytes]) -> None:
        """Removes the vectors of all names but `keep`."""
        kept = frozenset(keep)
        self._remove(name for (name,) in self._rows("SELECT name FROM vectors") if name not in kept)

    def note_loss(self) -> None:
        """Counts vectors that a caller misses, and replaces the file if its structure is damaged.

        SQLite looks up a key without checking the order of pages; only a check of the whole file
        reveals a page at the wrong place.
        """
        self.losses += 1
        with self._turn:
            (verdict,) = self._run(lambda c: c.execute("PRAGMA integrity_check(1)").fetchone())
            if verdict != "ok":
                self._open(above=self._number)

    def verify(self) -> None:
        """Removes every vector whose checksum does not match."""
        self._sound(self._rows("SELECT name, vector, checksum FROM vectors"))

    def count(self) -> int:
        """Returns the number of vectors."""
        return int(self._rows("SELECT count(*) FROM vectors")[0][0])

    def nearest(self, query: bytes, k: int) -> list[tuple[bytes, float]]:
        """Returns the names and cosines of the `k` vectors nearest to `query`, nearest first.

        Equally near ones are in the order of their names.
        """
        if not query:
            return []
        self._scans += 1
        # A process that scans twice runs long enough for numpy and the matrix to pay off.
        if self._scans > 1 or numpy_pays(self.count()):
            return self._all_in_matrix().nearest(query, k)
        return _nearest(query, self.all(), k, self._length)

    def among(self, query: bytes, names: Iterable[bytes], k: int) -> list[tuple[bytes, float]]:
        """Returns the names and cosines of the `k` of `names` nearest to `query`, nearest first."""
        if not query:
            return []
        self._scans += 1
        if self._scans > 1:
            return self._all_in_matrix().nearest(query, k, names)
        return _nearest(query, self.get(names).items(), k, self._length)

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    def _select(self, columns: str, names: Iterable[bytes]) -> Iterator[Any]:
        """Yields the rows of those of `names` that have a vector."""
        wanted = list(names)
        for start in range(0, len(wanted), _CHUNK):
            chunk = wanted[start : start + _CHUNK]
            query = f"SELECT {columns} FROM vectors WHERE name IN ({marks(chunk)}) AND {_OURS}"
            yield from self._rows(query, (*chunk, self._model))

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._run(lambda connection: connection.execute(query, values).fetchall())

    def all(self) -> list[tuple[bytes, bytes]]:
        """Returns all names and vectors that are not empty, in the order of the names."""
        query = (
            "SELECT name, vector, checksum FROM vectors"
            f" WHERE vector != x'' AND {_OURS} ORDER BY name"
        )
        return self._sound(self._rows(query, (self._model,)))

    def _sound(self, rows: Iterable[tuple[bytes, bytes, int]]) -> list[tuple[bytes, bytes]]:
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
            self._remove(name for name, *_ in rows if name not in kept)
        return sound

    def _remove(self, names: Iterable[bytes]) -> None:
        rows = [(name,) for name in names]
        self._change(lambda c: c.executemany("DELETE FROM vectors WHERE name = ?", rows))

    def _all_in_matrix(self) -> "Matrix":
        """Returns the vectors as a matrix, read again only if they have changed."""
        version = self.version()
        if self._matrix is None or self._matrix[0] != version:
            self._matrix = (version, Matrix(self.all(), self._length))
        return self._matrix[1]

    def _run(self, operation: Callable[[Connection], _T]) -> _T:
        """Returns the result of `operation`, on an empty file if this one is damaged or removed."""
        with self._turn, _translated(self._folder):
            # SQLite would go on writing to a removed file, which no other process sees.
            if self._inode() != self._opened_inode:
                self._open()
            try:
                return operation(self._connection)
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                self._open(above=self._number)
                self.losses += 1
                return operation(self._connection)

    def _change(
        self, operation: Callable[[Connection], object], wait: float = disk.WAIT_SECONDS
    ) -> None:
        """Runs `operation` in a transaction."""

        def in_transaction(connection: Connection) -> None:
            with _transaction(connection, wait):
                operation(connection)

        self._run(in_transaction)

    def version(self) -> object:
        """Returns a value that changes whenever the file does."""
        changed_here = self._run(lambda connection: connection.total_changes)
        changed_elsewhere = self._run(lambda c: c.execute("PRAGMA data_version").fetchone()[0])
        return self._openings, changed_here, changed_elsewhere

    def _open(self, above: int = -1) -> None:
        """Opens the newest whole file, or a new one; files up to number `above` are damaged."""
        if self._openings:
            self.close()
        self._openings += 1
        folder, self._number, self._path = self._folder, 0, None
        if folder is None:
            self._connection = _connect(None, self._model)
        else:
            disk.make_folder(folder)
            self._number = max([0, above + 1, *generations(folder, self._name)])
            self._path = path_of(folder, self._number, self._name)
            try:
                self._connection = _connect(self._path, self._model)
            except (sqlite3.DatabaseError, OSError) as error:
                if isinstance(error, OSError):
                    damaged = error.errno == errno.EINVAL  # It is not a regular file.
                else:
                    damaged = is_damage(error)
                if not damaged:
                    raise
                self._number += 1
                self._path = path_of(folder, self._number, self._name)
                self._connection = _connect(self._path, self._model)
            for number in generations(folder, self._name):
                if number < self._number:
                    remove(path_of(folder, number, self._name))
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
def _transaction(connection: Connection, wait: float = disk.WAIT_SECONDS) -> Iterator[None]:
    disk.begin(connection, wait)
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.rollback()


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


# Cosines of int8 vectors of one length: exact to half a percent after rounding.


def cosines(query: bytes, vectors: Sequence[bytes], length: int = LENGTH) -> list[float]:
    """Returns the cosine of `query` with each of `vectors`, in -1..1; 0 for an empty vector."""
    if not query:
        return [0.0] * len(vectors)
    if numpy_pays(len(vectors)):
        whole = [vector for vector in vectors if vector]
        values = iter(products(query, rows_of(whole)).tolist() if whole else ())
        return [_clipped(next(values), length) if vector else 0.0 for vector in vectors]
    # A list holds its numbers; a view would make them again for each vector.
    numbers = list(memoryview(query).cast("b"))
    return [
        _clipped(_dot(numbers, memoryview(vector).cast("b")), length) if vector else 0.0
        for vector in vectors
    ]


def _sum_of_products(p: Sequence[int], q: Sequence[int]) -> int:
    return sum(map(mul, p, q))


# Python 3.12 has a function that takes half the time.
_dot: Callable[[Sequence[int], Sequence[int]], int] = getattr(math, "sumprod", _sum_of_products)


def numpy_pays(count: int) -> bool:
    """Returns whether numpy is imported already, or worth importing for `count` products."""
    return "numpy" in sys.modules or count >= NUMPY_PAYS


def _clipped(product: float, length: int) -> float:
    """Returns the cosine for a dot product."""
    return max(-1.0, min(1.0, product / length**2))


def _nearest(
    query: bytes, vectors: Collection[tuple[bytes, bytes]], k: int, length: int
) -> list[tuple[bytes, float]]:
    """Returns the names and cosines of the `k` of named vectors nearest to `query`."""
    whole = {name: vector for name, vector in vectors if vector}
    scored = zip(cosines(query, list(whole.values()), length), whole, strict=True)
    near = nsmallest(k, scored, key=lambda pair: (-pair[0], pair[1]))
    return [(name, cosine) for cosine, name in near]


class Matrix:
    """Named vectors in one block of memory: an exact search with numpy."""

    def __init__(self, vectors: Sequence[tuple[bytes, bytes]], length: int = LENGTH) -> None:
        """Take names with vectors of that length, none of them empty."""
        self._length = length
        # A damaged file may return a name twice.
        self._names = [name for name, _ in vectors]
        self._places = {name: place for place, name in enumerate(self._names)}
        self._rows = rows_of([vector for _, vector in vectors])

    def nearest(
        self, query: bytes, k: int, names: Iterable[bytes] | None = None
    ) -> list[tuple[bytes, float]]:
        """Returns the names and cosines of the `k` vectors, of `names` if given, nearest first.

        Of equally near ones, the vector that was given first comes first.
        """
        import numpy as np

        rows, places = self._rows, None
        if names is not None:
            wanted = (self._places.get(name, -1) for name in names)
            places = np.unique(np.fromiter(wanted, dtype=np.intp))
            places = places[places >= 0]
            rows = rows[places]
        values = products(query, rows)
        k = min(k, len(values))
        if k < 1:
            return []
        candidates = np.flatnonzero(values >= np.partition(values, -k)[-k])
        best = candidates[np.argsort(-values[candidates], kind="stable")][:k]
        named = best if places is None else places[best]
        return [
            (self._names[place], _clipped(value, self._length))
            for place, value in zip(named.tolist(), values[best].tolist(), strict=True)
        ]


def rows_of(vectors: Sequence[bytes]) -> "NDArray[np.int8]":
    """Returns vectors of one length as the rows of an array."""
    import numpy as np

    width = len(vectors[0]) if vectors else 0
    return np.frombuffer(b"".join(vectors), dtype=np.int8).reshape(len(vectors), width)


def products(query: bytes, rows: "NDArray[np.int8]") -> "NDArray[np.float32]":
    """Returns the dot product of each row; float32 holds them exactly: they are below 2**24."""
    import numpy as np

    numbers = np.frombuffer(query, dtype=np.int8).astype(np.float32)
    values = np.empty(len(rows), dtype=np.float32)
    for start in range(0, len(rows), _BLOCK):
        end = start + _BLOCK
        values[start:end] = rows[start:end].astype(np.float32) @ numbers
    return values
