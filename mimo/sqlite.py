"""Databases of SQLite, whose waits for other processes have the limit of the command."""

from __future__ import annotations

import sqlite3
import time
from contextlib import contextmanager
from pathlib import Path

from mimo import disk
from mimo.disk import WAIT_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_FILES = ("", "-wal", "-shm", "-journal")
_OF_FUNCTION = "user-defined function raised exception"
_MISSING = (
    *("no such table", "no such column", "no such index", "no such fts5 table"),
    *(" has no column named ", " columns but ", "vtable constructor failed"),
)
"""Parts of messages about a missing part of a database, which share the code of mistakes."""


class Connection(sqlite3.Connection):
    """A connection whose statements wait for other processes as long as the command may.

    `executemany` does not wait: it is for transactions that no other process can hold up.
    """

    limit = 0.0
    """The seconds that a statement may wait, if the command has so much time left."""
    identity = ""
    """The identity of a cache's file, see `mimo.data.cache`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Opens the database, as `sqlite3.Connection` does."""
        super().__init__(*args, **kwargs)
        self._raised: list[BaseException] = []

    def add_function(self, name: str, arguments: int, function: Callable[..., Any]) -> None:
        """Adds a function to SQL, whose exceptions `raised_by` returns."""
        raised = self._raised  # SQLite's reference to the function must not hold the connection.

        def noted(*values: Any) -> Any:
            try:
                return function(*values)
            except BaseException as error:
                raised[:] = [error]
                raise

        self.create_function(name, arguments, noted)

    def raised_by(self, error: BaseException) -> BaseException | None:
        """Returns the exception of an added function that ended a statement.

        SQLite does not report it. Returns None for an error of SQLite itself.
        """
        if str(error) != _OF_FUNCTION:
            return None
        # A signal may also interrupt a function before its first line, and so nothing is noted.
        return self._raised.pop() if self._raised else KeyboardInterrupt()

    def execute(self, *args: Any) -> sqlite3.Cursor:
        """Runs a statement, and once more if it must wait; the wait counts as that of the command.

        A statement that ended a transaction with its error is not repeated.
        """
        was_in_transaction, start = self.in_transaction, time.monotonic()
        try:
            return super().execute(*args)
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            patience = disk.current()
            patience.count(time.monotonic() - start)
            limit = min(self.limit, patience.left)
            if _is_stuck(error) or not limit or self.in_transaction != was_in_transaction:
                raise
            with self.waiting(limit):
                return super().execute(*args)

    @contextmanager
    def waiting(self, seconds: float) -> Iterator[None]:
        """Lets SQLite wait in the block, up to `seconds`, which count as those of the command."""
        with disk.current().spent():
            super().execute(f"PRAGMA busy_timeout = {round(1000 * seconds)}")
            try:
                yield
            finally:
                super().execute("PRAGMA busy_timeout = 0")


def connect(path: Path | None, *, mode: str = "rwc", wait: float = 0) -> Connection:
    """Returns a connection to a database, None for one in memory; transactions are explicit.

    Modes are SQLite's: `rwc` creates a missing file, `rw` and `ro` never do. A statement waits up
    to `wait` seconds for other processes. Raises `OSError` if it or its log is not a regular file,
    and `sqlite3.DatabaseError`.
    """
    patience = disk.current()
    if path in patience.held and patience.left < WAIT_SECONDS:
        raise _held(path)
    name = ":memory:"
    if path is not None:
        for suffix in _FILES:  # SQLite would follow a link, and never open a folder.
            disk.check(path.with_name(path.name + suffix))
        if mode == "rwc":
            disk.make_database(path)
        # As `Path.as_uri`, for which `urllib` is loaded.
        place = path.absolute().as_posix().replace("%", "%25").replace("?", "%3F")
        name = f"file://{'' if place[0] == '/' else '/'}{place.replace('#', '%23')}?mode={mode}"
    connection = sqlite3.connect(
        name,
        uri=path is not None,
        timeout=0,
        isolation_level=None,
        check_same_thread=False,
        factory=Connection,
    )
    try:  # If a process is stopped while it sets up the memory of all, SQLite tries for 10 s.
        connection.execute("PRAGMA schema_version")
        patience.held.discard(path)
    except sqlite3.DatabaseError as error:  # The first use of the connection reports the others.
        if path and _is_stuck(error):
            connection.close()
            patience.end(path)
            raise _held(path) from error
    connection.limit = wait
    return connection


def files_of(path: Path) -> list[Path]:
    """Returns the path of a database and those of the files that SQLite keeps beside it."""
    return [path.with_name(path.name + suffix) for suffix in _FILES]


def _held(path: Path) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(f"`{path}` is held by another process")
    error.sqlite_errorcode = sqlite3.SQLITE_PROTOCOL
    return error


def begin(connection: Connection, wait: float = WAIT_SECONDS) -> None:
    """Begins a writing transaction, and waits for those of other processes.

    Raises `sqlite3.OperationalError` after `wait` seconds, or the time that the command has left.
    """
    connection.limit = wait
    connection.execute("BEGIN IMMEDIATE")


def is_damage(error: BaseException) -> bool:
    """Returns whether SQLite reports a damaged file, a missing table or column, or damaged text.

    Text that is not UTF-8 has no code. If it is in the message, Python can't read that, either.
    """
    if not isinstance(error, sqlite3.DatabaseError):
        return isinstance(error, UnicodeDecodeError)
    code, message = getattr(error, "sqlite_errorcode", None), str(error)
    if code is None:
        return message.startswith("Could not decode to UTF-8")
    if code == sqlite3.SQLITE_ERROR:
        return any(part in message for part in _MISSING)
    return code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def is_busy(error: sqlite3.Error) -> bool:
    """Returns whether another process held a lock for too long."""
    code = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)


def _is_stuck(error: sqlite3.Error) -> bool:
    """Returns whether SQLite itself has waited for a process that sets up the memory of all."""
    return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_PROTOCOL
