"""Global edges: Markdown files in the user's `$MIND_HOME/edges/`, and a cache of them."""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mimo import disk
from mimo.disk import Stamp
from mimo.errors import StorageFailed
from mimo.memory.model import Kind, Memory, Place, Problem, Record
from mimo.store import files
from mimo.store.locking import lock
from mimo.store.walk import is_markdown, stamp_of

_FORMAT = 1
_SETTLED_NS = 2_000_000_000
"""A file that was just written may change again without a new stamp."""


class EdgeCache:
    """Records by file name, valid while the stamp of the file stays the same; parsing is slow."""

    def __init__(self, path: Path) -> None:
        """Take the cache's own file; nothing is read yet."""
        self._path = path
        self._rows: Mapping[str, Any] | None = None
        self._new: dict[str, Any] = {}

    def get(self, name: str, stamp: Stamp) -> Record | None:
        """Returns the record of a file; None if it is not cached or the file has changed."""
        row = self._cached().get(name)
        try:
            if row is None or row[0] != list(stamp):
                return None
            found = _record(row[1])
        except (TypeError, ValueError, KeyError, IndexError):
            return None
        self._new[name] = row
        return found

    def put(self, name: str, stamp: Stamp, record: Record) -> None:
        """Adds the record of a file."""
        if time.time_ns() - max(stamp.mtime_ns, stamp.ctime_ns) > _SETTLED_NS:
            self._new[name] = [list(stamp), _row(record)]

    def save(self) -> None:
        """Writes the records that were used or added, if they differ from the file."""
        if self._new == self._cached():
            return
        data = json.dumps({"format": _FORMAT, "edges": self._new}, default=str).encode()
        with suppress(StorageFailed):
            files.replace(self._path, data, mode=0o600)

    def _cached(self) -> Mapping[str, Any]:
        if self._rows is None:
            self._rows = self._read()
        return self._rows

    def _read(self) -> Mapping[str, Any]:
        try:
            found = json.loads(disk.read(self._path))
            rows = found["edges"] if found["format"] == _FORMAT else {}
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return {}
        return rows if isinstance(rows, dict) else {}


def _row(record: Record) -> dict[str, Any]:
    memory, place = record.memory, record.place
    return {
        "id": memory.id,
        "title": memory.title,
        "content": memory.content,
        "created": memory.created.isoformat(),
        "source": memory.source,
        "by": memory.by,
        "extra": memory.extra,
        "path": place.path,
        "line": place.line,
        "digest": place.digest,
        "owned": place.owned,
    }


def _record(row: Mapping[str, Any]) -> Record:
    memory = Memory(
        id=row["id"],
        type=Kind.EDGE,
        title=row["title"],
        content=row["content"],
        created=datetime.fromisoformat(row["created"]),
        source=row["source"],
        by=row["by"],
        extra=row["extra"],
    )
    place = Place(path=row["path"], line=row["line"], digest=row["digest"], owned=row["owned"])
    return Record(memory=memory, place=place)


FOLDER = "edges"
STARTER = Path(__file__).parents[2] / "starter"
"""Well-known edges that come with the package, in the same format."""


class GlobalEdges:
    """The files of `$MIND_HOME/edges/`; their paths are relative to `$MIND_HOME`."""

    def __init__(self, home: Path) -> None:
        """Take $MIND_HOME; nothing is read yet."""
        self.home = home

    def all(self) -> tuple[tuple[Record, ...], tuple[Problem, ...]]:
        """Returns the edges, sorted by their files, and the files that can't be read as one."""
        cache = EdgeCache(self.home / "cache" / "edges.json")
        found = _divided(_read(self.home / FOLDER, FOLDER, cache))
        cache.save()
        return found

    def create(self, memory: Memory) -> Record:
        """Writes a new edge and returns it as it will be read. The caller holds the lock.

        Raises `Conflict` if its id has a file, `Invalid`, and `StorageFailed`.
        """
        from mimo.memory import codec

        return self._put(memory, codec.render(memory))

    def adopt(self, record: Record) -> Record:
        """Copies the file of a starter edge. The caller holds the lock."""
        return self._put(record.memory, disk.read(STARTER / Path(record.place.path).name))

    def locked(self) -> AbstractContextManager[None]:
        """Returns the lock under which edges are compared and written."""
        return lock(self.home / FOLDER / ".lock")

    def _put(self, memory: Memory, data: bytes) -> Record:
        path = f"{FOLDER}/{memory.id}.md"
        files.write_new(self.home / path, data)
        found = _edge_of(data, path, memory.created)
        if isinstance(found, Problem):
            raise StorageFailed(f"`{path}` can't be read: {found.reason}")
        return found


def starter() -> tuple[Record, ...]:
    """Returns the edges that come with the package, sorted by their files."""
    return _divided(_read(STARTER, "starter"))[0]


def _read(folder: Path, name: str, cache: EdgeCache | None = None) -> Iterator[Record | Problem]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(e.name for e in entries if is_markdown(e.name) and e.name[0] != ".")
    except FileNotFoundError:
        return
    except OSError as error:
        yield Problem(path=name, line=None, reason=(error.strerror or str(error)).lower())
        return
    for file in names:
        try:
            yield _record_of(folder / file, f"{name}/{file}", cache)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            yield Problem(path=f"{name}/{file}", line=None, reason=reason)


def _record_of(file: Path, path: str, cache: EdgeCache | None) -> Record | Problem:
    """Returns the edge in a file, which is read only if it is not cached."""
    if cache and (before := cache.get(file.name, stamp_of(file.lstat()))):
        return before
    data, status = disk.look(file)
    found = _edge_of(data, path, datetime.fromtimestamp(status.st_mtime, UTC))
    if cache and isinstance(found, Record):
        cache.put(file.name, stamp_of(status), found)
    return found


def _edge_of(data: bytes, path: str, modified: datetime) -> Record | Problem:
    from mimo.memory import codec

    # Parsed like a file of the store, whose folder determines the type.
    found = codec.parse(data, path=f".mind/edges/{Path(path).name}", modified=modified)
    if isinstance(found, Problem):
        return replace(found, path=path)
    if found.memory.type is not Kind.EDGE:
        return Problem(path=path, line=None, reason=f"its type is {found.memory.type}, not edge")
    place = Place(path=path, line=found.line, digest=files.digest(data), owned=found.owned)
    return Record(memory=found.memory, place=place)


def _divided(
    found: Iterator[Record | Problem],
) -> tuple[tuple[Record, ...], tuple[Problem, ...]]:
    everything = list(found)
    records = tuple(record for record in everything if isinstance(record, Record))
    return records, tuple(problem for problem in everything if isinstance(problem, Problem))
