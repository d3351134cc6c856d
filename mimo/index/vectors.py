"""The vectors of one model, named by hashes of their texts.

A database has the place of each name, and a file beside it (`matrix`) the vectors themselves: a
write appends to both. The database decides: rows that it does not count do not exist. If a process
ends between the two, the next one writes over its rows.
"""

from __future__ import annotations

import errno
import math
import os
import sqlite3
import sys
from _thread import RLock
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from heapq import nsmallest
from importlib import import_module
from itertools import islice
from operator import mul
from pathlib import Path
from sqlite3 import Connection
from typing import TypeVar

from mimo import disk
from mimo.errors import StorageFailed
from mimo.frozen import NamedTuple
from mimo.index.database import generations, is_damage, path_of, remove
from mimo.index.matrix import MARK, Matrix, Rows, RowsDamaged, is_mark, products, rows_of
from mimo.index.schema import marks, portions

NUMPY_PAYS = 8_000
"""The number of cosines that take about as long in plain Python as importing numpy."""

LENGTH = 127
"""The length of a static vector."""

_LAYOUT = 2
"""Rises with every change of the tables or of the rows; a file of another layout is replaced."""

_TABLES = """
    state (
        model TEXT NOT NULL, file TEXT NOT NULL, width INTEGER NOT NULL,
        rows INTEGER NOT NULL, empty INTEGER NOT NULL
    );
    places (name BLOB PRIMARY KEY, place INTEGER NOT NULL) WITHOUT ROWID
"""

_MOST_PLACES = 50_000
"""The number of places that are kept in memory, some 5 MB."""

_BATCH = 4096
"""The number of rows that are copied at a time."""

_EMPTY = -1
"""The place of a vector that is empty: its text has no token of the model."""

_T = TypeVar("_T")


class State(NamedTuple):
    """The row of `state`: what the database counts."""

    model: str
    file: str
    """The mark of the file of rows; empty before the first vector."""
    width: int
    rows: int
    empty: int
    """The number of names whose vector is empty."""


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
        self.folder = folder
        self._model = model
        self._name = name
        self._length = length
        self._turn = RLock()
        self._openings = 0
        self._path: Path | None = None
        self._scans = 0
        self._rows: Rows | None = None
        self.losses = 0
        """The number of times that vectors were found damaged or missing since opening."""
        with _translated(folder):
            self._open()

    def known(self, names: Iterable[bytes]) -> set[bytes]:
        """Returns those of `names` (hashes of 16 bytes) that have a vector, possibly empty."""
        wanted = list(names)
        return set(self._run(_Content.places, wanted))

    def get(self, names: Iterable[bytes]) -> dict[bytes, bytes]:
        """Returns the vectors of `names`, without names that have none."""
        wanted = list(names)
        vectors, damaged = self._run(_Content.vectors, wanted)
        self._forget(damaged)
        return vectors

    def cosines(self, query: bytes, names: Collection[bytes]) -> dict[bytes, float]:
        """Returns the cosine of `query` with the vector of each of `names` that has one."""
        if self._rows and self._rows.is_read_often and "numpy" in sys.modules:
            near: dict[bytes, float]
            near, damaged = self._run(_Content.cosines, query, list(names), self._length)
            self._forget(damaged)
            return near
        stored = self.get(names)
        values = cosines(query, list(stored.values()), self._length)
        return dict(zip(stored, values, strict=True))

    def put(self, vectors: Mapping[bytes, bytes], wait: float = disk.WAIT_SECONDS) -> None:
        """Stores vectors by name; a stored vector is not replaced.

        Raises `StorageFailed` if another process is writing for more than `wait` seconds.
        """
        if vectors:
            self._run(self._append, vectors, wait=wait)

    def prune(self, keep: Collection[bytes]) -> None:
        """Removes the vectors of all names but `keep`."""
        kept = frozenset(keep)
        self._run(self._keep, kept.__contains__, wait=disk.WAIT_SECONDS)

    def verify(self) -> None:
        """Removes every vector whose checksum does not match."""
        self._run(self._keep, lambda _: True, wait=disk.WAIT_SECONDS)

    def note_loss(self) -> None:
        """Counts vectors that a caller misses, and replaces the file if its structure is damaged.

        SQLite looks up a key without checking the order of pages; only a check of the whole file
        reveals a page at the wrong place.
        """
        self.losses += 1
        with self._turn:
            if not self._run(_Content.is_intact):
                self._open(above=self._number)

    def count(self) -> int:
        """Returns the number of vectors."""
        state = self.state()
        return state.rows + state.empty

    def state(self) -> State:
        """Returns the counts, which change whenever a vector is added or removed."""
        return self._run(_Content.counts)

    def empty(self) -> list[bytes]:
        """Returns the names of the empty vectors."""
        return self._run(_Content.empty)

    def matrix(self) -> Matrix | None:
        """Returns the rows of all vectors that are not empty; None if there are none."""
        return self._run(_Content.matrix)

    def nearest(self, query: bytes, k: int) -> list[tuple[bytes, float]]:
        """Returns the names and cosines of the `k` vectors nearest to `query`, nearest first.

        Equally near ones are in the order of their names.
        """
        if not query:
            return []
        self._scans += 1
        # A process that scans twice runs long enough for importing numpy to pay off.
        if self._scans > 1 or numpy_pays(self.count()):
            return self._in_matrix(query, k)
        return _nearest(query, self.all(), k, self._length)

    def among(self, query: bytes, names: Iterable[bytes], k: int) -> list[tuple[bytes, float]]:
        """Returns the names and cosines of the `k` of `names` nearest to `query`, nearest first."""
        if not query:
            return []
        self._scans += 1
        if self._scans > 1:
            return self._in_matrix(query, k, list(names))
        return _nearest(query, self.get(names).items(), k, self._length)

    def all(self) -> list[tuple[bytes, bytes]]:
        """Returns all names and vectors that are not empty."""
        read = self._run(lambda content: list(content.all()))
        sound = [row for row in read if row]
        if len(sound) < len(read):
            self.note_loss()
            self.verify()
        return sound

    def close(self) -> None:
        """Closes the files."""
        self._connection.close()
        if self._rows:
            self._rows.close()

    # Comparing.

    def _in_matrix(
        self, query: bytes, k: int, names: Sequence[bytes] | None = None
    ) -> list[tuple[bytes, float]]:
        """Returns the vectors nearest to `query`, of `names` if given, by numpy."""
        import numpy as np

        matrix = self.matrix()
        if matrix is None:
            return []
        places = None
        if names is not None:
            located = matrix.places(rows_of(names)).tolist()
            places = np.array(sorted({place for place in located if place >= 0}), np.intp)
        near = matrix.nearest(query, k, places)
        sound = self._rows.places if self._rows else {}  # These were checked.
        unsure = [(place, name) for place, name, _ in near if sound.get(name) != place]
        self._forget([name for place, name in unsure if not matrix.is_sound(place)])
        return [(name, _clipped(product, self._length)) for _, name, product in near]

    # Writing, within a transaction.

    def _append(self, content: _Content, vectors: Mapping[bytes, bytes]) -> None:
        """Writes the vectors whose names are new."""
        state, rows = content.state, content.rows
        if not content.is_ours:
            return
        names = sorted(vectors)
        stored = content.places(names)
        added = [(name, vectors[name]) for name in names if name not in stored]
        full = [(name, vector) for name, vector in added if vector]
        if full and rows is None:
            rows = self._new_rows(len(full[0][1]))
        count = rows.append(state.rows, full) if rows else 0
        places = iter(range(state.rows, count))
        content.insert((name, next(places) if vector else _EMPTY) for name, vector in added)
        content.store(rows, count, state.empty + len(added) - len(full))
        self._rows = rows

    def _keep(self, content: _Content, keeps: Callable[[bytes], bool]) -> None:
        """Writes the sound rows that are kept to another file, unless those are all."""
        state, rows = content.state, content.rows
        if not content.is_ours:
            return
        empty = [name for name in content.empty() if keeps(name)]
        if len(empty) == state.empty and all(name and keeps(name) for name in content.located()):
            return
        content.connection.execute("DELETE FROM places")
        content.insert((name, _EMPTY) for name in empty)
        kept, count = None, 0
        if rows:
            kept = self._new_rows(rows.width)
            sound = (row for row in rows.all(state.rows) if row and keeps(row[0]))
            while batch := dict(islice(sound, _BATCH)):
                for name in content.places(list(batch)):  # A damaged file may have a name twice.
                    del batch[name]
                content.insert(zip(batch, range(count, count + len(batch)), strict=True))
                count = kept.append(count, batch.items())
        content.store(kept, count, len(empty))
        self._rows = kept

    def _new_rows(self, width: int) -> Rows:
        """Returns a new file of rows, and removes those that the database does not count."""
        if self.folder:
            current = self._rows.path if self._rows else None
            for path in self.folder.glob(f"{self._name}-*.rows"):
                if path != current:
                    with suppress(OSError):
                        path.unlink()
        rows = Rows(self.folder, self._name, os.urandom(MARK).hex(), width)
        rows.create()
        return rows

    def _forget(self, damaged: Collection[bytes]) -> None:
        """Removes vectors whose checksum does not match, if there are any."""
        if damaged:
            self.note_loss()
            self.verify()

    # The database.

    def _run(
        self,
        operation: Callable[..., _T],
        *args: object,
        wait: float | None = None,
    ) -> _T:
        """Returns the result of `operation`, all of whose reads see the same state.

        It may write if it is given a time to `wait` for other processes. If the file is damaged or
        removed, the operation runs on an empty one.
        """
        with self._turn, _translated(self.folder):
            # SQLite would go on writing to a removed file, which no other process sees.
            if self._inode() != self._opened_inode:
                self._open()
            attempts = 0
            while True:
                try:
                    return self._within(operation, args, wait)
                except sqlite3.DatabaseError as error:
                    attempts += 1
                    if not is_damage(error) or attempts > 2:
                        raise
                    # Another process may have replaced the rows since their mark was read.
                    if attempts == 2 or not isinstance(error, RowsDamaged):
                        self._open(above=self._number)
                        self.losses += 1
                        attempts = 2

    def _within(
        self, operation: Callable[..., _T], args: Sequence[object], wait: float | None
    ) -> _T:
        """Runs an operation in one transaction."""
        connection = self._connection
        if wait is None:
            connection.execute("BEGIN")
        else:
            disk.begin(connection, wait)
        try:
            content = self._content(connection)
            try:
                result = operation(content, *args)
                if wait is not None:
                    connection.execute("COMMIT")
            except BaseException:
                self._rows = content.rows
                raise
            if content.rows and content.rows is not self._rows:
                content.rows.remove()
            return result
        finally:
            if connection.in_transaction:
                connection.rollback()

    def _content(self, connection: Connection) -> _Content:
        """Returns what the database counts; nothing if it is now that of another model."""
        state = _state(connection)
        if state.model != self._model:
            self._rows = None
            return _Content(connection, State(state.model, "", 0, 0, 0), None, is_ours=False)
        if not state.file:
            self._rows = None
        elif self._rows is None or self._rows.mark != state.file:
            self._rows = Rows(self.folder, self._name, state.file, state.width)
        return _Content(connection, state, self._rows)

    def _open(self, above: int = -1) -> None:
        """Opens the newest whole file, or a new one; files up to number `above` are damaged."""
        if self._openings:
            self.close()
        self._openings += 1
        self._rows = None
        folder, self._number, self._path = self.folder, 0, None
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


class _Content(NamedTuple):
    """The vectors as one transaction sees them."""

    connection: Connection
    state: State
    rows: Rows | None
    is_ours: bool = True
    """False if another process has emptied the file for another model."""

    def counts(self) -> State:
        """Returns the counts."""
        return self.state

    def places(self, names: Sequence[bytes]) -> dict[bytes, int]:
        """Returns the places of those of `names` that have a vector, possibly empty."""
        places: dict[bytes, int] = {}
        if not self.is_ours:
            return places
        for chunk in portions(names):
            query = f"SELECT name, place FROM places WHERE name IN ({marks(chunk)})"
            places.update(self.connection.execute(query, chunk))
        return places

    def vectors(self, names: Sequence[bytes]) -> tuple[dict[bytes, bytes], list[bytes]]:
        """Returns the vectors of those of `names` that have one, and the damaged ones."""
        places = self.places(names)
        vectors = {name: b"" for name, place in places.items() if place == _EMPTY}
        full = [name for name in places if name not in vectors]
        if self.rows and full:
            rows = self.rows.get([places[name] for name in full], self.state.rows)
            vectors.update(
                row for name, row in zip(full, rows, strict=True) if row and row[0] == name
            )
        return vectors, [name for name in full if name not in vectors]

    def cosines(
        self, query: bytes, names: Sequence[bytes], length: int
    ) -> tuple[dict[bytes, float], list[bytes]]:
        """Returns the cosines of the vectors of `names`, and the names of the damaged ones.

        Places of sound rows are kept as long as the file of rows is: each row is checked once.
        """
        import numpy as np

        if self.rows is None or not self.is_ours:
            return {}, []
        kept, count = self.rows.places, self.state.rows
        if len(kept) > _MOST_PLACES:
            kept.clear()
        near: dict[bytes, float] = {}
        damaged: list[bytes] = []
        if missing := [name for name in names if name not in kept]:
            vectors, damaged = self.vectors(missing)
            near = {name: 0.0 for name, vector in vectors.items() if not vector}
            places = self.places([name for name, vector in vectors.items() if vector])
            kept.update(places)
        # Another thread may already see more rows.
        counted = {name: place for name in names if (place := kept.get(name, count)) < count}
        if counted:
            rows = self.rows.matrix(count).vectors[np.fromiter(counted.values(), np.intp)]
            values = products(query, rows).astype("d") / length**2
            near.update(zip(counted, values.clip(-1.0, 1.0).tolist(), strict=True))
        return near, damaged

    def is_intact(self) -> bool:
        """Returns whether the structure of the database is whole."""
        verdict = self.connection.execute("PRAGMA integrity_check(1)").fetchone()
        return bool(verdict == ("ok",))

    def empty(self) -> list[bytes]:
        """Returns the names of the empty vectors."""
        if not self.state.empty:
            return []
        selected = self.connection.execute("SELECT name FROM places WHERE place = ?", (_EMPTY,))
        return [name for (name,) in selected]

    def located(self) -> Iterator[bytes]:
        """Yields the name of each row; empty for one that is damaged or that nothing leads to."""
        rows = enumerate(self.rows.all(self.state.rows)) if self.rows else iter(())
        while batch := list(islice(rows, _BATCH)):
            places = self.places([row[0] for _, row in batch if row])
            for place, row in batch:
                yield row[0] if row and places.get(row[0]) == place else b""

    def all(self) -> Iterator[tuple[bytes, bytes] | None]:
        """Yields the name and vector of each row, None for a damaged one."""
        return self.rows.all(self.state.rows) if self.rows else iter(())

    def matrix(self) -> Matrix | None:
        """Returns the rows as arrays."""
        return self.rows.matrix(self.state.rows) if self.rows and self.state.rows else None

    def insert(self, places: Iterable[tuple[bytes, int]]) -> None:
        """Stores the places of names."""
        self.connection.executemany("INSERT INTO places VALUES (?, ?)", places)

    def store(self, rows: Rows | None, count: int, empty: int) -> None:
        """Stores the file of rows, and the counts."""
        self.connection.execute(
            "UPDATE state SET file = ?, width = ?, rows = ?, empty = ?",
            (rows.mark if rows else "", rows.width if rows else 0, count, empty),
        )


def _connect(path: Path | None, model: str) -> Connection:
    """Returns a connection to a file of vectors of `model`; creates a missing file.

    Raises `sqlite3.DatabaseError` if the file is damaged or has another layout.
    """
    connection = disk.connect(path)
    try:
        disk.limit_waits(connection)
        # Of two processes that create the file at once, only one can switch the mode.
        with suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        if not _is_made(connection) or _state(connection).model != model:
            with _transaction(connection):
                if not _is_made(connection):
                    for table in _TABLES.split(";"):
                        connection.execute(f"CREATE TABLE {table}")
                    connection.execute(f"PRAGMA user_version = {_LAYOUT}")
                elif _state(connection).model != model:
                    connection.execute("DELETE FROM places")
                    connection.execute("DELETE FROM state")
                if connection.execute("SELECT 1 FROM state").fetchone() is None:
                    connection.execute("INSERT INTO state VALUES (?, '', 0, 0, 0)", (model,))
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def _is_made(connection: Connection) -> bool:
    """Returns whether a file has its tables. Raises `sqlite3.DatabaseError` for another layout."""
    (layout,) = connection.execute("PRAGMA user_version").fetchone()
    if layout == _LAYOUT:
        return True
    if connection.execute("SELECT 1 FROM sqlite_schema").fetchone():
        raise sqlite3.DatabaseError("another layout")
    return False


def _state(connection: Connection) -> State:
    """Returns what a database counts. Raises `RowsDamaged` for values that mind never writes."""
    row = connection.execute("SELECT model, file, width, rows, empty FROM state").fetchone()
    if row is None or list(map(type, row)) != [str, str, int, int, int]:
        raise RowsDamaged("the counts are damaged")
    state = State(*row)
    if state.file and not (is_mark(state.file) and state.width > 0):
        raise RowsDamaged("the counts are damaged")
    return state


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
        if not whole:
            return [0.0] * len(vectors)
        near = products(query, rows_of(whole).view("b")).astype("d") / length**2
        values: list[float] = near.clip(-1.0, 1.0).tolist()
        if len(whole) == len(vectors):
            return values
        rest = iter(values)
        return [next(rest) if vector else 0.0 for vector in vectors]
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


def numpy_in_turn(folder: Path | None) -> bool:
    """Returns whether numpy is imported, which it is by now unless another process is doing that.

    It takes as long as several searches, and the servers of several clients may come to it at once:
    of those with vectors in the same folder, one at a time imports it.
    """
    if "numpy" in sys.modules:
        return True
    import fcntl

    with ExitStack() as held:
        try:
            if folder:
                turn = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
                held.callback(os.close, turn)
                fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass  # The file system has no locks.
        try:
            import_module("numpy")
        except ImportError:
            return False
    return True


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
