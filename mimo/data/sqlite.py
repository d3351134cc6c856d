"""Databases of SQLite, whose waits for other processes have the limit of the command."""

from __future__ import annotations

import sqlite3
import time
from _thread import RLock
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from stat import S_ISREG

from mimo.data import disk
from mimo.data.disk import WAIT_SECONDS
from mimo.data.failures import failure
from mimo.errors import LaterFormat, Misread, StorageFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

_FILES = ("", "-wal", "-shm", "-journal")
SHORT_LOG = 256_000
"""The number of bytes up to which the log of a cache stays between processes."""
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


def connect(
    path: Path | None, *, mode: str = "rwc", wait: float = 0, begins: bool = False
) -> Connection:
    """Returns a connection to a database, None for one in memory; transactions are explicit.

    Modes are SQLite's: `rwc` creates a missing file, `rw` and `ro` never do. A statement waits up
    to `wait` seconds for other processes. With `begins`, it is in a transaction that reads. Raises
    `OSError` if it or its log is not a regular file, and `sqlite3.DatabaseError`.
    """
    patience = disk.current()
    if path in patience.held and patience.left < patience.most:
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
        if begins:
            connection.execute("BEGIN")
        connection.execute("PRAGMA schema_version")
        patience.held.discard(path)
    except sqlite3.DatabaseError as error:  # The first use of the connection reports the others.
        if path and _is_stuck(error):
            connection.close()
            patience.end(path)
            raise _held(path) from error
    connection.limit = wait
    return connection


def close(path: Path, connections: Iterable[sqlite3.Connection]) -> None:
    """Closes connections to a database with a write-ahead log; the next process uses a short one.

    If the last connection can write, SQLite copies the log into the database, flushes both of them,
    and removes the log. A connection that can only read does not, so one is closed last.
    """
    with ExitStack() as last:
        with suppress(sqlite3.Error, OSError):
            if 0 < path.with_name(f"{path.name}-wal").stat().st_size <= SHORT_LOG:
                last.enter_context(closing(connect(path, mode="ro")))
        for connection in connections:
            connection.close()


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


_STATEMENTS = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"


class Database:
    """One database with a fixed schema; may be used by several threads and processes at once.

    If it is damaged, it is refused, and stays as it is. A file that is removed or replaced while it
    is open is opened again.
    """

    consequence = ""
    """The part of the message about damage that follows the reason."""

    def __init__(
        self,
        path: Path | Callable[[], Path],
        schema: str,
        number: int = 0,
        *,
        damage_error: type[StorageFailed] = StorageFailed,
    ) -> None:
        """Takes the path, or a function that checks it, and the schema with its `user_version`.

        Nothing is opened yet. A clone may bring a database with triggers, so a file is refused
        unless its schema is exactly ours. A later version sets a higher `user_version`.
        `damage_error` is the type of the error for damage.
        """
        self._damage_error = damage_error
        self._path, self._number = path, number
        self._schema = list(zip(schema.split(";\n")))  # As SQLite returns it: rows of one column.
        self._lock = RLock()
        self._open: Connection | None = None
        self._inode = 0
        self.openings = 0
        """The number of times that the file was opened."""

    @property
    def path(self) -> Path:
        """Returns the path. Raises `StorageFailed` if it leads through a link."""
        return self._path if isinstance(self._path, Path) else self._path()

    @contextmanager
    def reading(self) -> Iterator[Connection | None]:
        """Gives a connection in a transaction, or None if the file is missing.

        Raises `StorageFailed`.
        """
        with self._used():
            connection = self._connection()
            if connection is None or connection.in_transaction:
                yield connection
                return
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if self._open is connection:  # A use within the block may have found damage.
                    connection.rollback()

    @contextmanager
    def _used(self) -> Iterator[None]:
        """Lets one thread at a time use the connection in a block. Raises `StorageFailed`."""
        with self._lock:
            try:
                yield
            except (sqlite3.DatabaseError, UnicodeDecodeError, Misread) as error:
                raise self._failed(error) from error

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[Connection]:
        """Gives a connection in a transaction, which is committed if the block succeeds.

        Unless it is `durable`, a loss of power may undo it, but leaves no part of it. Raises
        `StorageFailed`.
        """
        with self._used():
            connection = self._connection(create=True)
            if connection is None:  # Only for the type checker.
                raise FileNotFoundError(self.path)
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            begin(connection)
            try:
                self.check_schema(connection)
                yield connection
                connection.execute("COMMIT")
            finally:
                if self._open is connection and connection.in_transaction:
                    connection.rollback()

    def close(self) -> None:
        """Closes the file, if it was opened; the next use opens it again."""
        with self._lock:
            if self._open is not None:
                self._open.close()
                self._open = None

    __del__ = close

    def check_schema(self, connection: Connection) -> None:
        """Raises `LaterFormat`, or the error for damage, if the schema is not ours."""
        (number,) = connection.execute("PRAGMA user_version").fetchone()
        if number > max(self._number, 1):
            LaterFormat.check(f"`{self.path}`", number, self._number or 1)
        if number != self._number or connection.execute(_STATEMENTS).fetchall() != self._schema:
            raise Misread("mind did not create it")

    def is_expected(self) -> bool:
        """Returns whether a missing file has content, which is imported when it is created."""
        return False

    def fill(self, connection: Connection) -> None:
        """Adds the first content, in the transaction that creates the tables."""

    def _connection(self, *, create: bool = False) -> Connection | None:
        """Returns the connection to the file that has the path now.

        Returns None if it is missing, unless it is to be created.
        """
        path = self._path if isinstance(self._path, Path) else self._path()
        try:
            status = path.lstat()
        except FileNotFoundError:
            status = None
        except OSError as error:
            raise failure("open", path, error) from error
        if self._open is not None and (status is None or status.st_ino != self._inode):
            self.close()
        if self._open is not None or not (status or create or self.is_expected()):
            return self._open
        if status and (disk.is_foreign(status) or not S_ISREG(status.st_mode)):
            raise Misread("not a file of the user")
        try:
            disk.make_folder(path.parent)
            mode = "rw" if status else "rwc"
            connection = connect(path, mode=mode, wait=disk.WAIT_SECONDS)
        except OSError as error:
            raise failure("open", path, error) from error
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            # The journal stays, so a commit is durable without flushing the folder. Without a log
            # file, the database is readable in a folder that can't be written, and by several
            # machines. A large change must not make readers wait before it is committed.
            connection.execute("PRAGMA journal_mode = TRUNCATE")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA cache_spill = OFF")
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("BEGIN")
            statements = connection.execute(_STATEMENTS).fetchall()
            if not statements:
                connection.rollback()
                self._create(connection)
            elif 0 < connection.execute("PRAGMA user_version").fetchone()[0] < self._number:
                connection.rollback()
                self._upgrade(connection)
            self.check_schema(connection)
            connection.rollback()
            self._inode = path.lstat().st_ino
        except BaseException:
            connection.close()
            raise
        self._open = connection
        self.openings += 1
        return connection

    def _create(self, connection: Connection) -> None:
        """Creates the tables, unless another process has."""
        begin(connection)
        if not connection.execute(_STATEMENTS).fetchone():
            for (statement,) in self._schema:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {self._number}")
            self.fill(connection)
        connection.execute("COMMIT")

    def _upgrade(self, connection: Connection) -> None:
        """Replaces the schema of an earlier version, unless another process has."""
        begin(connection)
        if connection.execute("PRAGMA user_version").fetchone()[0] < self._number:
            self.upgrade(connection, connection.execute(_STATEMENTS).fetchall())
            connection.execute(f"PRAGMA user_version = {self._number}")
        connection.execute("COMMIT")

    def upgrade(self, connection: Connection, statements: Sequence[tuple[str]]) -> None:
        """Changes the tables with these statements into ours, in a transaction."""
        raise Misread("an earlier version created it")

    @property
    def hint(self) -> str:
        """The next step after damage."""
        return "it is local and not in git; remove it, and mind creates a new one"

    def _failed(self, error: Exception) -> StorageFailed:
        """Returns the error to raise for one of a block that uses the database."""
        if isinstance(error, Misread) or is_damage(error):
            self.close()
            return self._damage_error(
                f"`{self.path}` is damaged ({error}){self.consequence}",
                hint=self.hint,
                details={"path": str(self.path)},
            )
        is_held = isinstance(error, sqlite3.Error) and is_busy(error)
        if is_held:
            return disk.busy(self.path)
        return StorageFailed(
            f"`{self.path}` can't be used: {error}",
            hint="check the disk's free space and the folder's permissions",
        )
