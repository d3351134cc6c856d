"""The database of vectors: what it counts, and the rows that it leads to, within one transaction.

It has the place of each name, a checksum of all rows, and the stamp of their file as mind left it.
Operations that use rows without their own checksums compare them with it first, at the same times
as `pages` compares those of an index.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path

from mimo import disk, sqlite
from mimo.frozen import NamedTuple
from mimo.index.matrix import NO_ROWS, Matrix, Rows, RowsDamaged, is_mark, products
from mimo.index.schema import marks, portions
from mimo.sqlite import Connection
from mimo.text.clean import compiled

_NAME = r"([a-z]+)(?:-([1-9][0-9]{0,8}))?\.db"

_SMALL = 1_000_000
"""The size in bytes up to which each process compares a whole file once."""

_PERIOD_NS, _SOON_NS = 3_600_000_000_000, 60_000_000_000
"""After this time, a file is compared again, in portions of `_PORTION` bytes, each one `_SOON_NS`
after the last one."""

_PORTION = 64_000_000

LAYOUT = 3
"""Rises with every change of the tables or of the rows."""

_TABLES = """
    state (
        model TEXT NOT NULL, file TEXT NOT NULL, width INTEGER NOT NULL,
        rows INTEGER NOT NULL, empty INTEGER NOT NULL, checksum INTEGER NOT NULL,
        stamp TEXT NOT NULL, checked_ns INTEGER NOT NULL, done INTEGER NOT NULL,
        part INTEGER NOT NULL
    );
    places (name BLOB PRIMARY KEY, place INTEGER NOT NULL) WITHOUT ROWID
"""

_MOST_PLACES = 50_000
"""The number of places that are kept in memory, some 5 MB."""

BATCH = 4096
"""The number of rows that are copied at a time."""

EMPTY = -1
"""The place of a vector that is empty: its text has no token of the model."""
_NOWHERE = -2
"""A place without a row: the vector is damaged."""


class Span(NamedTuple):
    """The pages or rows of a file that are compared with checksums now."""

    first: int
    """The number of those before them."""
    end: int
    checked_ns: int
    """The time of the comparison, which is recorded if they are sound."""
    done: int
    """The number of those compared then; 0 if the comparison is complete."""


def due(
    count: int, size: int, checked_ns: int, done: int, *, is_changed: bool, is_first: bool
) -> Span | None:
    """Returns which of the pages or rows must be compared now, None for none.

    Each has `size` bytes. `checked_ns` and `done` are of the last comparison; `is_changed` is true
    if the file has another stamp, `is_first` if this process has not compared it.
    """
    now = time.time_ns()
    if is_changed:
        return Span(0, count, now, 0)
    if 0 <= now - checked_ns < _PERIOD_NS:
        is_due = is_first and count * size <= _SMALL
        return Span(0, count, checked_ns, done) if is_due else None
    end = done + max(1, _PORTION // size)
    if end < count:
        return Span(done, end, now - _PERIOD_NS + _SOON_NS, end)
    return Span(done, count, now, 0)


_SURROUNDINGS = frozenset(
    (
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_ABORT,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_TOOBIG,
    )
)
"""Errors of SQLite that the system causes; any other error means that the file is damaged."""


def generations(folder: Path, stem: str = "index") -> list[int]:
    """Returns the numbers of the generations of a database in a folder, lowest first."""
    try:
        matches = [compiled(_NAME).fullmatch(name) for name in os.listdir(folder)]  # noqa: PTH208
    except OSError:
        return []
    return sorted(int(match[2] or 0) for match in matches if match and match[1] == stem)


def path_of(folder: Path, number: int, stem: str = "index") -> Path:
    """Returns the file of a generation."""
    return folder / (f"{stem}-{number}.db" if number else f"{stem}.db")


def remove(path: Path) -> None:
    """Removes a database and the files that SQLite keeps beside it, as far as possible."""
    for suffix in ("", "-journal", "-wal", "-shm", "-sums"):
        with suppress(OSError):
            beside(path, suffix).unlink()


def beside(path: Path, suffix: str) -> Path:
    """Returns the path of a file that SQLite keeps beside a database, such as its `-wal`."""
    return path.with_name(path.name + suffix)


def _code(error: sqlite3.Error) -> int:
    """Returns the primary result code of an SQLite error; 0 if it has none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_damage(error: sqlite3.DatabaseError) -> bool:
    """Returns whether an error means that the file is damaged, not that the system failed."""
    return not isinstance(error, sqlite3.ProgrammingError) and _code(error) not in _SURROUNDINGS


def is_idle(path: Path) -> bool:
    """Returns whether no other process has the database open."""
    try:
        with closing(sqlite.connect(path, mode="rw")) as connection:
            return bool(connection.execute("PRAGMA journal_mode = DELETE").fetchone())
    except (sqlite3.OperationalError, OSError):
        return False
    except sqlite3.DatabaseError:
        return True


class State(NamedTuple):
    """The counts of the database, in its table `state`."""

    model: str
    file: str
    """The mark of the file of rows; empty before the first vector."""
    width: int
    rows: int
    empty: int
    """The number of names whose vector is empty."""
    checksum: int
    """That of all rows."""


class Check(NamedTuple):
    """The last comparison of the rows with their checksum, in the same table."""

    stamp: str
    """The stamp of the file of rows as mind left it."""
    checked_ns: int
    done: int
    """The number of rows that it has compared; 0 if it is complete."""
    part: int
    """The checksum of these."""


_COLUMNS = ", ".join((*State._fields, *Check._fields))


class Content(NamedTuple):
    """The vectors as one transaction sees them."""

    connection: Connection
    state: State
    check: Check
    rows: Rows | None
    is_ours: bool = True
    """False if another process has emptied the file for another model."""

    def counts(self) -> State:
        """Returns the counts."""
        return self.state

    def places(self, names: Sequence[bytes]) -> dict[bytes, int]:
        """Returns the places of those of `names` that have a vector, possibly empty.

        A place of another type, which SQLite reads from a damaged page, becomes `_NOWHERE`.
        """
        places: dict[bytes, int] = {}
        if not self.is_ours:
            return places
        for chunk in portions(names):
            query = f"SELECT name, place FROM places WHERE name IN ({marks(chunk)})"
            for name, place in self.connection.execute(query, chunk):
                places[name] = place if type(place) is int else _NOWHERE
        return places

    def vectors(self, names: Sequence[bytes]) -> tuple[dict[bytes, bytes], list[bytes]]:
        """Returns the vectors of those of `names` that have one, and the damaged ones."""
        places = self.places(names)
        vectors = {name: b"" for name, place in places.items() if place == EMPTY}
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
        selected = self.connection.execute("SELECT name FROM places WHERE place = ?", (EMPTY,))
        return [name for (name,) in selected]

    def located(self) -> Iterator[bytes]:
        """Yields the name of each row; empty for one that is damaged or that nothing leads to."""
        rows = enumerate(self.rows.all(self.state.rows)) if self.rows else iter(())
        while batch := list(islice(rows, BATCH)):
            places = self.places([row[0] for _, row in batch if row])
            for place, row in batch:
                yield row[0] if row and places.get(row[0]) == place else b""

    def all(self) -> Iterator[tuple[bytes, bytes] | None]:
        """Yields the name and vector of each row, None for a damaged one."""
        return self.rows.all(self.state.rows) if self.rows else iter(())

    def matrix(self) -> Matrix | None:
        """Returns the rows as arrays."""
        return self.rows.matrix(self.state.rows) if self.rows and self.state.rows else None

    def due(self) -> Span | None:
        """Returns which rows must be compared now, None for none."""
        rows, check, count = self.rows, self.check, self.state.rows
        if rows is None or rows.path is None or not count:
            return None
        return due(
            count,
            rows.size,
            check.checked_ns,
            check.done,
            is_changed=rows.stamp() != check.stamp,
            is_first=not rows.is_compared,
        )

    def compare(self, records: bool = True) -> bool:
        """Returns whether the rows that must be compared now have their checksum; records it.

        Damage of a portion shows in that of all rows, with the last portion.
        """
        rows, state, check, span = self.rows, self.state, self.check, self.due()
        if rows is None or span is None:
            return True
        stamp = rows.stamp()
        value = rows.checksum(span.first, span.end, check.part if span.first else NO_ROWS)
        if span.end == state.rows and value != state.checksum:
            return False
        rows.is_compared = True
        after = Check(stamp, span.checked_ns, span.done, value if span.done else NO_ROWS)
        if records and after != check:
            self.store(rows, state.rows, state.checksum, state.empty, after)
        return True

    def insert(self, places: Iterable[tuple[bytes, int]]) -> None:
        """Stores the places of names."""
        self.connection.executemany("INSERT INTO places VALUES (?, ?)", places)

    def store(self, rows: Rows | None, count: int, checksum: int, empty: int, check: Check) -> None:
        """Stores the file of rows, and the counts."""
        mark, width = (rows.mark, rows.width) if rows else ("", 0)
        row = (*State(self.state.model, mark, width, count, empty, checksum), *check)
        self.connection.execute(f"UPDATE state SET ({_COLUMNS}) = ({marks(row)})", row)


class OtherLayout(sqlite3.DatabaseError):
    """Another version of mind made the file."""


def connect(path: Path | None, model: str) -> Connection:
    """Returns a connection to a file of vectors of `model`; creates a missing file.

    Raises `OtherLayout`, another `sqlite3.DatabaseError` if the file is damaged, and `OSError` if
    it or its log is not a regular file.
    """
    connection = sqlite.connect(path, wait=disk.WAIT_SECONDS)
    try:
        if _layout(connection) > LAYOUT:  # Not even its mode may change.
            raise OtherLayout("a later layout")
        # Of two processes that create the file at once, only one can switch the mode.
        with suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        if not _is_made(connection) or state_of(connection)[0].model != model:
            with _transaction(connection):
                if not _is_made(connection):
                    for table in _TABLES.split(";"):
                        connection.execute(f"CREATE TABLE {table}")
                    connection.execute(f"PRAGMA user_version = {LAYOUT}")
                elif state_of(connection)[0].model != model:
                    connection.execute("DELETE FROM places")
                    connection.execute("DELETE FROM state")
                if connection.execute("SELECT 1 FROM state").fetchone() is None:
                    row = (*State(model, "", 0, 0, 0, NO_ROWS), *Check("", 0, 0, NO_ROWS))
                    connection.execute(f"INSERT INTO state VALUES ({marks(row)})", row)
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def _is_made(connection: Connection) -> bool:
    """Returns whether a file has its tables. Raises `OtherLayout`."""
    if _layout(connection) == LAYOUT:
        return True
    if not connection.execute("SELECT 1 FROM sqlite_schema").fetchone():
        return False
    # Another process may have made the tables in between.
    if _layout(connection) != LAYOUT:
        raise OtherLayout("another layout")
    return True


def _layout(connection: Connection) -> int:
    """Returns the layout of a file; 0 if it is new."""
    (layout,) = connection.execute("PRAGMA user_version").fetchone()
    return int(layout)


def is_later(path: Path) -> bool:
    """Returns whether a later version of mind made a file.

    Raises `sqlite3.DatabaseError` and `OSError` if its layout can't be read.
    """
    with closing(sqlite.connect(path, mode="rw")) as opened:
        return _layout(opened) > LAYOUT


def checked(rows: Rows) -> Check:
    """Returns the comparison of rows that were just written to a new file."""
    return Check(rows.stamp(), time.time_ns(), 0, NO_ROWS)


def state_of(connection: Connection) -> tuple[State, Check]:
    """Returns what a database counts. Raises `RowsDamaged` for values that mind never writes."""
    row = connection.execute(f"SELECT {_COLUMNS} FROM state").fetchone()
    counts = len(State._fields)
    if row is None or list(map(type, row)) != [str, str, *[int] * 4, str, *[int] * 3]:
        raise RowsDamaged("the counts are damaged")
    state, check = State(*row[:counts]), Check(*row[counts:])
    is_possible = min(state.rows, check.done) >= 0
    if state.file and not (is_mark(state.file) and state.width > 0 and is_possible):
        raise RowsDamaged("the counts are damaged")
    return state, check


@contextmanager
def _transaction(connection: Connection, wait: float = disk.WAIT_SECONDS) -> Iterator[None]:
    sqlite.begin(connection, wait)
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.rollback()
