"""Caches: databases of SQLite whose content can be made again from other files.

A cache is never repaired. If SQLite reports damage, a table or column is missing, or a decoder
raises `Misread`, the file is removed and an empty one takes its place. Busy processes, a full disk,
missing permissions, errors of the disk and bugs in a query remove nothing.

The file's name has the number of its schema, so that versions of mind with different schemas use
different files. The number follows a `v`, because versions up to 1.1 would take `index-14.db` for
the 14th file of their own. A value that only the user's mind can compute follows the number, so
that a cache which came with a clone or an archive has another name. It is never opened, since
SQLite obeys a file and those beside it: a journal may name any file for it to delete, and a view in
the place of a table may be endless.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from _thread import RLock, _local
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress

from mimo.data import Schema, disk, locks, sqlite
from mimo.data.failures import failure
from mimo.data.sqlite import Connection, is_busy
from mimo.errors import Misread, StorageFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import Concatenate, ParamSpec, TypeVar

    _T = TypeVar("_T")
    _P = ParamSpec("_P")

_SUSPECT = (
    sqlite3.IntegrityError,
    sqlite3.DataError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
)
"""The errors that a damaged row may cause, and a bug of ours, too: SQLite then checks the file."""

_NUMBERS = (
    "SELECT m.name, c.name, lower(c.type) FROM sqlite_master m, pragma_table_info(m.name) c"
    " WHERE m.type = 'table' AND c.type IN ('INTEGER', 'REAL')"
)
"""The columns of numbers; SQLite reports no other value in them."""


class CacheDamaged(StorageFailed):
    """A cache was damaged; an empty one has taken its place, if that was possible."""


class CacheBusy(StorageFailed):
    """Another process is writing; its last commit can be read."""


class Cache:
    """One cache, which threads and processes can use at the same time; readers never wait.

    A file that is removed or replaced while it is open is opened again.
    """

    def __init__(
        self,
        folder: Path | None,
        schema: Schema,
        *,
        owner: str = "",
        prepare: Callable[[Connection], object] | None = None,
    ) -> None:
        """Takes the folder, None for a cache in memory. The first use opens the file, or makes it.

        `owner` is the user's secret, on which the file's name depends. `prepare` is called with
        each new connection, to add functions.
        """
        self.path = schema.path(folder, owner) if folder else None
        self._schema, self._prepare = schema, prepare
        self._idle: list[tuple[int | None, Connection]] = []
        """Connections that no thread uses, each with the inode of its file."""
        self._memory: Connection | None = None
        self._turn = nullcontext() if folder else RLock()  # One thread at a time uses memory.
        self._is_closed = False
        self._thread = _local()
        """The `Transaction` that each thread uses now, if any, as its attribute `transaction`."""

    def check_folder(self) -> None:
        """Makes a missing folder. Raises `StorageFailed` if it can't be written."""
        if self.path is None:
            return
        folder = self.path.parent
        try:
            disk.make_folder(folder)
            if not os.access(folder, os.W_OK):
                raise PermissionError(errno.EACCES, "not writable")
        except OSError as error:
            raise failure("write to", folder, error) from error

    @property
    def exists(self) -> bool:
        """Returns whether there is a file."""
        return self._inode() is not None

    @property
    def identity(self) -> str:
        """The identity of the file; another one after each replacement.

        A connection has that of its own file.
        """
        if (transaction := self._transaction) and transaction.connection:
            return transaction.connection.identity
        with self.begin(reads=False) as connection:
            return connection.identity

    @property
    def _transaction(self) -> Transaction | None:
        """The transaction that this thread uses."""
        return getattr(self._thread, "transaction", None)

    def attempt(
        self,
        transaction: Callable[[], AbstractContextManager[Connection]],
        action: Callable[Concatenate[Connection, _P], _T],
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _T:
        """Returns the result of an action in a transaction, which `reading` or `writing` begins.

        If the file is damaged, the action runs again on an empty one. Raises `StorageFailed`.
        """
        with suppress(CacheDamaged), transaction() as connection:
            return action(connection, *args, **kwargs)
        with transaction() as connection:
            return action(connection, *args, **kwargs)

    def reading(
        self, suspects: tuple[type[Exception], ...] = _SUSPECT
    ) -> AbstractContextManager[Connection]:
        """Yields a connection in a transaction, all of whose reads see the same state.

        If the file is damaged, an empty one takes its place. Raises `CacheDamaged` then, and
        `StorageFailed` for other errors of SQLite. After an error of `suspects` the file is
        checked; a block that does other work than queries names fewer of them. While this thread
        uses a `Transaction`, the block is a part of that.
        """
        transaction = self._transaction
        return transaction.reading() if transaction else self.begin(suspects)

    @contextmanager
    def writing(self, wait: float = disk.WAIT_SECONDS) -> Iterator[Connection]:
        """Yields a connection in a transaction, which is committed if the block succeeds.

        Raises `CacheBusy` if another process is writing for longer than `wait` seconds, and other
        errors as `reading` does. It ends the `Transaction` that this thread uses.
        """
        if transaction := self._transaction:
            transaction.end()
        with self.begin(reads=False) as connection:
            connection.execute("PRAGMA synchronous = NORMAL")
            try:
                sqlite.begin(connection, wait)
            except sqlite3.OperationalError as error:
                if is_busy(error):
                    raise _busy(self.path, wait) from error
                raise
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def using(self, transaction: Transaction) -> Iterator[None]:
        """Makes each read in the block, by this thread, a part of a transaction."""
        enclosing, self._thread.transaction = self._transaction, transaction
        try:
            yield
        finally:
            self._thread.transaction = enclosing

    def compact(self, wait: float = disk.WAIT_SECONDS) -> None:
        """Writes the file again without what was removed, and empties its log.

        Raises `StorageFailed`, and `CacheBusy` if another process reads for so long that the log
        stays.
        """
        with self.begin(reads=False) as connection:
            connection.execute("VACUUM")
            # SQLite raises no error for an incomplete checkpoint, so `execute` would not wait.
            with connection.waiting(min(wait, disk.current().left)):
                ((stays, *_),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        if stays:
            message = f"another process is reading {_named(self.path)}"
            raise CacheBusy(message, hint="end it, then try again")

    def discard(self) -> None:
        """Puts an empty file in the place of this one. Raises `StorageFailed`."""
        with self._turn, _translated(self.path):
            self._memory = None
            self._replace(self._inode())

    def size(self) -> int:
        """Returns the size of the file and its log in bytes."""
        files = sqlite.files_of(self.path)[:2] if self.path else []
        return sum(path.stat().st_size for path in files if path.exists())

    def close(self) -> None:
        """Closes every connection; one in use is closed when it is returned.

        A cache in memory is closed with its last reference: closing it earlier would empty it.
        """
        if self.path:
            self._is_closed = True
            idle = []
            with suppress(IndexError):
                while True:
                    idle.append(self._idle.pop()[1])
            if idle:
                sqlite.close(self.path, idle)

    # Connections.

    @contextmanager
    def begin(
        self, suspects: tuple[type[Exception], ...] = _SUSPECT, *, reads: bool = True
    ) -> Iterator[Connection]:
        """Yields a connection in a transaction of its own; otherwise as `reading`.

        Unless it `reads`, there is no transaction.
        """
        caught: tuple[type[Exception], ...] = (sqlite3.DatabaseError, *suspects)
        with self._turn:
            with _translated(self.path):
                inode, connection = self._taken()
            try:
                if not reads:
                    connection.rollback()
                elif not connection.in_transaction:  # A new connection is in one.
                    connection.execute("BEGIN")
                yield connection
            except caught as error:
                connection.rollback()
                # An interruption, or an error of a function, is not SQLite's.
                cause = connection.raised_by(error) or error
                try:
                    with _translated(self.path):
                        if _is_caused_by_damage(cause, connection):
                            self._replace(inode)
                            raise _damaged(self.path, cause) from cause
                        if isinstance(cause, sqlite3.DatabaseError):
                            raise cause
                    raise cause
                finally:
                    del cause  # Its traceback refers to it.
            finally:
                connection.rollback()
                if self.path:
                    self._idle.append((inode, connection))
                if self._is_closed:
                    self.close()

    def _taken(self) -> tuple[int | None, Connection]:
        """Returns a connection to the file that has the path now, and its inode."""
        if self.path is None:
            if self._memory is None:
                self._memory = sqlite.connect(None)
                self._create(self._memory)
                self._set_up(self._memory)
            return None, self._memory
        inode = self._inode()
        with suppress(IndexError):  # No connection is idle.
            while True:
                opened = self._idle.pop()
                if opened[0] == inode:
                    return opened
                opened[1].close()
        for is_final in (False, False, True):
            inode = self._inode()
            with ExitStack() as failed:
                try:
                    # A cache has no journal, and SQLite removes a file that one names.
                    journal = self.path.with_name(f"{self.path.name}-journal")
                    if os.path.lexists(journal):
                        _remove(journal)
                    # `rw`: a removed file must not be created again, empty.
                    wait = disk.WAIT_SECONDS
                    connection = sqlite.connect(self.path, mode="rw", wait=wait, begins=True)
                    failed.callback(connection.close)
                    self._set_up(connection)
                except (sqlite3.DatabaseError, OSError, UnicodeDecodeError, Misread) as error:
                    is_foreign = inode is None or self._inode() != inode  # Another process's.
                    if is_final or not (is_foreign or _is_damage(error)):
                        raise
                    self._replace(inode)  # While it is open, no new file gets its inode.
                else:
                    failed.pop_all()
                    return inode, connection
        raise AssertionError

    def _set_up(self, connection: Connection) -> None:
        """Prepares a connection. Raises `sqlite3.DatabaseError`, and `Misread` without a mark."""
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute(f"PRAGMA journal_size_limit = {sqlite.SHORT_LOG}")
        (identity,) = connection.execute("SELECT identity FROM cache").fetchone() or (None,)
        if not isinstance(identity, str):
            raise Misread("it has no identity")
        connection.identity = identity
        if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
            # The file system can't have a log.
            connection.execute("PRAGMA journal_mode = MEMORY")
        if self._prepare:
            self._prepare(connection)

    def _create(self, connection: Connection) -> None:
        """Creates the tables."""
        script = f"BEGIN; {self._schema.script}; CREATE TABLE cache (identity)"
        connection.executescript(script)
        connection.execute("INSERT INTO cache VALUES (?)", (os.urandom(8).hex(),))
        connection.execute("COMMIT")

    def _replace(self, damaged: int | None) -> None:
        """Puts an empty file, which appears complete, in the place of a damaged or missing one.

        `damaged` is its inode: another process may have replaced it.
        """
        if self.path is None:
            return
        disk.make_folder(self.path.parent)
        with _locked(self.path.parent):
            if self._inode() not in (None, damaged):
                return
            for path in sqlite.files_of(self.path):
                _remove(path)
            self._remove_stale_files(self.path)
            draft = disk.temporary_name(self.path)
            try:
                with closing(sqlite.connect(draft)) as connection:
                    self._create(connection)
                    connection.execute("PRAGMA journal_mode = WAL")
                draft.rename(self.path)
            finally:
                for path in sqlite.files_of(draft):
                    path.unlink(missing_ok=True)

    def _remove_stale_files(self, own_path: Path) -> None:
        """Removes the caches of earlier versions and other owners, and parts of an interrupted one.

        They are not opened, and removed as far as possible.
        """
        import re
        from shutil import rmtree

        of_cache = rf"{self._schema.stem}-v(\d{{1,9}})(-[0-9a-f]{{16}})?\.db"
        of_draft = rf"\{disk.TEMPORARY_PREFIX}.*\{disk.TEMPORARY_SUFFIX}"
        pattern = re.compile(f"({of_cache}|{of_draft})(-wal|-shm|-journal)?")
        for path in list(own_path.parent.iterdir()):
            match = pattern.fullmatch(path.name)
            if match is None or (match[3] and int(match[2]) > self._schema.number):
                continue
            disk.discard(path)
            rmtree(path, ignore_errors=True)  # Only if it is a folder.

    def _inode(self) -> int | None:
        """Returns the inode of the file, None if it is missing or in memory."""
        try:
            return self.path.lstat().st_ino if self.path else None
        except FileNotFoundError:
            return None


class Transaction:
    """The reads of one thread from one state of a cache, from the first one until `end`.

    A cache in memory has a single connection, so there each read has its own state.
    """

    def __init__(self, cache: Cache) -> None:
        """Takes the cache. Nothing is begun yet."""
        self.cache = cache
        self._open = ExitStack()
        self.connection: Connection | None = None
        """The connection, once a read has begun the transaction."""

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yields the connection, as `Cache.reading`; an error ends the transaction."""
        if self.connection is None:
            self.connection = self._open.enter_context(self.cache.begin())
        try:
            yield self.connection
        except BaseException:
            self.connection = None
            with self._open.pop_all():  # The cache checks whether damage is the cause.
                raise
        if self.cache.path is None:
            self.end()

    def end(self) -> None:
        """Ends the transaction; the next read begins another one."""
        self.connection = None
        self._open.pop_all().close()


def _is_damage(error: BaseException) -> bool:
    """Returns whether an error states that a file is damaged, or not a file of mind."""
    if isinstance(error, OSError):
        return error.errno == errno.EINVAL  # It is a folder, a link or a device, see `disk.check`.
    return isinstance(error, Misread) or sqlite.is_damage(error)


def _is_caused_by_damage(error: BaseException, connection: Connection) -> bool:
    """Returns whether an error of a query, or else a check of the whole file, reports damage."""
    if isinstance(error, Misread | sqlite3.DatabaseError) and _is_damage(error):
        return True
    # SQLite can't hold each text of a query.
    if not isinstance(error, _SUSPECT) or isinstance(error, UnicodeEncodeError):
        return False
    try:
        if connection.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
            return True
        numbers = connection.execute(_NUMBERS).fetchall()
        misfit = "SELECT 1 FROM {} WHERE typeof({}) NOT IN ('{}', 'null') LIMIT 1"
        return any(connection.execute(misfit.format(*number)).fetchone() for number in numbers)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as failure:
        return sqlite.is_damage(failure)


def _remove(path: Path) -> None:
    """Removes a file or a link; a folder, which mind has not made, gets another name."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        if not path.is_dir():
            raise
        path.rename(disk.temporary_name(path))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lets one process at a time replace caches in a folder. Raises `BlockingIOError`."""
    if os.name != "posix":  # A folder can't be opened.
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY | disk.CLOSE_ON_EXEC)
    try:
        for is_last in disk.attempts():
            try:
                if locks.try_lock(descriptor):
                    break
            except OSError:
                break  # The file system has no locks.
            if is_last:
                raise BlockingIOError
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _translated(path: Path | None) -> Iterator[None]:
    """Raises errors of SQLite and of the file system as `StorageFailed`."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # A bug in our code.
    except (sqlite3.DatabaseError, OSError, UnicodeDecodeError, Misread) as error:
        if isinstance(error, BlockingIOError):
            raise _busy(path, disk.WAIT_SECONDS) from error
        if path and isinstance(error, sqlite3.Error) and is_busy(error):
            raise disk.busy(path) from error
        if _is_damage(error):
            raise _damaged(path, error) from error
        if path and isinstance(error, OSError):
            raise failure("use", path, error) from error
        raise StorageFailed(
            f"{_named(path)} can't be used ({error})",
            hint="check the disk's free space and the folder's permissions",
        ) from error


def _named(path: Path | None) -> str:
    return f"the index `{path}`" if path else "the index in memory"


def _busy(path: Path | None, wait: float) -> CacheBusy:
    return CacheBusy(
        f"another process has been writing {_named(path)} for more than {wait:g} s",
        hint="your files are safe; the next command indexes them",
    )


def _damaged(path: Path | None, error: BaseException) -> CacheDamaged:
    reason = error if isinstance(error, sqlite3.Error | OSError | Misread) else type(error).__name__
    return CacheDamaged(
        f"{_named(path)} is damaged ({reason})",
        hint="it is rebuilt from your files; try again",
    )
