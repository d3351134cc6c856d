"""What the edges of the user's home said when they were read last: Markdown takes long to read.

A file that may be deleted at any time; a file of an edge that changed is read again.
"""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from mimo.domain.memory import Kind, Memory, Place, Record
from mimo.domain.stamp import Stamp
from mimo.errors import StorageFailed
from mimo.store import files

_FORMAT = 1
_SETTLED_NS = 2_000_000_000
"""A file that was just written may change once more without another stamp."""


class EdgeCache:
    """Records by the name of their file, for as long as its stamp stays the same."""

    def __init__(self, path: Path) -> None:
        """Take the cache's own file; nothing is read yet."""
        self._path = path
        self._rows: Mapping[str, Any] | None = None
        self._new: dict[str, Any] = {}

    def get(self, name: str, stamp: Stamp) -> Record | None:
        """Returns what a file said, or None where that is not known any more."""
        row = self._known().get(name)
        try:
            if row is None or row[0] != list(stamp):
                return None
            found = _record(row[1])
        except (TypeError, ValueError, KeyError, IndexError):
            return None
        self._new[name] = row
        return found

    def put(self, name: str, stamp: Stamp, record: Record) -> None:
        """Takes up what a file says."""
        if time.time_ns() - max(stamp.mtime_ns, stamp.ctime_ns) > _SETTLED_NS:
            self._new[name] = [list(stamp), _row(record)]

    def save(self) -> None:
        """Writes what was asked for and taken up, where that is not there yet and may be."""
        if self._new == self._known():
            return
        data = json.dumps({"format": _FORMAT, "edges": self._new}, default=str).encode()
        with suppress(StorageFailed):
            files.replace(self._path, data, mode=0o600)

    def _known(self) -> Mapping[str, Any]:
        if self._rows is None:
            self._rows = self._read()
        return self._rows

    def _read(self) -> Mapping[str, Any]:
        try:
            found = json.loads(files.read(self._path))
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
