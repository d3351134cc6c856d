"""The database file of an index. The highest usable generation of a folder is the index.

Generations are `index.db`, `index-1.db`, …. A damaged file is never repaired or replaced, since
other processes may have it open: a higher generation takes its place, and unused files are removed
later.
"""

from __future__ import annotations

import os
import sqlite3
import time
import weakref
from _thread import RLock, allocate_lock, get_ident
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from enum import Enum
from pathlib import Path

from mimo import disk, sqlite
from mimo.errors import IndexNotReady, StorageFailed
from mimo.index import schema
from mimo.index.pages import SHORTAGES, Held, Pages
from mimo.sqlite import Connection, is_busy
from mimo.text.clean import compiled

Approves = Callable[[str], bool]
"""Returns whether the text with a digest may be shown to an agent."""

WRITE_WAIT_SECONDS = disk.WAIT_SECONDS
"""The time for which a write waits for another process's write."""

_KEPT_PAST = 8
"""The number of past states whose databases are kept, the last used ones."""

_REPAIRS = 2
"""The number of times that an index is filled again after damage before it is made in memory."""

_DRAFT_SECONDS = 3600
"""The age at which the draft of a database is no longer needed; making one takes milliseconds."""

_JOURNAL_BYTES = 8_000_000
_NAME = r"([a-z]+)(?:-([1-9][0-9]{0,8}))?\.db"
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

_MISREAD = (LookupError, TypeError, ValueError, AttributeError, OverflowError)
"""The exceptions of reading a row with values that mind never writes."""


class IndexDamaged(StorageFailed):
    """The database is damaged; an empty one has taken its place, if that was possible."""


class IndexBusy(StorageFailed):
    """Another process is writing; its last commit can be read."""


class State(Enum):
    """The state of a file that may be an index."""

    USABLE = "usable"
    NEWER = "newer"
    """A later version of mind made it."""
    UNUSABLE = "unusable"


class Database:
    """One generation; threads share its connections."""

    def __init__(self, path: Path | None, generation: int = 0) -> None:
        """Takes the path; None is a database in memory. No file is opened yet."""
        self.path = path
        self.generation = generation
        self.approves: Approves = lambda _: True
        """The function `approved` in SQL."""
        self._idle: list[Connection] = []
        self._file: Held | None = None
        """The file, which is held before the first connection and until the last one is closed."""
        self._pages = Pages(path) if path else None
        self._closed = False
        self._turn: AbstractContextManager[object] = nullcontext()
        if path is None:
            from threading import RLock

            self._turn = RLock()
            connection = self._connect()
            schema.create(connection)
            self._idle.append(connection)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yields a connection on which all reads see the same state.

        Raises `IndexDamaged` also if the block fails on a row with values that mind never writes.
        """
        with self._connection() as connection:
            self._verify()
            connection.execute("BEGIN")
            try:
                yield connection
            except UnicodeEncodeError:
                raise  # The query's: SQLite can't hold one of its texts.
            except _MISREAD as error:
                raise damaged(self.path, type(error).__name__) from error
            finally:
                connection.rollback()

    @contextmanager
    def writing(self, wait: float = WRITE_WAIT_SECONDS) -> Iterator[Connection]:
        """Yields a connection in a transaction, which is committed if the block succeeds.

        Raises `IndexBusy` if another process is writing for longer than `wait` seconds, and
        `IndexNotReady` if it builds the first index for longer than 10 s.
        """
        with self._connection() as connection:
            self._begin(connection, wait)
            try:
                self._verify(again=True)
                yield connection
                with self._recording(connection):
                    connection.execute("COMMIT")
            finally:
                connection.rollback()

    def compact(self) -> None:
        """Writes the file again without what was removed, and empties its log.

        Removes past states, too. Raises `StorageFailed`, and `IndexBusy` if another process reads
        for so long that the log stays.
        """
        from shutil import rmtree

        with self._connection() as connection:
            with self._recording(connection):
                connection.execute("VACUUM")
            # SQLite raises no error for an incomplete checkpoint, so `execute` would not wait.
            limit = min(WRITE_WAIT_SECONDS, disk.current().left)
            with self._recording(connection), connection.waiting(limit):
                ((stays, *_),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        if self.path:
            past = self.path.parent / "past"
            with _writable(past), suppress(FileNotFoundError):
                rmtree(past)
        if stays:
            raise IndexBusy(
                f"another process is reading the index `{self.path}`",
                hint="end it, then try again",
            )

    def state(self, owner: str) -> State:
        """Returns whether the file is whole and has the current format and this owner.

        An index that came with a clone may differ from the files.
        """
        try:
            with self._connection() as connection:
                query = "SELECT name, value FROM meta WHERE name IN ('format', 'owner')"
                meta = dict(connection.execute(query))
        except IndexDamaged:
            return State.UNUSABLE
        number = meta.get("format")
        if isinstance(number, int) and number > schema.FORMAT:
            return State.NEWER
        if number != schema.FORMAT or meta.get("owner") != owner:
            return State.UNUSABLE
        try:
            with translated(self.path):
                self._verify()
        except IndexDamaged:
            return State.UNUSABLE
        return State.USABLE

    def size(self) -> int:
        """Returns the size of the file and its journal in bytes."""
        files = [self.path, beside(self.path, "-wal")] if self.path else []
        return sum(path.stat().st_size for path in files if path.exists())

    def close(self) -> None:
        """Closes every connection; one in use is closed when it is returned.

        A database in memory is closed with its last reference: closing it earlier would empty it.
        """
        if self.path is None:
            return
        self._closed = True
        held, self._file = self._file, None
        if self._pages and held:
            self._pages.close(held.descriptor, self._close_idle)
        self._close_idle()

    def _close_idle(self) -> None:
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def _verify(self, *, again: bool = False) -> None:
        """Raises `IndexDamaged` if a page is damaged."""
        held = self._file  # Another thread may close the database.
        if not (self._pages and held):
            return
        if not self._pages.are_sound(held.descriptor, again=again):
            raise damaged(self.path, "the checksum of a page does not match")

    def _recording(self, connection: Connection) -> AbstractContextManager[None]:
        """Returns the context of a commit, in which the checksums of its pages are stored."""
        held = self._file
        if self._pages and held:
            return self._pages.recording(held.descriptor, connection)
        return nullcontext()

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        raised: BaseException | None = None
        with self._turn, translated(self.path):
            held = self._file  # Lives longer than the connection.
            if self.path and held is None:
                held = self._file = Held.of(self.path)
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._connect()
            try:
                yield connection
            except sqlite3.OperationalError as error:
                raised = connection.raised_by(error)
                if raised is None:
                    raise
                if isinstance(raised, _MISREAD):
                    raise damaged(self.path, type(raised).__name__) from raised
            finally:
                self._idle.append(connection)
                if self._closed:
                    self._close_idle()
                del held
        if raised is not None:  # An interruption, or an error of approvals: it is not damage.
            try:
                raise raised
            finally:
                del raised  # Its traceback refers to it.

    def _connect(self) -> Connection:
        # `rw`: a removed file must not be created again, empty.
        connection = sqlite.connect(self.path, mode="rw", wait=WRITE_WAIT_SECONDS)
        try:
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA journal_size_limit = {_JOURNAL_BYTES}")
            connection.add_function("approved", 1, self._approval())
            connection.add_function("claim", 2, schema.claim)
            connection.add_function("unpacked", 1, schema.unpacked)
        except sqlite3.DatabaseError:
            connection.close()
            raise
        return connection

    def _approval(self) -> Callable[[str | None], bool]:
        # SQLite's reference to a function is unknown to the garbage collector: by it, a database
        # with an idle connection would hold itself, and its files would stay open for good.
        of = weakref.ref(self)

        def approved(digest: str | None) -> bool:
            database = of()
            return database is not None and database.approves(schema.from_digest(digest or ""))

        return approved

    def _begin(self, connection: Connection, wait: float) -> None:
        # The first index is waited for longer: without it, there is nothing to read.
        for seconds in (wait, max(0.0, WRITE_WAIT_SECONDS - wait)):
            try:
                sqlite.begin(connection, seconds)
                return
            except sqlite3.OperationalError as error:
                if not is_busy(error):
                    raise
            if connection.execute("SELECT 1 FROM files LIMIT 1").fetchone():
                raise IndexBusy(
                    f"another process has been writing the index `{self.path}` for more than"
                    f" {wait:g} s",
                    hint="your files are safe; the next command indexes them",
                )
        raise not_ready()


def not_ready() -> IndexNotReady:
    """Returns the error for an index that another process is building for the first time."""
    return IndexNotReady(
        "another process is still building the index", hint="try again in a few seconds"
    )


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


@contextmanager
def translated(path: Path | None) -> Iterator[None]:
    """Raises errors of SQLite as `IndexDamaged` or `StorageFailed`."""
    try:
        yield
    except BlockingIOError as error:
        raise IndexBusy(
            f"another process has been committing to the index `{path}` for more than"
            f" {WRITE_WAIT_SECONDS:g} s",
            hint="your files are safe; the next command indexes them",
        ) from error
    except UnicodeDecodeError as error:  # SQLite's, about a damaged schema.
        raise damaged(path, error) from error
    except OSError as error:
        if error.errno not in SHORTAGES:
            raise damaged(path, error) from error
        hint = "close some programs, then try again"
        raise _unusable(path, error.strerror, hint) from error
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.ProgrammingError):
            raise  # A bug in our code.
        if is_damage(error):
            raise damaged(path, error) from error
        if path and is_busy(error):
            raise disk.busy(path) from error
        hint = "check the disk's free space and the folder's permissions"
        raise _unusable(path, error, hint) from error


def _unusable(path: Path | None, reason: object, hint: str) -> StorageFailed:
    return StorageFailed(f"the index `{path}` can't be used ({reason})", hint=hint)


def damaged(path: Path | None, reason: object) -> IndexDamaged:
    """Returns the error about a damaged database."""
    return IndexDamaged(
        f"the index `{path}` is damaged ({reason})",
        hint="it is rebuilt from your files; try again",
    )


def open_newest(folder: Path, owner: str = "") -> Database:
    """Returns the database of a folder, or an empty one if none there is usable.

    Raises `StorageFailed` if the folder can't be written.
    """
    with _writable(folder):
        disk.make_folder(folder)
        if not os.access(folder, os.W_OK):
            raise PermissionError
    numbers = generations(folder)
    for number in reversed(numbers):
        database = Database(path_of(folder, number), number)
        if database.state(owner) is State.USABLE:
            break
        database.close()
    else:
        # By the list above: one that another process has made since is used, not replaced.
        database = make_next(folder, owner, numbers)
    _tidy(folder, database.generation, owner)
    return database


def open_past(folder: Path, owner: str = "") -> Database:
    """Returns the database of a past state, in a folder of its own beside those of others.

    The folders that were not used for longest are removed. Raises as `open_newest` does.
    """
    database = open_newest(folder, owner)
    with suppress(OSError):
        os.utime(folder)
        states = [state for state in folder.parent.iterdir() if state.is_dir()]
        states.sort(key=lambda state: state.stat().st_mtime, reverse=True)
        for state in states[_KEPT_PAST:]:
            for file in state.iterdir():
                file.unlink()
            state.rmdir()
    return database


def make_next(folder: Path, owner: str = "", numbers: Sequence[int] | None = None) -> Database:
    """Returns an empty database of the generation after `numbers` (default: those in the folder).

    Its file appears in the folder complete. If another process was faster, uses its file.
    """
    number = max(generations(folder) if numbers is None else numbers, default=-1) + 1
    path = path_of(folder, number)
    draft = folder / f"draft-{os.getpid()}-{get_ident()}-{number}.db"
    with translated(path), _writable(folder):
        _remove_drafts(folder)
        draft.unlink(missing_ok=True)
        try:
            with closing(sqlite.connect(draft)) as connection:
                schema.create(connection, owner)
                connection.execute("PRAGMA journal_mode = WAL")
            Pages(draft).create(Held.of(draft))
            for made, name in ((beside(draft, "-sums"), beside(path, "-sums")), (draft, path)):
                try:
                    name.hardlink_to(made)
                except FileExistsError:
                    pass
                except OSError:  # Some file systems have no hard links.
                    if not name.exists():
                        made.rename(name)
        finally:
            remove(draft)
    return Database(path, number)


def _remove_drafts(folder: Path) -> None:
    """Removes drafts that processes left when they were killed, as far as possible."""
    oldest = time.time() - _DRAFT_SECONDS
    with suppress(OSError):
        for path in folder.glob("draft-*"):
            if path.stat().st_mtime < oldest:
                path.unlink()


class Generations:
    """The database of an index, and those that take its place; threads can use it.

    After damage it is the next generation, which is empty until it is filled from the files.
    """

    def __init__(self, newest: Database, owner: str = "") -> None:
        """Takes a usable database, and the owner of the others in its folder."""
        self.newest = newest
        self.identity = identity(newest)
        """Another value after each replacement."""
        self.replaced = 0
        """The number of replacements, and of failures to replace a damaged database."""
        self._owner = owner
        self._turn = allocate_lock()
        self._filled = 0
        """The number of replacements when the database was filled last."""
        self._repairing = RLock()
        self._repairer = 0
        """The thread that fills the database now; 0 for none."""

    def renew(self) -> None:
        """Switches to the newest generation, which is empty if the last one was damaged."""
        before = self.newest
        if before.path and identity(before) != self.identity:
            self.replace(before, open_newest(before.path.parent, self._owner))

    @contextmanager
    def reading(self, approves: Approves) -> Iterator[Connection]:
        """Yields a connection as `Database.reading` does; a damaged database is replaced."""
        database = self.newest
        database.approves = approves
        with self._replacing_damaged(database), database.reading() as connection:
            yield connection

    @contextmanager
    def writing(self, wait: float = WRITE_WAIT_SECONDS) -> Iterator[Connection]:
        """Yields a connection as `Database.writing` does; a damaged database is replaced."""
        database = self.newest
        with self._replacing_damaged(database), database.writing(wait) as connection:
            yield connection

    @contextmanager
    def postponing(self) -> Iterator[None]:
        """Makes the block faster if it writes very many rows: indexes of them are made after it."""
        with self.writing() as sql:
            schema.postpone(sql)
        yield
        self.make_postponed()

    def make_postponed(self) -> None:
        """Makes the indexes of tables that lack them."""
        for statement in schema.postponed():
            with self.writing() as sql:
                sql.execute(statement)

    def replace(self, before: Database, other: Database) -> None:
        """Closes a database and uses another one, unless another thread has replaced it."""
        with self._turn:
            if self.newest is not before:
                other.close()
                return
            self.newest, self.identity = other, identity(other)
            self.replaced += 1
        before.close()

    @property
    def is_repairer(self) -> bool:
        """Returns whether this thread fills the database now."""
        return self._repairer == get_ident()

    def require_refill(self) -> None:
        """Notes that the database must be filled before it answers."""
        self._filled = -1

    def refill(self, repair: Callable[[], object], leave_disk: Callable[[str], object]) -> None:
        """Fills a database that has replaced another one; waits for a thread that does so.

        `repair` fills it from the files. If it is replaced again meanwhile, `leave_disk` puts one
        in memory in its place.
        """
        if self._filled == self.replaced:
            return
        with self._repairing:
            if self._repairer:
                return  # It is this thread.
            self._repairer = get_ident()
            try:
                for attempt in range(_REPAIRS + 2):
                    replaced = self.replaced
                    if self._filled == replaced:
                        return
                    if attempt == _REPAIRS:
                        leave_disk("it is damaged again and again")
                        replaced = self.replaced
                    repair()
                    if self.replaced == replaced:
                        self._filled = replaced
            finally:
                self._repairer = 0

    @contextmanager
    def _replacing_damaged(self, database: Database) -> Iterator[None]:
        try:
            yield
        except IndexDamaged:
            if database.path and database is self.newest:
                try:
                    self.replace(database, make_next(database.path.parent, self._owner))
                except StorageFailed:  # The folder can't be written.
                    self.replaced += 1
            raise


def identity(database: Database) -> object:
    """Returns a value that changes when the file is removed or a newer generation appears."""
    if database.path is None:
        return None
    try:
        inode = database.path.stat().st_ino
    except OSError:
        inode = 0
    return inode, max(generations(database.path.parent), default=-1)


@contextmanager
def _writable(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageFailed(
            f"the index folder `{folder}` can't be written",
            hint="give yourself write permission, or move away the file in its place",
        ) from error


def _tidy(folder: Path, ours: int, owner: str) -> None:
    """Removes generations that are not needed, as far as possible."""
    for number in generations(folder):
        if number == ours:
            continue
        path = path_of(folder, number)
        database = Database(path, number)
        state = database.state(owner)
        database.close()
        is_needed = state is State.NEWER or (state is State.USABLE and number > ours)
        if not is_needed and is_idle(path):
            remove(path)


def is_idle(path: Path) -> bool:
    """Returns whether no other process has the database open."""
    try:
        with closing(sqlite.connect(path, mode="rw")) as connection:
            return bool(connection.execute("PRAGMA journal_mode = DELETE").fetchone())
    except (sqlite3.OperationalError, OSError):
        return False
    except sqlite3.DatabaseError:
        return True
