"""The fingerprint of an index, equal for two that are the same to mind although bytes differ."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from mimo.data.disk import Stamp

_NUMBER = re.compile(r"\b\d{16,20}\b")
_BESIDE = ("-wal", "-shm", "-journal")
_FILES = "SELECT path, size, mtime_ns, ctime_ns, inode, looked_at_ns FROM files ORDER BY path"


def fingerprint(folder: Path, times: Mapping[int, str]) -> Iterator[str]:
    """Yields what the files of an index hold.

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
            elif path.is_file():
                yield named(path.read_bytes().decode("latin-1"))


def _database(copy: Path, root: Path) -> Iterator[str]:
    """Yields the rows, without the random identity of the file."""
    try:
        with contextlib.closing(sqlite3.connect(copy)) as sql:
            yield from map(repr, sql.execute("PRAGMA integrity_check"))
            names = sql.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
            for table, words in names.fetchall():
                yield f"{table} {words}"
                if table == "files":
                    for row in sql.execute(_FILES):
                        yield repr(_file(root, *row))
                elif "fts5" not in words and table != "cache":
                    yield from map(repr, sql.execute(f'SELECT * FROM "{table}"'))
    except sqlite3.DatabaseError as error:
        yield f"{type(error).__name__}: {error}"


def _file(
    root: Path, path: str, size: int, mtime: int, ctime: int, inode: str, looked_at: int
) -> tuple[str, bool, bool]:
    """Returns whether the index has the present stamp of a file, taken after its last change."""
    with contextlib.suppress(OSError):
        same = Stamp(size, mtime, ctime, int(inode)) == Stamp.of(os.lstat(root / path))
        return path, same, looked_at > max(mtime, ctime)
    return path, False, False
