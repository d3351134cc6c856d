"""Values under keys, in namespaces.

Permanent values are Markdown files, `.mind/values/<namespace>/<key>.md`. Values with a time to
live, and all values of a session, are in a database of this machine. The codec is imported only if
a file is read or written, since most projects have none.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from mimo.data import disk, files
from mimo.data.disk import STORE
from mimo.data.failures import failure
from mimo.data.loads import loads
from mimo.data.locks import lock
from mimo.data.sqlite import Database
from mimo.errors import Command, Hint, Invalid, MindError, QuotaExceeded, StorageFailed
from mimo.frozen import frozen
from mimo.memory.approval import approval_of
from mimo.memory.ids import SUFFIX, check_key, check_namespace, is_passing, stem_of
from mimo.memory.model import Problem

FOLDER = f"{STORE}/values"
MOST_ITEMS = 1_000
MOST_BYTES = 10 * 1024 * 1024
"""Maximum number of values in a namespace, and of their bytes."""

_SCHEMA = (
    "CREATE TABLE entries (namespace TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, "
    "written REAL NOT NULL, ttl REAL, PRIMARY KEY (namespace, key)) WITHOUT ROWID"
)
_DELETE = "DELETE FROM entries WHERE namespace = ? AND key = ?"
_Row = tuple[str, float, int | None]
"""The text of a temporary value, the time it was written, and its time to live in seconds."""
_ALIVE = "(ttl IS NULL OR (written + ttl > :now))"


@frozen
class Found:
    """A value and its place."""

    value: Any
    expires: datetime | None = None
    """The time of expiry of a temporary value; None without a time to live."""
    file: str | None = None
    """The file of a permanent value."""
    approval: str | None = None
    """The name that approves the file."""


class ValueFiles:
    """The permanent values of one project. Hold the lock to write."""

    def __init__(self, root: Path) -> None:
        """Takes a project's root; nothing is read yet."""
        self._root = root

    def read(self, namespace: str, key: str) -> Found | None:
        """Returns a value, or None.

        Raises `StorageFailed` if its file can't be read.
        """
        entry = self._look(path_of(namespace, key), namespace)
        if isinstance(entry, Problem):
            place = f"{entry.path}:{entry.line}" if entry.line else entry.path
            raise StorageFailed(
                f"`{place}`: {entry.reason}",
                hint="the file was left as it is; mend it or move it away",
                details={"file": entry.path, "line": entry.line},
            )
        return entry[1] if entry else None

    def keys(self, namespace: str) -> list[str]:
        """Returns the keys of a namespace, unsorted; files with other names are ignored.

        A file is read only if its name does not show its key.
        """
        folder = f"{FOLDER}/{stem_of(namespace)}"
        keys = []
        for entry in _listed(files.safe_path(self._root, folder)):
            stem = entry.name.removesuffix(SUFFIX)
            if stem == entry.name or entry.name.startswith("."):
                continue
            if stem_of(stem) == stem and "~" not in stem:
                keys.append(stem)
                continue
            if isinstance(value := self._look(f"{folder}/{entry.name}", namespace), tuple):
                keys.append(value[0])
        return keys

    def size(self, namespace: str, *, but: str) -> tuple[int, int]:
        """Returns the number of files and their total size, without the file of one key."""
        target = files.safe_path(self._root, path_of(namespace, but))
        sizes = [
            entry.stat(follow_symlinks=False).st_size
            for entry in _listed(target.parent)
            if entry.name.endswith(SUFFIX) and entry.name != target.name
        ]
        return len(sizes), sum(sizes)

    def write(self, namespace: str, key: str, value: Any) -> Found:
        """Writes a value, and replaces the earlier one, whose file can be read.

        Other keys in the header of that file are kept. Raises `StorageFailed`.
        """
        from mimo.memory.codec import value as codec

        path = path_of(namespace, key)
        target = files.safe_path(self._root, path)
        old_data = files.content(target)
        extra = codec.other_keys(old_data) if old_data else {}
        data = codec.render(namespace, key, value, extra)
        files.replace(target, data)
        return Found(value=value, file=path, approval=approval_of(path, data))

    def remove(self, namespace: str, key: str) -> bool:
        """Removes a value and returns whether there was one. Raises `StorageFailed`."""
        if self.read(namespace, key) is None:
            return False
        files.remove(files.safe_path(self._root, path_of(namespace, key)))
        return True

    def everything(self) -> Iterator[Found | Problem]:
        """Yields every value, and a problem for every other file."""
        base = files.safe_path(self._root, FOLDER)
        for folder in _sorted(base):
            place = f"{FOLDER}/{folder.name}"
            if folder.name.startswith("."):
                continue
            if not folder.is_dir(follow_symlinks=False):
                yield Problem(path=place, line=None, reason="is outside of any namespace")
                continue
            for entry in _sorted(Path(folder.path)):
                if entry.name.startswith("."):
                    continue
                path = f"{place}/{entry.name}"
                if file := self._look(path, None):
                    yield file if isinstance(file, Problem) else file[1]

    def _look(self, relative: str, namespace: str | None) -> tuple[str, Found] | Problem | None:
        """Returns the key and value of a file, the problem with it, or None if it is missing."""
        from mimo.memory.codec import value as codec
        from mimo.memory.codec.document import Unreadable

        try:
            path = files.safe_path(self._root, relative)
            data, _ = disk.look(path, limit=codec.MAX_FILE_BYTES)
            header_namespace, key, value = codec.parse(data)
            codec.packed(value)
            key = _checked(relative, header_namespace, key, namespace)
        except FileNotFoundError:
            return None
        except Unreadable as error:
            return Problem(path=relative, line=error.line, reason=error.reason)
        except MindError as error:
            return Problem(path=relative, line=None, reason=error.message)
        except OSError as error:
            return Problem(path=relative, line=None, reason=(error.strerror or str(error)).lower())
        return key, Found(value=value, file=relative, approval=approval_of(relative, data))


def path_of(namespace: str, key: str) -> str:
    """Returns the file of a value, relative to the project's root."""
    return f"{FOLDER}/{stem_of(namespace)}/{stem_of(key)}{SUFFIX}"


def _checked(
    relative: str, header_namespace: str | None, key: str | None, namespace: str | None
) -> str:
    """Returns the key of a file. Raises `Unreadable` if its header contradicts its path."""
    from mimo.memory.codec.document import Unreadable

    folder, name = relative.split("/")[-2:]
    stem = name.removesuffix(SUFFIX)
    value_namespace = header_namespace or namespace or folder
    value_key = key or stem
    try:
        right = path_of(check_namespace(value_namespace), check_key(value_key))
    except Invalid as error:
        raise Unreadable(f"{error.message}; its header must name it", 1) from None
    if right != relative or (namespace and value_namespace != namespace):
        raise Unreadable(f"`{value_key}` of `{value_namespace}` belongs into `{right}`", 1)
    return value_key


def _sorted(folder: Path) -> list[os.DirEntry[str]]:
    return sorted(_listed(folder), key=lambda entry: entry.name)


def _listed(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise failure("list", folder, error) from error


class Values:
    """The values of one project; may be used by several threads and processes at once."""

    def __init__(self, root: Path, owner: str, *, is_later: bool = False) -> None:
        """Takes a project's root and the user's secret; nothing is read yet.

        With `is_later`, a later version of mind wrote the store: expired values stay in it.
        """
        self._root = root
        self._is_later = is_later
        self.secret = disk.sha256(f"cursors {owner}".encode())
        self._files = ValueFiles(root)
        self._database = Database(
            partial(files.local, root, f"{files.own_name('values', owner)}.db"), _SCHEMA
        )

    def get(self, namespace: str, key: str, now: datetime) -> Found | None:
        """Returns a value, or None. Raises `StorageFailed` if it can't be read."""
        self.expire(now)
        if (value := self._temporary(namespace, key, now)) or is_passing(namespace):
            return value
        # A writer may move the value from its file into the database between the two reads.
        return self._files.read(namespace, key) or self._temporary(namespace, key, now)

    def put(self, namespace: str, key: str, value: Any, ttl: int | None, now: datetime) -> Found:
        """Writes a value, and replaces the earlier one; with a `ttl` of 0 it expires at once.

        Raises `Invalid` if it is not JSON, `QuotaExceeded`, and `StorageFailed`; the earlier value
        is then unchanged.
        """
        from mimo.memory.codec.value import packed

        text = packed(value)
        with self.locked():
            self.expire(now)
            self._check_room(namespace, key, len(text.encode()), now)
            # Raises for a broken file, before anything is written.
            in_file = not is_passing(namespace) and self._files.read(namespace, key) is not None
            if ttl is None and not is_passing(namespace):
                return self._write_file(namespace, key, value, now)
            row = (text, now.timestamp(), ttl)
            earlier = self._set_row(namespace, key, row)
            if in_file:
                try:
                    self._files.remove(namespace, key)
                except BaseException:
                    self._set_row(namespace, key, earlier)
                    raise
            self.expire(now)
            expires = None if ttl is None else now.timestamp() + ttl
            return Found(value=value, expires=_time(expires))

    def remove(self, namespace: str, key: str, now: datetime) -> bool:
        """Removes a value and returns whether there was one. Raises `StorageFailed`."""
        with self.locked():
            self.expire(now)
            with self._deleting(namespace, key, now) as deleted:
                is_removed = not is_passing(namespace) and self._files.remove(namespace, key)
            return deleted or is_removed

    def keys(self, namespace: str, now: datetime) -> list[str]:
        """Returns the keys of a namespace, sorted."""
        self.expire(now)
        old_rows = self._alive("key", now, namespace)
        if is_passing(namespace):
            return sorted(key for (key,) in old_rows)
        # A writer may move a value in either direction between two reads.
        file_keys = self._files.keys(namespace)
        after = self._alive("key", now, namespace)
        return sorted({*(key for (key,) in (*old_rows, *after)), *file_keys})

    def restored(self, paths: Collection[str]) -> None:
        """Removes the temporary values that hide restored files. Hold the lock.

        Raises `StorageFailed`.
        """
        rows = self._rows("SELECT namespace, key FROM entries", {})
        hiding = [row for row in rows if path_of(*row) in paths]
        if hiding:
            with self._database.writing() as connection:
                connection.executemany(_DELETE, hiding)

    def expire(self, now: datetime) -> int:
        """Removes expired values and returns their number; does nothing if it can't write.

        Readers leave them out in any case. The time to live of values with a later time than now
        starts again.
        """
        values = {"now": now.timestamp()}
        due = f"SELECT 1 FROM entries WHERE NOT {_ALIVE} OR written > :now LIMIT 1"
        if self._is_later or not self._rows(due, values):
            return 0
        with suppress(StorageFailed), self._database.writing() as connection:
            removed = connection.execute(f"DELETE FROM entries WHERE NOT {_ALIVE}", values).rowcount
            connection.execute("UPDATE entries SET written = :now WHERE written > :now", values)
            return removed
        return 0

    def _temporary(self, namespace: str, key: str, now: datetime) -> Found | None:
        rows = self._alive("value, written + ttl", now, namespace, "AND key = :key", key=key)
        for value, expires in rows:
            return Found(value=loads(value), expires=_time(expires))
        return None

    def _write_file(self, namespace: str, key: str, value: Any, now: datetime) -> Found:
        """Writes a permanent value in place of a temporary one; neither changes if it fails."""
        target = files.safe_path(self._root, path_of(namespace, key))
        old_data = files.content(target)
        try:
            with self._deleting(namespace, key, now):
                return self._files.write(namespace, key, value)
        except BaseException:
            if files.content(target) != old_data:  # The database failed last.
                files.remove(target) if old_data is None else files.replace(target, old_data)
            raise

    def _set_row(self, namespace: str, key: str, row: _Row | None) -> _Row | None:
        """Writes or removes a temporary value, and returns the earlier one."""
        place = (namespace, key)
        with self._database.writing() as connection:
            query = "SELECT value, written, ttl FROM entries WHERE namespace = ? AND key = ?"
            earlier: _Row | None = connection.execute(query, place).fetchone()
            connection.execute(_DELETE, place)
            if row:
                connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", (*place, *row))
        return earlier

    @contextmanager
    def _deleting(self, namespace: str, key: str, now: datetime) -> Iterator[bool]:
        """Removes a temporary value once the block succeeds; gives whether there is one."""
        if not self._alive("1", now, namespace, "AND key = :key", key=key):
            yield False
            return
        with self._database.writing() as connection:
            connection.execute(_DELETE, (namespace, key))
            yield True

    def _alive(
        self, columns: str, now: datetime, namespace: str, more: str = "", **values: str
    ) -> list[tuple[Any, ...]]:
        """Returns rows of the temporary values in a namespace that have not expired."""
        query = f"SELECT {columns} FROM entries WHERE namespace = :namespace AND {_ALIVE} {more}"
        return self._rows(query, {"namespace": namespace, "now": now.timestamp(), **values})

    def _rows(self, query: str, values: Mapping[str, object]) -> list[tuple[Any, ...]]:
        with self._database.reading() as connection:
            return connection.execute(query, values).fetchall() if connection else []

    def locked(self) -> AbstractContextManager[None]:
        """Locks out other writers."""
        return lock(files.local(self._root, "values.lock"))

    def close(self) -> None:
        """Closes the database, if it was opened."""
        self._database.close()

    def _check_room(self, namespace: str, key: str, size: int, now: datetime) -> None:
        """Raises `QuotaExceeded` unless there is room for a value of that size."""
        from mimo.memory.codec.value import MAX_BYTES

        if size > MAX_BYTES:
            raise QuotaExceeded(
                f"the value is too large: it has {size:,} bytes, at most {MAX_BYTES:,} fit",
                hint="split it over several keys",
                details={"namespace": namespace, "quota": "value"},
            )
        columns = "COUNT(*), COALESCE(SUM(LENGTH(CAST(value AS BLOB))), 0)"
        sizes = self._alive(columns, now, namespace, "AND key <> :key", key=key) or [(0, 0)]
        if not is_passing(namespace):
            sizes.append(self._files.size(namespace, but=key))
        items, held = (sum(part) for part in zip(*sizes, strict=True))
        if items + 1 > MOST_ITEMS:
            raise _full(namespace, f"it holds {MOST_ITEMS:,} values at most", "items")
        if held + size > MOST_BYTES:
            reason = f"it holds {MOST_BYTES:,} bytes at most; {held:,} are used"
            raise _full(namespace, reason, "bytes")


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else disk.moment(seconds)


def _full(namespace: str, reason: str, quota: str) -> QuotaExceeded:
    return QuotaExceeded(
        f"`{namespace}` is full: {reason}",
        hint=Hint(
            "remove values that are not needed (",
            Command("value rm"),
            "); none is evicted automatically",
        ),
        details={"namespace": namespace, "quota": quota},
    )
