"""A consistent copy of another program's SQLite database, read without changing it.

mind's own opener (`mimo.data.sqlite`) makes and repairs the databases that mind writes. This one
must not leave a trace: it opens the file read-only, or a temporary copy if SQLite would write
beside it.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from mimo.data import disk
from mimo.data.failures import failure
from mimo.data.files import digest
from mimo.errors import Invalid, NotFound, StorageFailed
from mimo.frozen import frozen

WAIT_SECONDS = 5.0
NEWEST_VERSION = 24
"""The latest schema whose columns are known by name; later columns are kept, too."""

_VARIABLES = ("MAMA_DB_PATH", "MAMA_DATABASE_PATH")
_PLACES = ("~/.claude/mama-memory.db", "~/.spinelift/memories.db")
MAGIC = b"SQLite format 3\0"
_HEAD_BYTES = 100
_LARGEST = 2 * 1024**3
"""The largest database, which is copied into memory."""
_WAL = 2
"""The byte 19, the version for reading, of a database with a write-ahead log."""
_WITHOUT_MEMORIES = frozenset({"schema_version", "schema_migrations", "embeddings"})
_UNREAD = ("embedding", "embedding_vector")
_REPAIR = "sqlite3 FILE .recover | sqlite3 repaired.db"


@frozen
class Snapshot:
    """A database as it was at one moment."""

    data: bytes
    """The whole database, as a file."""
    digest: str
    tables: Mapping[str, Sequence[Mapping[str, Any]]]
    """The rows of each of the wanted tables that exists."""
    version: int | None
    others: Mapping[str, int]
    """The number of rows of each other table that has some."""


def locate(named: str | None, environ: Mapping[str, str]) -> tuple[Path, tuple[Path, ...]]:
    """Returns the database to read, and other existing ones.

    It is the named one, else that of $MAMA_DB_PATH, $MAMA_DATABASE_PATH, or of the places where
    MAMA keeps it. Raises `NotFound`.
    """
    candidates = {"--db": named, **{f"${name}": environ.get(name) for name in _VARIABLES}}
    for origin, text in candidates.items():
        if text:
            path = expanded(text, environ)
            if not path.exists():
                raise NotFound(
                    f"`{path}` does not exist", hint=f"{origin} names it; check the path"
                )
            return path, ()
    paths = [path for place in _PLACES if (path := expanded(place, environ)).exists()]
    if not paths:
        places = ", ".join([f"${name}" for name in _VARIABLES] + [*_PLACES])
        raise NotFound(
            "no MAMA database was found",
            hint=f"looked for {places}; or name it: `mind import mama PATH`",
        )
    return paths[0], tuple(paths[1:])


def expanded(text: str, environ: Mapping[str, str]) -> Path:
    """Returns the absolute path that a text names; `~` and `${HOME}` are the user's home."""
    home = environ.get("HOME") or str(Path.home())
    path = text.replace("${HOME}", home)
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    return Path(os.path.abspath(path))  # noqa: PTH100 - `..` is resolved, links are not


def is_sqlite(path: Path) -> bool:
    """Returns whether a file is an SQLite database."""
    with suppress(OSError):
        return disk.start(path, len(MAGIC)).startswith(MAGIC)
    return False


def is_mama(tables: Set[str]) -> bool:
    """Returns whether a database with these tables is one of MAMA."""
    return {"decisions", "decision_edges"} <= tables


def table_names(path: Path) -> set[str]:
    """Returns the names of a database's tables. Raises as `snapshot` does."""
    with _translated(path), closing(_copy(path, _head(path, "the program"), WAIT_SECONDS)) as copy:
        return _tables(copy)


def snapshot(
    path: Path,
    required_tables: Sequence[str],
    *,
    of: str = "MAMA",
    keep: bool = True,
    wait: float = WAIT_SECONDS,
) -> Snapshot:
    """Returns a copy of a database, and the rows of the `required_tables` tables.

    The file and its folder are not changed. `of` is the program that made it; without `keep`, the
    copy is not kept. Raises `Invalid` if it is not a database of that program, and `StorageFailed`
    if it is damaged, or locked for longer than `wait` seconds.
    """
    with _translated(path):
        head = _head(path, of)
        with closing(_copy(path, head, wait)) as copy:
            tables = _tables(copy)
            if not set(required_tables) & tables:
                raise Invalid(
                    f"`{path}` is not a database of {of}: it has no table `{required_tables[0]}`",
                    hint="name the database of MAMA" if of == "MAMA" else "check the path",
                )
            existing = [table for table in required_tables if table in tables]
            for table in existing:
                (result,) = copy.execute(f"PRAGMA quick_check({_quoted(table)})").fetchone()
                if result != "ok":
                    raise StorageFailed(
                        f"`{path}` is damaged: {result}", hint=f"repair it first: {_REPAIR}"
                    )
            data = copy.serialize() if keep else b""
            counts = {
                name: copy.execute(f"SELECT count(*) FROM {_quoted(name)}").fetchone()[0]
                for name in sorted(tables - set(required_tables) - _WITHOUT_MEMORIES)
            }
            return Snapshot(
                data=data,
                digest=digest(data),
                tables={table: _rows(copy, table) for table in existing},
                version=_version(copy, tables),
                others={name: count for name, count in counts.items() if count},
            )


def _head(path: Path, of: str) -> bytes:
    """Returns the first bytes of a database; raises `Invalid` if it can't be one."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise Invalid(f"`{path}` is not a file", hint="name the database itself")
        if status.st_size > _LARGEST:
            raise Invalid(
                f"`{path}` has {status.st_size:,} bytes, and at most {_LARGEST:,} are read",
                hint="vacuum it, or remove what you do not need from a copy",
            )
        head = disk.start(path, _HEAD_BYTES)
    except OSError as error:
        raise failure("read", path, error) from error
    if not head:
        raise Invalid(f"`{path}` is empty", hint=f"{of} has saved nothing there yet")
    if not head.startswith(MAGIC) or len(head) < _HEAD_BYTES:
        raise _not_sqlite(path)
    return head


def _copy(path: Path, head: bytes, wait: float) -> sqlite3.Connection:
    """Returns a copy in memory of the committed data, the write-ahead log included."""
    log, shared = _beside(path, "-wal"), _beside(path, "-shm")
    if head[19] == _WAL and not (log.exists() and shared.exists()):
        # No program has it open, and opening it would create these files beside it.
        return _copy_aside(path, wait)
    try:
        return _backup(path, "mode=ro", wait)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise
        return _copy_aside(path, wait)


def _copy_aside(path: Path, wait: float) -> sqlite3.Connection:
    """Returns a copy of a database that can't be opened where it is, by way of a copied file."""
    from shutil import copyfile
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="mind-import-") as folder:
        old_state = _state(path)
        for suffix in ("", "-wal", "-journal"):
            with suppress(FileNotFoundError):
                copyfile(_beside(path, suffix), Path(folder, f"copy.db{suffix}"))
        with suppress(FileNotFoundError), Path(folder, "copy.db-journal").open("r+b") as journal:
            # A journal ends with the name of a file that SQLite removes, unless a byte follows.
            journal.seek(0, os.SEEK_END)
            journal.write(b"\0")
        if old_state != _state(path):
            raise StorageFailed(f"`{path}` is being written", hint="close MAMA, then try again")
        return _backup(Path(folder, "copy.db"), "mode=rw", wait)


def _state(path: Path) -> list[tuple[int, int]]:
    """Returns the times and sizes of a database and its log, which change with each write."""
    statuses = []
    for suffix in ("", "-wal"):
        with suppress(OSError):
            statuses.append(_beside(path, suffix).stat())
    return [(status.st_mtime_ns, status.st_size) for status in statuses]


def _backup(path: Path, mode: str, wait: float) -> sqlite3.Connection:
    uri = f"{path.as_uri()}?{mode}"
    copy = sqlite3.connect(":memory:")
    try:
        with closing(
            sqlite3.connect(uri, uri=True, timeout=wait, isolation_level=None)
        ) as original:
            # This read waits for a lock until the timeout; the backup would wait forever.
            original.execute("BEGIN")
            original.execute("SELECT count(*) FROM sqlite_master").fetchone()
            original.backup(copy)
    except BaseException:
        copy.close()
        raise
    copy.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return copy


def _tables(copy: sqlite3.Connection) -> set[str]:
    """Returns the names of ordinary tables, without those that belong to virtual tables."""
    rows = copy.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    virtual = [name for name, sql in rows if (sql or "").upper().startswith("CREATE VIRTUAL")]
    internal = ("sqlite_", *(f"{name}_" for name in virtual))
    return {name for name, _ in rows if name not in virtual and not name.startswith(internal)}


def _rows(copy: sqlite3.Connection, table: str) -> tuple[dict[str, Any], ...]:
    columns = [name for _, name, *_ in copy.execute(f"PRAGMA table_info({_quoted(table)})")]
    read = [name for name in columns if name not in _UNREAD]
    listed = ", ".join(map(_quoted, read))
    return tuple(
        dict(zip(read, values, strict=True))
        for values in copy.execute(f"SELECT {listed} FROM {_quoted(table)}")
    )


def _version(copy: sqlite3.Connection, tables: set[str]) -> int | None:
    if "schema_version" in tables:
        with suppress(sqlite3.OperationalError):
            (version,) = copy.execute("SELECT max(version) FROM schema_version").fetchone()
            return version if isinstance(version, int) else None
    return None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(f"{path.name}{suffix}")


def _not_sqlite(path: Path) -> Invalid:
    return Invalid(
        f"`{path}` is not an SQLite database, or it is encrypted",
        hint="decrypt it first, or name another one",
    )


def _unreadable(path: Path, reason: str) -> StorageFailed:
    return StorageFailed(
        f"`{path}` can't be read: {reason}", hint=f"if it is damaged, repair it: {_REPAIR}"
    )


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Raises errors of SQLite as our own."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        # SQLite's own codes; an error of Python's module has none.
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise StorageFailed(
                f"`{path}` is locked by another program",
                hint="close what uses it, such as MAMA's server, then try again",
            ) from error
        if code == sqlite3.SQLITE_NOTADB:
            raise _not_sqlite(path) from error
        raise _unreadable(path, str(error)) from error
    except UnicodeDecodeError as error:
        # A message of SQLite, or the name of a column, repeats damaged bytes.
        raise _unreadable(path, "a name in it is not UTF-8") from error
