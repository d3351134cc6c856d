"""Tracks the revisions of the index, the claims of texts, and the files on the disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from mimo.data.disk import Stamp
from mimo.index.schema import from_sql, marks, portions, to_sql, totals


def has_changes_since(sql: sqlite3.Connection, revision: int) -> bool:
    """Returns whether the changes after a revision are stored."""
    query = "SELECT ? BETWEEN touched_after AND revision FROM totals"
    return bool(sql.execute(query, (revision,)).fetchone()[0])


def latest(sql: sqlite3.Connection, end: int) -> int | None:
    """Returns the newest time of a memory up to `end`, in microseconds since 1970."""
    query = "SELECT max(created) FROM memories WHERE shadowed = 0 AND created <= ?"
    time: int | None = sql.execute(query, (end,)).fetchone()[0]
    return time


def changed_since(sql: sqlite3.Connection, revision: int) -> list[int] | None:
    """Returns the keys of memories that changed after a revision, sorted; None if not stored."""
    if not has_changes_since(sql, revision):
        return None
    selected = sql.execute("SELECT DISTINCT memory FROM changed WHERE revision > ?", (revision,))
    return sorted(key for (key,) in selected)


def changes_since(sql: sqlite3.Connection, revision: int, memories: int) -> int | None:
    """Returns the number of changes after a revision that had some memories; None if not stored.

    A memory that was added or changed is one change, and so is a removed one, unless another was
    added. A file that was read again is a change of its memories, too.
    """
    if not has_changes_since(sql, revision):
        return None
    (changed,) = sql.execute(
        "SELECT count(DISTINCT c.memory) FROM changed c JOIN memories m ON m.key = c.memory"
        " WHERE c.revision > ?",
        (revision,),
    ).fetchone()
    return max(int(changed), int(changed) + memories - totals(sql).memories)


def fingerprint(sql: sqlite3.Connection) -> int:
    """Returns a number that changes with each change of the memories that are not private."""
    (number,) = sql.execute(
        "SELECT count(*) + coalesce(sum(checksum), 0) FROM memories WHERE private = 0"
    ).fetchone()
    return int(number)


def vector_names(sql: sqlite3.Connection) -> set[bytes]:
    """Returns the names of the vectors of all units."""
    return {name for (name,) in sql.execute("SELECT vector FROM units")}


def memories_of(sql: sqlite3.Connection, vectors: Collection[bytes]) -> list[int]:
    """Returns the keys of the memories that have units with some vectors, in ascending order."""
    keys: set[int] = set()
    for some in portions(list(vectors)):
        query = f"SELECT memory FROM units WHERE vector IN ({marks(some)})"
        keys.update(key for (key,) in sql.execute(query, some))
    return sorted(keys)


def new_claims(
    sql: sqlite3.Connection,
    places: Sequence[str | bytes] | None = None,
    *,
    approved: bool = True,
) -> tuple[str, ...]:
    """Returns the digests of the claims of approved texts that are not approved yet.

    With `places`, only of the texts in these files, which are given as `to_sql` returns them.
    Without `approved`, those of unapproved texts.
    """
    is_of = "approved(s.approval)" if approved else "NOT approved(s.approval)"
    among = "" if places is None else f"AND s.shadowed IN (0, 1) AND s.path IN ({marks(places)})"
    selected = sql.execute(
        "SELECT claim(s.id, l.target) AS claimed FROM memories s"
        " JOIN links l ON l.source = s.key AND l.type = 'supersedes'"
        f" WHERE {is_of} AND NOT approved(claimed) {among}",
        places or (),
    )
    return tuple({claim for (claim,) in selected})


# Files, and whether all of them have been compared with the disk.


def stamps(
    sql: sqlite3.Connection, paths: Collection[str] | None = None
) -> dict[str, tuple[Stamp, int]]:
    """Returns, by path, the stamp of each indexed file and the time (ns) at which it was read.

    With `paths`, only of these files.
    """
    query = "SELECT path, size, mtime_ns, ctime_ns, inode, looked_at_ns FROM files"
    if paths is None:
        return _stamps(sql.execute(query))
    stored: dict[str, tuple[Stamp, int]] = {}
    for some in portions([to_sql(path) for path in paths]):
        stored |= _stamps(sql.execute(f"{query} WHERE path IN ({marks(some)})", some))
    return stored


def _stamps(selected: Iterable[tuple[Any, ...]]) -> dict[str, tuple[Stamp, int]]:
    return {
        from_sql(path): (Stamp(size, mtime, ctime, int(inode)), looked_at)
        for path, size, mtime, ctime, inode, looked_at in selected
    }


def paths_of_files(sql: sqlite3.Connection) -> list[str]:
    """Returns the paths of all indexed files."""
    return [from_sql(path) for (path,) in sql.execute("SELECT path FROM files")]


def has_below(sql: sqlite3.Connection, folder: str) -> bool:
    """Returns whether there is an indexed file in a folder, or in one below it."""
    between = (to_sql(f"{folder}/"), to_sql(f"{folder}0"))  # "0" follows "/".
    query = "SELECT 1 FROM files WHERE path > ? AND path < ? LIMIT 1"
    return sql.execute(query, between).fetchone() is not None


def count_files(sql: sqlite3.Connection) -> int:
    """Returns the number of indexed files."""
    (files,) = sql.execute("SELECT count(*) FROM files").fetchone()
    return int(files)


def has_all(sql: sqlite3.Connection, digest: bytes) -> bool:
    """Returns whether the index has all files on the disk, whose digest is given."""
    noted = sql.execute("SELECT value FROM meta WHERE name = 'alike'").fetchone()
    return bool(noted == (f"{totals(sql).revision} {digest.hex()}",))


def note_digest(sql: sqlite3.Connection, digest: bytes, revision: int) -> None:
    """Notes the digest of all files, which the index has if it still has that revision."""
    note(sql, "alike", f"{revision} {digest.hex()}", revision)


def note(sql: sqlite3.Connection, name: str, value: str, revision: int) -> None:
    """Notes a value by its name, if the index still has that revision."""
    statement = "INSERT OR REPLACE INTO meta SELECT ?, ? FROM totals WHERE revision = ?"
    sql.execute(statement, (name, value, revision))
