"""Which file of a folder is the index: the highest generation that can be used.

Generations are `index.db`, `index-1.db`, …. A damaged file is never repaired or renamed over, since
others may have it open: a higher generation takes its place, and files that nobody uses any more
are removed later.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from mimo import permissions
from mimo.errors import StorageFailed
from mimo.index import schema
from mimo.index.database import (
    Database,
    Unusable,
    beside,
    generations,
    path_of,
    translated,
)


def open_newest(folder: Path, owner: str = "") -> Database:
    """Returns the index of a folder; an empty one where there is none that can be used.

    Raises `StorageFailed` where the folder can't be written.
    """
    _make_writable(folder)
    for number in reversed(generations(folder)):
        database = Database(path_of(folder, number), number)
        if _verdict(database, owner) is None:
            break
        database.close()
    else:
        database = make_next(folder, owner)
    _tidy(folder, database.generation, owner)
    return database


def make_next(folder: Path, owner: str = "") -> Database:
    """Returns an empty database of the next generation.

    It appears in the folder complete, and if another process was quicker, theirs is taken.
    """
    number = max(generations(folder), default=-1) + 1
    path = path_of(folder, number)
    draft = folder / f"draft-{os.getpid()}-{number}.db"
    with translated(path), _writable(folder):
        draft.unlink(missing_ok=True)
        try:
            permissions.make_database(draft)
            with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
                schema.create(connection, owner)
                connection.execute("PRAGMA journal_mode = WAL")
            with suppress(FileExistsError):
                _publish(draft, path)
        finally:
            for suffix in ("", "-journal", "-wal", "-shm"):
                beside(draft, suffix).unlink(missing_ok=True)
    return Database(path, number)


def identity(database: Database) -> object:
    """Returns a value that changes when the file is removed or a newer generation appears."""
    if database.path is None:
        return None
    try:
        inode = database.path.stat().st_ino
    except OSError:
        inode = 0
    return inode, max(generations(database.path.parent), default=-1)


def _publish(draft: Path, path: Path) -> None:
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        raise
    except OSError:
        # Some file systems have no hard links.
        if path.exists():
            raise FileExistsError from None
        draft.rename(path)


def _make_writable(folder: Path) -> None:
    with _writable(folder):
        permissions.make_folder(folder)
        if not os.access(folder, os.W_OK):
            raise PermissionError


@contextmanager
def _writable(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageFailed(
            f"the index folder `{folder}` can't be written",
            hint="give yourself write permission, or move away the file in its place",
        ) from error


def _verdict(database: Database, owner: str) -> Unusable | None:
    """Returns why a database can't be used; None where it can."""
    try:
        database.check(owner)
    except Unusable as reason:
        return reason
    return None


def _tidy(folder: Path, ours: int, owner: str) -> None:
    """Removes generations that are of no use to anybody; best effort."""
    for number in generations(folder):
        if number == ours:
            continue
        path = path_of(folder, number)
        database = Database(path, number)
        verdict = _verdict(database, owner)
        database.close()
        ours_is_better = number < ours or verdict is not None
        if ours_is_better and not (verdict and verdict.newer) and database.is_idle():
            for suffix in ("", "-wal", "-shm"):
                with suppress(OSError):
                    beside(path, suffix).unlink()
