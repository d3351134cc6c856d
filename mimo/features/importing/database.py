"""The source database of an import, and the manifest of the files that imports have written.

`.mind/.local/imports/mama-<hash of the source's path>.json` lists every file with its digest before
the first of them is written, so that an import that was interrupted can be completed or taken back.
The copy of the source stands beside it.
"""

import json
import os
import re
import sqlite3
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from mimo import disk
from mimo.disk import STORE
from mimo.errors import Conflict, Invalid, NotFound, StorageFailed
from mimo.frozen import frozen
from mimo.store import files
from mimo.store.files import digest, failure
from mimo.store.locking import lock

WAIT_SECONDS = 5.0
NEWEST_VERSION = 24
"""The latest schema whose columns are known by name; what a later one adds is kept all the same."""

_VARIABLES = ("MAMA_DB_PATH", "MAMA_DATABASE_PATH")
_PLACES = ("~/.claude/mama-memory.db", "~/.spinelift/memories.db")
_MAGIC = b"SQLite format 3\0"
_WAL = 2
_WITHOUT_MEMORIES = frozenset({"schema_version", "schema_migrations", "embeddings"})
_UNREAD = ("embedding", "embedding_vector")


@frozen
class Snapshot:
    """A database as it was at one moment."""

    data: bytes
    """The whole of it, as a file."""
    digest: str
    tables: Mapping[str, Sequence[Mapping[str, Any]]]
    """The rows of each table that was asked for and is there."""
    version: int | None
    others: Mapping[str, int]
    """Other tables with rows, and how many they have."""


def locate(named: str | None, environ: Mapping[str, str]) -> tuple[Path, tuple[Path, ...]]:
    """Returns the database to read, and others that are there as well.

    It is the one that is named, else that of $MAMA_DB_PATH, $MAMA_DATABASE_PATH, or of the places
    where MAMA keeps it. Raises `NotFound`.
    """
    for told, what in ((named, "--db"), *((environ.get(name), f"${name}") for name in _VARIABLES)):
        if told:
            path = expanded(told, environ)
            if not path.exists():
                raise NotFound(f"`{path}` is not there", hint=f"{what} names it; check the path")
            return path, ()
    there = [path for place in _PLACES if (path := expanded(place, environ)).exists()]
    if not there:
        raise NotFound(
            "no MAMA database was found",
            hint=f"looked for {', '.join([f'${name}' for name in _VARIABLES] + [*_PLACES])}; "
            "name one with --db PATH",
        )
    return there[0], tuple(there[1:])


def expanded(told: str, environ: Mapping[str, str]) -> Path:
    """Returns the path that is meant: `~` and `${HOME}` are the user's home."""
    home = environ.get("HOME") or str(Path.home())
    path = told.replace("${HOME}", home)
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    return Path(os.path.abspath(path))  # noqa: PTH100 - `..` goes, links stay


def snapshot(path: Path, wanted: Sequence[str], *, wait: float = WAIT_SECONDS) -> Snapshot:
    """Returns a database as it is now, with the rows of the tables that are `wanted`.

    The file and its folder stay as they are. Raises `Invalid` where it is no database of MAMA's,
    and `StorageFailed` where it is damaged, or locked for longer than `wait` seconds.
    """
    _check(path)
    with _reported(path), closing(_copy(path, wait)) as copy:
        tables = _tables(copy)
        if not set(wanted) & tables.keys():
            raise Invalid(
                f"`{path}` is a database, but none of MAMA's: it has no table `{wanted[0]}`",
                hint="name MAMA's own with --db PATH",
            )
        there = [table for table in wanted if table in tables]
        for table in there:
            _check_whole(copy, path, table)
        data = copy.serialize()
        return Snapshot(
            data=data,
            digest=digest(data),
            tables={table: _rows(copy, table) for table in there},
            version=_version(copy, tables),
            others=_others(copy, tables, wanted),
        )


def _check(path: Path) -> None:
    """Raises `Invalid` where a file can't be a database, without asking SQLite to open it."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise Invalid(f"`{path}` is no file", hint="name the database itself")
        head = _head(path)
    except OSError as error:
        raise failure("read", path, error) from error
    if not head:
        raise Invalid(f"`{path}` is empty", hint="MAMA has saved nothing there yet")
    if not head.startswith(_MAGIC):
        raise Invalid(
            f"`{path}` is no SQLite database, or an encrypted one",
            hint="decrypt it first, or name another one with --db PATH",
        )


def _head(path: Path) -> bytes:
    return disk.start(path, 100)


def _copy(path: Path, wait: float) -> sqlite3.Connection:
    """Returns a copy in memory of what is committed, the write-ahead log included."""
    log, shared = _beside(path, "-wal"), _beside(path, "-shm")
    if _head(path)[18] == _WAL and not (log.exists() and shared.exists()):
        # Nobody has it open, and to open it as usual would leave new files beside it.
        if _size(log):
            return _copy_aside(path, wait)
        before = _stamp(path)
        copy = _backup(path, "immutable=1", wait)
        if before == _stamp(path):
            return copy
        copy.close()
    try:
        return _backup(path, "mode=ro", wait)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise
        return _copy_aside(path, wait)


def _copy_aside(path: Path, wait: float) -> sqlite3.Connection:
    """Returns a copy of a database that needs recovery but may not be written, made elsewhere."""
    from shutil import copyfile
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="mind-import-") as folder:
        before = _stamp(path)
        for suffix in ("", "-wal", "-journal"):
            with suppress(FileNotFoundError):
                copyfile(_beside(path, suffix), Path(folder, f"copy.db{suffix}"))
        if before != _stamp(path):
            raise StorageFailed(f"`{path}` is being written", hint="close MAMA, then try again")
        return _backup(Path(folder, "copy.db"), "mode=rw", wait)


def _backup(path: Path, mode: str, wait: float) -> sqlite3.Connection:
    uri = f"{path.as_uri()}?{mode}"
    copy = sqlite3.connect(":memory:")
    try:
        with closing(
            sqlite3.connect(uri, uri=True, timeout=wait, isolation_level=None)
        ) as original:
            # A lock is met here, where it is waited for; a backup would wait for ever.
            original.execute("BEGIN")
            original.execute("SELECT count(*) FROM sqlite_master").fetchone()
            original.backup(copy)
    except BaseException:
        copy.close()
        raise
    copy.text_factory = _decoded
    return copy


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _tables(copy: sqlite3.Connection) -> dict[str, str]:
    """Returns the ordinary tables with their definitions, without those of virtual tables."""
    found = copy.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    virtual = [name for name, sql in found if (sql or "").upper().startswith("CREATE VIRTUAL")]
    own = tuple(f"{name}_" for name in virtual)
    return {
        name: sql
        for name, sql in found
        if name not in virtual and not name.startswith(("sqlite_", *own))
    }


def _check_whole(copy: sqlite3.Connection, path: Path, table: str) -> None:
    told = copy.execute(f"PRAGMA quick_check({_quoted(table)})").fetchone()
    if told and told[0] != "ok":
        raise StorageFailed(
            f"`{path}` is damaged: {told[0]}",
            hint=f"mend it first: sqlite3 {path} .recover | sqlite3 mended.db",
        )


def _rows(copy: sqlite3.Connection, table: str) -> tuple[dict[str, Any], ...]:
    columns = [name for _, name, *_ in copy.execute(f"PRAGMA table_info({_quoted(table)})")]
    read = [name for name in columns if name not in _UNREAD]
    listed = ", ".join(map(_quoted, read))
    return tuple(
        dict(zip(read, values, strict=True))
        for values in copy.execute(f"SELECT {listed} FROM {_quoted(table)}")
    )


def _version(copy: sqlite3.Connection, tables: Mapping[str, str]) -> int | None:
    if "schema_version" not in tables:
        return None
    with suppress(sqlite3.OperationalError):
        (version,) = copy.execute("SELECT max(version) FROM schema_version").fetchone()
        return version if isinstance(version, int) else None
    return None


def _others(
    copy: sqlite3.Connection, tables: Mapping[str, str], wanted: Sequence[str]
) -> dict[str, int]:
    names = sorted(tables.keys() - set(wanted) - _WITHOUT_MEMORIES)
    counts = {
        name: copy.execute(f"SELECT count(*) FROM {_quoted(name)}").fetchone()[0] for name in names
    }
    return {name: count for name, count in counts.items() if count}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(f"{path.name}{suffix}")


def _stamp(path: Path) -> tuple[tuple[int, int] | None, ...]:
    """Returns what tells one state of a database and its log from another."""

    def of(one: Path) -> tuple[int, int] | None:
        with suppress(OSError):
            status = one.stat()
            return status.st_mtime_ns, status.st_size
        return None

    return tuple(of(_beside(path, suffix)) for suffix in ("", "-wal"))


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    """Turns SQLite's errors into ours."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        # SQLite's own codes; what Python itself raises has none.
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise StorageFailed(
                f"`{path}` is locked by another program",
                hint="close what uses it, such as MAMA's server, then try again",
            ) from error
        if code == sqlite3.SQLITE_NOTADB:
            raise Invalid(
                f"`{path}` is no SQLite database, or an encrypted one",
                hint="decrypt it first, or name another one with --db PATH",
            ) from error
        raise StorageFailed(
            f"`{path}` can't be read: {error}",
            hint="where it is damaged: sqlite3 FILE .recover | sqlite3 mended.db",
        ) from error


FOLDER = f"{STORE}/.local/imports"
_PATH = re.compile(rf"{re.escape(STORE)}/(?:private/)?[a-z]+/[A-Za-z0-9_-][A-Za-z0-9_.-]*\.md")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@frozen
class Manifest:
    """The files that imports from one source have written."""

    source: str
    """The path of the source."""
    digest: str
    """SHA-256 of the copy that was read last."""
    backup: str
    """That copy, relative to the project's root."""
    began: datetime
    finished: datetime | None
    """None where the last import was interrupted."""
    counts: Mapping[str, int]
    """The number of rows of each table in the last import."""
    files: Mapping[str, str]
    """Digest of each file by its path relative to the project's root, as it was written."""


def path_of(source: Path) -> str:
    """Returns where the manifest of a source is, relative to the project's root."""
    digest = sha256(str(source).encode("utf-8", "replace")).hexdigest()
    return f"{FOLDER}/mama-{digest[:8]}.json"


def known(root: Path) -> tuple[str, ...]:
    """Returns where the manifests of a project are, relative to its root."""
    folder = files.safe_path(root, FOLDER)
    with suppress(OSError):
        return tuple(sorted(f"{FOLDER}/{path.name}" for path in folder.glob("mama-*.json")))
    return ()


def hold(root: Path) -> AbstractContextManager[None]:
    """Keeps other imports into the project away. Raises `StorageFailed` where one is at work."""
    return lock(files.safe_path(root, f"{FOLDER}/lock"))


def keep_backup(root: Path, data: bytes, digest: str) -> str:
    """Puts the copy of a source into the project and returns its path. Raises `StorageFailed`.

    Its name is made from what it holds: the same copy is kept once.
    """
    path = f"{FOLDER}/mama-{digest[:16]}.db"
    with suppress(Conflict):
        files.write_new(files.safe_path(root, path), data, mode=0o600)
    return path


def read(root: Path, path: str) -> Manifest | None:
    """Returns a manifest, or None where there is none. Raises `StorageFailed` for a damaged one."""
    target = files.safe_path(root, path)
    try:
        raw = json.loads(disk.read(target))
        finished = raw["finished"]
        return Manifest(
            source=str(raw["source"]),
            digest=str(raw["digest"]),
            backup=str(raw["backup"]),
            began=datetime.fromisoformat(raw["began"]),
            finished=datetime.fromisoformat(finished) if finished else None,
            counts={str(name): int(count) for name, count in raw["counts"].items()},
            files=_files(raw["files"]),
        )
    except FileNotFoundError:
        return None
    except OSError as error:
        raise files.failure("read", target, error) from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise StorageFailed(
            f"`{path}` is damaged", hint="move it away; what was imported stays as it is"
        ) from None


def write(root: Path, path: str, manifest: Manifest) -> None:
    """Puts a manifest in the place of an earlier one. Raises `StorageFailed`."""
    told = {
        "source": manifest.source,
        "digest": manifest.digest,
        "backup": manifest.backup,
        "began": manifest.began.isoformat(),
        "finished": manifest.finished.isoformat() if manifest.finished else None,
        "counts": dict(manifest.counts),
        "files": dict(manifest.files),
    }
    data = json.dumps(told, indent=1, ensure_ascii=True).encode()
    files.replace(files.safe_path(root, path), data + b"\n", mode=0o600)


def forget(root: Path, path: str) -> None:
    """Removes a manifest. Raises `StorageFailed`."""
    files.remove(files.safe_path(root, path))


def _files(raw: Any) -> dict[str, str]:
    """Returns the listed files; raises `ValueError` for what no import writes."""
    for path, hexadecimal in raw.items():
        if not _PATH.fullmatch(path) or not _DIGEST.fullmatch(hexadecimal):
            raise ValueError(path)
    return dict(raw)
