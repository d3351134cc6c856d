"""The SQLite file that holds vectors: opened, made, and replaced where it is damaged.

A damaged file is not renamed or repaired, since others may have it open: an empty one of the next
number takes its place (`vectors.db`, `vectors-1.db`, …), for vectors can be made again.
"""

import errno
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from sqlite3 import Connection
from threading import RLock
from typing import TypeVar

from mimo import disk, patience, permissions
from mimo.errors import StorageFailed

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
    permissions.make_folder(folder)
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
        permissions.make_database(path)
    connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        patience.limit_waits(connection)
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
    patience.begin(connection)
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
