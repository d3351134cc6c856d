"""The fingerprint of an index, equal for two that are the same to mind although bytes differ."""

import contextlib
import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from mimo.disk import Stamp
from mimo.errors import MindError
from mimo.index import pages
from mimo.index.database import Database

_NUMBER = re.compile(r"\b\d{16,20}\b")
_BESIDE = ("-wal", "-shm", "-journal")
_FILES = "SELECT path, size, mtime_ns, ctime_ns, inode, looked_at_ns FROM files ORDER BY path"


def fingerprint(folder: Path, times: Mapping[int, str]) -> Iterator[str]:
    """Yields what the files of an index hold, and whether mind finds them sound.

    Args:
        folder: The `.index`, which is only copied.
        times: By each time of a file in nanoseconds, the file that has it.
    """

    def named(text: str) -> str:
        return _NUMBER.sub(lambda number: times.get(int(number[0]), "NUMBER"), text)

    with tempfile.TemporaryDirectory() as name:
        copy = Path(name, "index")
        shutil.copytree(folder, copy, symlinks=True)
        # Opening a database removes what SQLite keeps beside it.
        for path in sorted(each for each in copy.rglob("*") if not each.name.endswith(_BESIDE)):
            place = path.relative_to(copy)
            yield f"{place} {path.lstat().st_mode}"
            if path.name.endswith(".db"):
                yield from map(named, _database(path, folder.parent.parent))
            elif path.name.endswith(".db-sums"):
                yield named(_sums(folder / place))
            elif path.is_file():
                yield named(path.read_bytes().decode("latin-1"))


def _sums(path: Path) -> str:
    """Returns whether the checksums are for the database as it is; the pages are compared later."""
    database = path.with_name(path.name.removesuffix("-sums"))
    with contextlib.suppress(OSError), path.open("rb") as file:
        head = pages._read(file.fileno())
        return f"{head is not None and head.stamp == Stamp.of(database.stat())}"
    return "none"


def _database(copy: Path, root: Path) -> Iterator[str]:
    """Yields the rows, after mind's own comparison of the pages."""
    if copy.with_name(f"{copy.name}-sums").exists():
        yield _verdict(Database(copy))
    try:
        with contextlib.closing(sqlite3.connect(copy)) as sql:
            yield from map(repr, sql.execute("PRAGMA integrity_check"))
            names = sql.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
            for table, words in names.fetchall():
                yield f"{table} {words}"
                if table == "files":
                    for row in sql.execute(_FILES):
                        yield repr(_file(root, *row))
                elif "fts5" not in words:
                    yield from map(repr, sql.execute(f'SELECT * FROM "{table}"'))
    except sqlite3.DatabaseError as error:
        yield f"{type(error).__name__}: {error}"


def _verdict(database: Database) -> str:
    """Returns whether mind finds the pages sound."""
    try:
        with database.reading():
            return "sound"
    except MindError as error:
        return f"{type(error).__name__}: {error}".replace(str(database.path), "PATH")
    finally:
        database.close()


def _file(
    root: Path, path: str, size: int, mtime: int, ctime: int, inode: str, looked_at: int
) -> tuple[str, bool, bool]:
    """Returns whether the index has the present stamp of a file, taken after its last change."""
    with contextlib.suppress(OSError):
        same = Stamp(size, mtime, ctime, int(inode)) == Stamp.of(os.lstat(root / path))
        return path, same, looked_at > max(mtime, ctime)
    return path, False, False
