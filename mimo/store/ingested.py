"""How ingested files were when they were last read on this machine: `.mind/.local/ingested.json`.

A file whose size and time are as they were is not read again to tell whether it changed. The list
can be lost: the files are then compared by their digests.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from mimo.errors import MindError
from mimo.store import files
from mimo.store.locking import lock
from mimo.store.names import LOCAL

_LARGEST = 64 * 1024 * 1024


class Seen(NamedTuple):
    """An ingested file as it was read, and the digest of the file that keeps its chunks."""

    size: int
    mtime_ns: int
    kept: str


class IngestedFiles:
    """The list of one project, by the paths of the files relative to the project."""

    def __init__(self, root: Path) -> None:
        """Take a project's root; nothing is read yet."""
        self._root = root

    def read(self) -> dict[str, Seen]:
        """Returns the files that were read on this machine; none if the list can't be read."""
        with suppress(OSError, MindError, ValueError, TypeError, AttributeError, RecursionError):
            data, _ = files.look(self._path("ingested.json"), limit=_LARGEST)
            rows = json.loads(data)
            return {str(path): Seen(int(a), int(b), str(c)) for path, (a, b, c) in rows.items()}
        return {}

    def add(self, seen: Mapping[str, Seen]) -> None:
        """Notes files that were read. Raises `StorageFailed`."""
        with lock(self._path("ingested.lock")):
            data = json.dumps(self.read() | dict(seen), separators=(",", ":")).encode()
            files.replace(self._path("ingested.json"), data + b"\n", mode=0o600)

    def _path(self, name: str) -> Path:
        return files.safe_path(self._root, f"{LOCAL}/{name}")
