"""The files of a past commit, read from git's objects as if they stood in the project."""

from collections.abc import Iterable
from datetime import datetime

from mimo.domain.memory import Problem, Record
from mimo.domain.stamp import Stamp
from mimo.store import files, revisions
from mimo.store.accesses import Accesses
from mimo.store.memories import MemoryStore, records_of
from mimo.store.repository import Repository
from mimo.store.revisions import Commit
from mimo.store.walk import Walk

_AT_ONCE = 500
"""Blobs that are asked for together: they are wanted in the order of the files."""


class PastStore(MemoryStore):
    """Reads the memories of a commit; nothing of it can be changed."""

    def __init__(self, repository: Repository, commit: Commit) -> None:
        """Take the repository and the commit; nothing is read yet."""
        super().__init__(repository.root)
        self.repository = repository
        self.commit = commit
        self._files: dict[str, str] | None = None
        self._known: dict[str, bytes] = {}

    def walk(self) -> Walk:
        """Returns a stamp for each file, made from the name of its blob."""
        self._problems = ()
        return Walk(stamps={path: _stamp(blob) for path, blob in self._blobs().items()})

    def folders(self) -> tuple[()]:
        """Returns nothing to watch: the past does not change."""
        return ()

    def read(self, path: str) -> tuple[Record, ...] | Problem:
        """Returns the memories in a file as it was, or why there are none."""
        data = self.data(path)
        if data is None:
            return Problem(path=path, line=None, reason="git has lost its content")
        return records_of(data, path, self.commit.when)

    def digest(self, path: str) -> str:
        """Returns the digest of a file's bytes; empty where there was none."""
        data = self.data(path)
        return "" if data is None else files.digest(data)

    def raw(self, record: Record) -> bytes:
        """Returns the bytes of a memory's file."""
        return self.data(record.place.path) or b""

    def data(self, path: str) -> bytes | None:
        """Returns the bytes of a file, and keeps those that will be asked for next."""
        blob = self._blobs().get(path)
        if blob is None:
            return None
        if blob not in self._known:
            names = list(self._blobs().values())
            place = names.index(blob)
            wanted = names[place : place + _AT_ONCE]
            self._known = revisions.blobs(self.repository, wanted)
        return self._known.get(blob)

    def _blobs(self) -> dict[str, str]:
        if self._files is None:
            self._files = revisions.files(self.repository, self.commit.id)
        return self._files


class Uncounted(Accesses):
    """Looks at the past keep nothing from fading."""

    def note(self, ids: Iterable[str], now: datetime) -> None:
        """Counts nothing."""


def _stamp(blob: str) -> Stamp:
    """Returns the name of a blob as the four numbers of a stamp."""
    parts = [int(blob[start : start + 15] or "0", 16) for start in (0, 15, 30, 45)]
    return Stamp(*parts)
