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
from typing import TypeVar

from mimo import disk, sqlite
from mimo.errors import StorageFailed
from mimo.index.content import (
    BATCH,
    EMPTY,
    Content,
    State,
    checked,
    connect,
    generations,
    is_damage,
    is_idle,
    is_later,
    path_of,
    remove,
    state_of,
)
from mimo.index.matrix import (
    MARK,
    NO_ROWS,
    Matrix,
    Rows,
    RowsDamaged,
    products,
    rows_of,
)
from mimo.sqlite import Connection, is_busy

NUMPY_PAYS = 8_000
"""The number of cosines that take about as long in plain Python as importing numpy."""

LENGTH = 127
"""The length of a static vector."""

_COMPARING_SECONDS = 0.2
"""The time that a comparison of rows waits for a process that appends some."""

_T = TypeVar("_T")


class Vectors:
    """The vectors of one model, which processes and threads can use at the same time.

    They are in the newest file of a folder, or in memory. A damaged file is replaced. One that a
    later version of mind made is left as it is, and another is used beside it.
    """

    def __init__(
        self,
        folder: Path | None,
        model: str,
        name: str = "vectors",
        length: int = LENGTH,
        *,
        owner: str = "",
    ) -> None:
        """Opens the file `name` in `folder`, or in memory for None; removes those of another model.

        So are those of another `owner`, the user's secret, which may have come with a clone.
        `length` is the length of a vector. Raises `StorageFailed` if the folder can't be written.
        """
        self.folder = folder
        self._model = (
            f"{model} {disk.sha256(f'{model} {owner}'.encode()).hex()}" if owner else model
        )
        self._name = name
        self._length = length
        self._turn = RLock()
        self._openings = 0
        self._is_closed = False
        self._connection: Connection
        self._path: Path | None = None
        self._scans = 0
        self._rows: Rows | None = None
        self._has_later = False
        """True if the folder also has vectors of a later version of mind."""
        self.losses = 0
        """The number of times that vectors were found damaged or missing since opening."""
        with self._translated():
            self._open()

    def known(self, names: Iterable[bytes]) -> set[bytes]:
        """Returns those of `names` (hashes of 16 bytes) that have a vector, possibly empty."""
        wanted = list(names)
        return set(self._run(Content.places, wanted))

    def get(self, names: Iterable[bytes]) -> dict[bytes, bytes]:
        """Returns the vectors of `names`, without names that have none."""
        wanted = list(names)
        vectors, damaged = self._run(Content.vectors, wanted)
        self._forget(damaged)
        return vectors

    def cosines(self, query: bytes, names: Collection[bytes]) -> dict[bytes, float]:
        """Returns the cosine of `query` with the vector of each of `names` that has one."""
        if self._rows and self._rows.is_read_often and "numpy" in sys.modules:
            near, damaged = self._compared(Content.cosines, query, list(names), self._length)
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
            if not self._run(Content.is_intact):
                self._open(above=self._number)

    def count(self) -> int:
        """Returns the number of vectors."""
        state = self.state()
        return state.rows + state.empty

    def state(self) -> State:
        """Returns the counts, which change whenever a vector is added or removed."""
        return self._run(Content.counts)

    def compared_state(self) -> State:
        """Returns the same, after a comparison of the rows with their checksum if it is due."""
        return self._compared(Content.counts)

    def empty(self) -> list[bytes]:
        """Returns the names of the empty vectors."""
        return self._run(Content.empty)

    def matrix(self) -> Matrix | None:
        """Returns the rows of all vectors that are not empty; None if there are none."""
        return self._compared(Content.matrix)

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
        """Closes the files; a thread that still uses them opens them for each operation."""
        with self._turn:
            self._is_closed = True
            self._connection.close()
            if self._rows:
                self._rows.close()

    # Comparing.

    def _compared(self, operation: Callable[..., _T], *args: object) -> _T:
        """Returns the result of an operation that uses rows without their own checksums.

        If it is due, they are compared with that of all rows, and damaged ones are removed.
        """
        result, span = self._run(lambda content: (operation(content, *args), content.due()))
        opened = self._openings
        is_sound = span is None or self._are_sound()
        if self._openings == opened:
            if is_sound:
                return result
            self.note_loss()
            self.verify()
        # The result is of the removed rows, or of a file that was replaced, such as a cut one.
        return self._run(operation, *args)

    def _are_sound(self) -> bool:
        try:
            return self._run(Content.compare, wait=_COMPARING_SECONDS)
        except StorageFailed:  # Another process is writing, or the disk is full.
            return self._run(Content.compare, False)

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

    def _append(self, content: Content, vectors: Mapping[bytes, bytes]) -> None:
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
        count, checksum, check = 0, NO_ROWS, content.check
        if rows:
            is_left = rows.stamp() == check.stamp
            count, checksum = rows.append(state.rows, state.checksum, full)
            if not state.file:
                check = checked(rows)
            elif is_left:  # Otherwise the next comparison must notice the change by others.
                check = check._replace(stamp=rows.stamp())
        places = iter(range(state.rows, count))
        content.insert((name, next(places) if vector else EMPTY) for name, vector in added)
        content.store(rows, count, checksum, state.empty + len(added) - len(full), check)
        self._rows = rows

    def _keep(self, content: Content, keeps: Callable[[bytes], bool]) -> None:
        """Writes the sound rows that are kept to another file, unless those are all."""
        state, rows = content.state, content.rows
        if not content.is_ours:
            return
        empty = [name for name in content.empty() if keeps(name)]
        is_whole = rows is None or rows.checksum(0, state.rows, NO_ROWS) == state.checksum
        is_whole = is_whole and len(empty) == state.empty
        if is_whole and all(name and keeps(name) for name in content.located()):
            return
        content.connection.execute("DELETE FROM places")
        content.insert((name, EMPTY) for name in empty)
        kept, count, checksum = None, 0, NO_ROWS
        if rows:
            kept = self._new_rows(rows.width)
            sound = (row for row in rows.all(state.rows) if row and keeps(row[0]))
            while batch := dict(islice(sound, BATCH)):
                for name in content.places(list(batch)):  # A damaged file may have a name twice.
                    del batch[name]
                content.insert(zip(batch, range(count, count + len(batch)), strict=True))
                count, checksum = kept.append(count, checksum, batch.items())
        check = checked(kept) if kept else content.check
        content.store(kept, count, checksum, len(empty), check)
        self._rows = kept

    def _new_rows(self, width: int) -> Rows:
        """Returns a new file of rows, and removes those that the database does not count."""
        if self.folder and not self._has_later:  # Some may be those of the later version.
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
        with self._turn, self._translated():
            # SQLite would go on writing to a removed file, which no other process sees.
            if self._is_closed or self._inode() != self._opened_inode:
                self._open()
            attempts = 0
            try:
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
            finally:
                if self._is_closed:
                    self.close()

    def _within(
        self, operation: Callable[..., _T], args: Sequence[object], wait: float | None
    ) -> _T:
        """Runs an operation in one transaction."""
        connection = self._connection
        if wait is None:
            connection.execute("BEGIN")
        else:
            sqlite.begin(connection, wait)
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

    def _content(self, connection: Connection) -> Content:
        """Returns what the database counts; nothing if it is now that of another model."""
        state, check = state_of(connection)
        if state.model != self._model:
            self._rows = None
            state = State(state.model, "", 0, 0, 0, NO_ROWS)
            return Content(connection, state, check, None, is_ours=False)
        if not state.file:
            self._rows = None
        elif self._rows is None or self._rows.mark != state.file:
            self._rows = Rows(self.folder, self._name, state.file, state.width)
        return Content(connection, state, check, self._rows)

    def _open(self, above: int = -1) -> None:
        """Opens the newest usable file, or a new one; files up to number `above` are damaged."""
        if self._openings:
            self._connection.close()
            if self._rows:
                self._rows.close()
        self._openings += 1
        self._rows = None
        folder, self._number, self._path = self.folder, 0, None
        if folder is None:
            self._connection = connect(None, self._model)
        else:
            disk.make_folder(folder)
            numbers = generations(folder, self._name)
            new = max([above, *numbers]) + 1
            for number in (*(n for n in reversed(numbers) if n > above), new):
                self._number, self._path = number, path_of(folder, number, self._name)
                try:
                    self._connection = connect(self._path, self._model)
                    break
                except (sqlite3.DatabaseError, OSError) as error:
                    if number == new or not _is_unusable(error):
                        raise
            self._tidy(folder, numbers)
        self._opened_inode = self._inode()

    def _tidy(self, folder: Path, numbers: Iterable[int]) -> None:
        """Removes the other generations, except those of a later version of mind."""
        self._has_later = False
        for number in numbers:
            path = path_of(folder, number, self._name)
            if number == self._number:
                continue
            try:
                is_kept = is_later(path)
            except (sqlite3.DatabaseError, OSError) as error:
                is_kept = not _is_unusable(error)  # It can't be read now.
            if is_kept:
                self._has_later = True
            elif number < self._number or is_idle(path):
                remove(path)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raises errors of SQLite and of the file system as `StorageFailed`."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            if self._path and isinstance(error, sqlite3.Error) and is_busy(error):
                raise disk.busy(self._path) from error
            raise StorageFailed(
                f"the vectors in `{self.folder}` can't be used ({error})",
                hint="check the disk's free space and the folder's permissions",
            ) from error

    def _inode(self) -> int:
        """Returns the inode of the file; 0 if it is missing or in memory."""
        try:
            return self._path.stat().st_ino if self._path else 0
        except FileNotFoundError:
            return 0


def _is_unusable(error: sqlite3.DatabaseError | OSError) -> bool:
    """Returns whether a file is damaged, of another layout, or not a regular file."""
    if isinstance(error, OSError):
        return error.errno == errno.EINVAL
    return is_damage(error)


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
