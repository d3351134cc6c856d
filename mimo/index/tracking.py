"""Tracks the revisions of the index, the claims of texts, and the files on the disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from mimo.data.disk import Stamp
from mimo.frozen import NamedTuple
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
    is_of = "approved(s.digest)" if approved else "NOT approved(s.digest)"
    among = "" if places is None else f"AND s.path IN ({marks(places)})"
    selected = sql.execute(
        "SELECT claim(s.id, l.target) AS claimed FROM memories s"
        " JOIN links l ON l.source = s.key AND l.type = 'supersedes'"
        f" WHERE {is_of} AND NOT approved(claimed) {among}",
        places or (),
    )
    return tuple({claim for (claim,) in selected})


# Files, and which of them have been compared with the disk. After all were compared, the digests of
# portions of them are noted. The next comparison reads the rows of the portions that differ, and of
# the files that were written to the index since.

_DIGEST, _COUNT = 16, 4
"""The lengths of a digest and of a number of files, in bytes."""

_MOST_WRITTEN = 1_000
"""The number of files whose writing is noted. After more, all must be compared."""


class ComparedFiles(NamedTuple):
    """The files that were on the disk and in the index alike."""

    portions: Mapping[bytes, int]
    """Their portions by digest, with the number of files in each."""
    written: Mapping[str, bool]
    """The paths that were written to the index since, and whether the index had them before."""


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


def compared(sql: sqlite3.Connection) -> tuple[int, ComparedFiles | None]:
    """Returns the revision, and the files that were last compared; None if all must be."""
    revision = totals(sql).revision
    noted = dict(sql.execute("SELECT name, value FROM meta").fetchall())
    if "compared" not in noted:
        return revision, None
    data, size = noted["compared"], _DIGEST + _COUNT
    entries = [data[start : start + size] for start in range(0, len(data), size)]
    alike = {entry[:_DIGEST]: int.from_bytes(entry[_DIGEST:], "big") for entry in entries}
    return revision, ComparedFiles(alike, _written(noted["written"]))


def note_compared(sql: sqlite3.Connection, alike: Mapping[bytes, int], revision: int) -> None:
    """Notes the portions of the files that are alike, if the index still has that revision."""
    data = b"".join([digest + count.to_bytes(_COUNT, "big") for digest, count in alike.items()])
    note = "INSERT OR REPLACE INTO meta SELECT ?, ? FROM totals WHERE revision = ?"
    sql.executemany(note, [("compared", data, revision), ("written", b"", revision)])


def note_written(sql: sqlite3.Connection, written: Mapping[str, bool]) -> None:
    """Notes paths that are written to the index, and whether it had them before."""
    noted = sql.execute("SELECT value FROM meta WHERE name = 'written'").fetchone()
    if noted is None:
        return
    all_paths = {**written, **_written(noted[0])}
    if len(all_paths) > _MOST_WRITTEN:
        forget(sql)
        return
    parts = [f"{int(was_stored)}{path}" for path, was_stored in all_paths.items()]
    data = "\0".join(parts).encode("utf-8", "surrogateescape")
    sql.execute("UPDATE meta SET value = ? WHERE name = 'written'", (data,))


def forget(sql: sqlite3.Connection) -> None:
    """Removes the notes: all files must be compared."""
    sql.execute("DELETE FROM meta WHERE name IN ('compared', 'written')")


def _written(data: bytes) -> dict[str, bool]:
    parts = data.decode("utf-8", "surrogateescape").split("\0") if data else []
    return {part[1:]: part[0] == "1" for part in parts}
