"""Vectors by the hash of the text that they stand for, in an SQLite file of their own."""

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
from itertools import islice
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


# The SQLite file that holds vectors: opened, made, and replaced where it is damaged.


_NAME = re.compile(r"vectors(?:-([1-9][0-9]{0,8}))?\.db")

_TABLES = """
    meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    vectors (name BLOB PRIMARY KEY, vector BLOB NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID
"""


_T = TypeVar("_T")


class VectorFile:
    """The newest file of a folder, open; None is a database in memory."""

    def __init__(self, folder: Path | None, model: str) -> None:
        """Open or make it. A file that holds another model's vectors is emptied.

        Raises `StorageFailed` where the folder can't be written.
        """
        self._folder = folder
        self._model = model
        self._turn = RLock()
        self._openings = 0
        self.losses = 0
        """How often vectors turned out to be damaged, and were dropped."""
        with _translated(folder):
            self._open()

    def run(self, operation: Callable[[Connection], _T]) -> _T:
        """Returns what `operation` does, on an empty file where ours is damaged or removed."""
        with self._turn, _translated(self._folder):
            # SQLite would go on in a file that has no name any more, and no other process sees.
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

        SQLite finds a key through pages that it does not check; only a check of all pages shows
        that some are at the wrong place.
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
        """Opens the newest file; those up to the number `above` are known to be damaged."""
        self._openings += 1
        self._connection, self._number = _open_newest(self._folder, self._model, above)
        self._opened_inode = self._inode()

    def _inode(self) -> int:
        """Returns what tells the file from another one of its name; 0 where there is none."""
        if self._folder is None:
            return 0
        try:
            return _path(self._folder, self._number).stat().st_ino
        except FileNotFoundError:
            return 0


def _open_newest(folder: Path | None, model: str, above: int) -> tuple[Connection, int]:
    """Returns a connection to the newest whole file, or to a new one, and its number."""
    if folder is None:
        return _connect(":memory:", model), 0
    disk.make_folder(folder)
    number = max([0, above + 1, *_numbers(folder)])
    try:
        connection = _connect(_path(folder, number), model)
    except (sqlite3.DatabaseError, OSError) as error:
        if not _is_damaged(error):
            raise
        number += 1
        connection = _connect(_path(folder, number), model)
    _remove_older(folder, number)
    return connection, number


def _connect(path: Path | str, model: str) -> Connection:
    """Returns a connection to a file that belongs to `model`; makes the file where there is none.

    Raises `sqlite3.DatabaseError` where it is damaged.
    """
    if isinstance(path, Path):
        disk.check(path)
        disk.make_database(path)
    connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        disk.limit_waits(connection)
        # Two processes that make the file at once can't both switch; one of them is enough.
        with suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        if _model_of(connection) != model:
            with _transaction(connection):
                _give_to(connection, model)
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def _model_of(connection: Connection) -> str | None:
    """Returns the model whose vectors a file holds; None for an empty file."""
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'vectors'").fetchone() is None:
        return None
    row = connection.execute("SELECT value FROM meta WHERE name = 'model'").fetchone()
    return str(row[0]) if row else None


def _give_to(connection: Connection, model: str) -> None:
    for table in _TABLES.split(";"):
        connection.execute(f"CREATE TABLE IF NOT EXISTS {table}")
    if _model_of(connection) != model:
        connection.execute("DELETE FROM vectors")
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('model', ?)", (model,))


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
    """Returns whether the file is damaged or foreign."""
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
    """Turns the errors of SQLite and of the file system into ours."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StorageFailed(
            f"the vectors in `{folder}` can't be used ({error})",
            hint="check the disk's free space and the folder's permissions",
        ) from error


def _numbers(folder: Path) -> list[int]:
    found = (_NAME.fullmatch(name) for name in os.listdir(folder))  # noqa: PTH208
    return [int(match[1] or 0) for match in found if match]


def _path(folder: Path, number: int) -> Path:
    return folder / (f"vectors-{number}.db" if number else "vectors.db")


def _remove_older(folder: Path, number: int) -> None:
    """Removes files that a newer one has replaced; best effort."""
    for older in _numbers(folder):
        if older < number:
            path = _path(folder, older)
            for suffix in ("", "-wal", "-shm"):
                with suppress(OSError):
                    path.with_name(path.name + suffix).unlink()


# Which of many int8 vectors are nearest to a query's: an exact scan with numpy.


_BLOCK = 1024
"""Rows at a time: 1 MB of float32 stays in the cache, and is too little for BLAS to use threads."""


class Matrix:
    """Vectors in one block of memory, each with its name."""

    def __init__(self, names: Sequence[bytes], vectors: Sequence[bytes]) -> None:
        """Take the vectors, all of one length and none of them empty."""
        self._names = names
        self._places: dict[bytes, int] = {}
        self._rows = _matrix(vectors)

    def nearest(self, query: bytes, k: int) -> list[tuple[bytes, int]]:
        """Returns the `k` names of the largest dot products with `query`, largest first.

        Where products are equal, the vector that was given first stands first.
        """
        return [(self._names[place], product) for place, product in _best(query, self._rows, k)]

    def among(self, query: bytes, names: Iterable[bytes], k: int) -> list[tuple[bytes, int]]:
        """Returns the same of those of `names` that are here."""
        import numpy as np

        self._places = self._places or {name: place for place, name in enumerate(self._names)}
        found = (self._places.get(name, -1) for name in names)
        places = np.unique(np.fromiter(found, dtype=np.intp))
        places = places[places >= 0]
        best = _best(query, self._rows[places], k)
        return [(self._names[places[place]], product) for place, product in best]


def products(query: bytes, vectors: Sequence[bytes]) -> list[int]:
    """Returns the dot product of `query` with each of `vectors`, none of them empty."""
    if not vectors:
        return []
    return [int(product) for product in _products(query, _matrix(vectors)).tolist()]


def _best(query: bytes, rows: "NDArray[np.int8]", k: int) -> list[tuple[int, int]]:
    """Returns the numbers of the `k` rows with the largest products, and these, largest first."""
    import numpy as np

    found = _products(query, rows)
    k = min(k, len(found))
    if k < 1:
        return []
    least = np.partition(found, -k)[-k]
    places = np.flatnonzero(found >= least)
    best = places[np.argsort(-found[places], kind="stable")][:k]
    return [(place, int(found[place])) for place in best.tolist()]


def _matrix(vectors: Sequence[bytes]) -> "NDArray[np.int8]":
    import numpy as np

    width = len(vectors[0]) if vectors else 0
    return np.frombuffer(b"".join(vectors), dtype=np.int8).reshape(len(vectors), width)


def _products(query: bytes, rows: "NDArray[np.int8]") -> "NDArray[np.float32]":
    """Returns the dot products; float32 holds them exactly, for they stay below 2**24."""
    import numpy as np

    numbers = np.frombuffer(query, dtype=np.int8).astype(np.float32)
    found = np.empty(len(rows), dtype=np.float32)
    for start in range(0, len(rows), _BLOCK):
        found[start : start + _BLOCK] = rows[start : start + _BLOCK].astype(np.float32) @ numbers
    return found


# Cosines of int8 vectors of length 127: plain Python for some, numpy for many.


def _sum_of_products(p: Sequence[int], q: Sequence[int]) -> int:
    return sum(map(mul, p, q))


# From Python 3.12 on, in half the time.
_dot: Callable[[Sequence[int], Sequence[int]], int] = getattr(math, "sumprod", _sum_of_products)

_SQUARE = 127 * 127

NUMPY_PAYS = 8_000
"""So many cosines in plain Python take about as long as importing numpy."""


def cosine(a: bytes, b: bytes) -> float:
    """Returns the cosine of two int8 vectors, in -1..1; 0 where either is empty.

    Each is taken to have length 127, which rounding leaves true within half a percent.
    """
    return clipped(products_with(a)(b))


def cosines(query: bytes, vectors: Sequence[bytes]) -> list[float]:
    """Returns the cosine of `query` with each of `vectors`, the very numbers of `cosine`."""
    if not numpy_pays(len(vectors)):
        return list(map(clipped, map(products_with(query), vectors)))

    found = [0.0] * len(vectors)
    places = [place for place, vector in enumerate(vectors) if query and vector]
    numbers = products(query, [vectors[place] for place in places])
    for place, product in zip(places, numbers, strict=True):
        found[place] = clipped(product)
    return found


def numpy_pays(count: int) -> bool:
    """Returns whether numpy is there already, or worth importing for `count` products."""
    return "numpy" in sys.modules or count >= NUMPY_PAYS


def products_with(query: bytes) -> Callable[[bytes], int]:
    """Returns the function from a vector to its dot product with `query`; 0 where one is empty."""
    if not query:
        return lambda vector: 0
    # A list, because its numbers exist already, while a view makes them again for each vector.
    numbers = list(memoryview(query).cast("b"))
    return lambda vector: _dot(numbers, memoryview(vector).cast("b")) if vector else 0


def clipped(product: int) -> float:
    """Returns the cosine that a dot product stands for."""
    return max(-1.0, min(1.0, product / _SQUARE))


# An approximate index of very many vectors (usearch), for a process that lives long.


EXACT = 100_000
"""Up to so many vectors every one is compared."""

_CANDIDATES = 256
"""How many the search keeps in view; 64, the default, finds 91 %."""


class Graph:
    """Finds probable neighbours; kept beside the vectors in a file of the model's."""

    def __init__(self, folder: Path | None, model: str, dims: int) -> None:
        """Open the file in `folder`, if there is one that can be read."""
        self._path = folder / _name(model) if folder else None
        self._names: dict[int, bytes] = {}
        self._index = _load(self._path, dims) if self._path and self._path.exists() else _new(dims)

    def update(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        """Makes it hold exactly the named vectors in `rows`, and saves it where that changed it.

        100,000 new vectors take about 20 s.
        """
        import numpy as np

        self._names = {_key(name): name for name, _ in rows}
        held = set(self._index.keys[:].tolist()) if len(self._index) else set()
        gone = held - self._names.keys()
        for key in gone:
            self._index.remove(key)
        new = {key: vector for name, vector in rows if (key := _key(name)) not in held}
        if new:
            keys = np.array(list(new), dtype=np.uint64)
            block = np.frombuffer(b"".join(new.values()), dtype=np.int8)
            self._index.add(keys, block.reshape(len(new), -1), threads=1)
        if new or gone:
            self._save()

    def nearest(self, query: bytes, k: int) -> list[bytes]:
        """Returns the names of about the `k` nearest vectors, in no particular order."""
        import numpy as np

        found = self._index.search(np.frombuffer(query, dtype=np.int8), k)
        return [self._names[key] for key in found.keys.tolist() if key in self._names]

    def _save(self) -> None:
        if self._path is None:
            return
        draft = self._path.with_suffix(".draft")
        self._index.save(draft)
        draft.replace(self._path)


def _load(path: Path, dims: int) -> Any:
    """Returns the graph in a file; an empty one where the file is damaged."""
    index = _new(dims)
    try:
        index.load(path)
    # What the library raises for a damaged file is not laid down.
    except Exception:  # noqa: BLE001
        return _new(dims)
    return index


def _new(dims: int) -> Any:
    from usearch.index import Index

    return Index(ndim=dims, metric="cos", dtype="i8", expansion_search=_CANDIDATES)


def _name(model: str) -> str:
    return f"vectors-{sha256(model.encode()).hexdigest()[:12]}.usearch"


def _key(name: bytes) -> int:
    """Returns the number that a vector has in the graph; two of a million hardly ever share one."""
    return int.from_bytes(name[:8], "little")


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
