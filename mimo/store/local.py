"""Local databases in `.mind/.local/`: shared by processes, never committed.

A clone may bring a database with triggers, so a file is refused unless its schema is exactly ours.
A later version of mind with another schema sets `user_version` to 2 or more.
"""

from __future__ import annotations

import sqlite3
from _thread import RLock
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mimo import disk, sqlite
from mimo.errors import LaterFormat, StorageFailed
from mimo.sqlite import Connection, is_busy
from mimo.store import files

_BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class LocalDatabase:
    """One database with a fixed schema; may be used by several threads and processes at once."""

    def __init__(self, root: Path, name: str, schema: str, *, durable: bool = True) -> None:
        """Takes a project's root, a file name and the schema of its table; nothing is opened yet.

        Data that is not `durable` may be lost if the machine fails.
        """
        self._root = root
        self._name = name
        self._schema = schema
        self._durable = durable
        self._lock = RLock()
        self._open: Connection | None = None
        self._inode: int | None = None

    @property
    def path(self) -> Path:
        """Returns the path. Raises `StorageFailed` if it leads through a link."""
        return files.local(self._root, self._name)

    @contextmanager
    def reading(self) -> Iterator[Connection | None]:
        """Gives a connection, or None if the file is missing. Raises `StorageFailed`."""
        with self._lock, self._translated():
            if self._open is None and not self.path.exists():
                yield None
            else:
                yield self._connection()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Gives a connection in a transaction, which is committed if the block succeeds.

        Raises `StorageFailed`.
        """
        with self._lock, self._translated():
            connection = self._connection()
            sqlite.begin(connection)
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.rollback()

    def close(self) -> None:
        """Closes the file, if it was opened."""
        with self._lock:
            if self._open is not None:
                self._open.close()
                self._open = None

    def _connection(self) -> Connection:
        if self._open is not None and self._inode != _inode(self.path):
            self.close()  # The file was removed or replaced.
        if self._open is None:
            self._open = self._connect()
            self._inode = _inode(self.path)
        return self._open

    def _connect(self) -> Connection:
        path = self.path
        try:
            disk.make_folder(path.parent)
            connection = sqlite.connect(path, wait=disk.WAIT_SECONDS)
        except OSError as error:
            raise files.failure("write", path, error) from error
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            if not _schema_of(connection):
                self._create(connection)
            self._check(connection)
            if self._durable:
                # Without a log file, the database is readable in a read-only folder.
                connection.execute("PRAGMA journal_mode = TRUNCATE")
            else:
                connection.execute("PRAGMA synchronous = OFF")
            connection.execute("PRAGMA secure_delete = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def _check(self, connection: Connection) -> None:
        (number,) = connection.execute("PRAGMA user_version").fetchone()
        LaterFormat.check(f"`{self.path}`", number)
        if _schema_of(connection) != [self._schema]:
            raise _damaged(self.path, "mind did not create it")

    def _create(self, connection: Connection) -> None:
        """Creates the table, unless another process has."""
        if not self._durable:
            connection.execute("PRAGMA journal_mode = WAL")
        sqlite.begin(connection)
        if not _schema_of(connection):
            connection.execute(self._schema)
        connection.execute("COMMIT")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in _BROKEN:
                self.close()
                raise _damaged(self.path, str(error)) from error
            if is_busy(error):
                raise disk.busy(self.path) from error
            raise StorageFailed(
                f"`{self.path}` can't be used: {error}",
                hint="check the disk's free space and the folder's permissions",
            ) from error


def _schema_of(connection: Connection) -> list[str]:
    return [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master")]


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def _damaged(path: Path, why: str) -> StorageFailed:
    return StorageFailed(
        f"`{path}` can't be used: {why}",
        hint="it is local and not in git; remove it, and mind creates a new one",
        details={"path": str(path)},
    )
