"""Whether ingested files are still as they were when they were ingested."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from mimo.errors import MindError, NotFound
from mimo.frozen import frozen
from mimo.memory.model import Record
from mimo.mind import Mind
from mimo.store import files
from mimo.store.files import LOCAL, digest
from mimo.store.locking import lock

# How ingested files were when they were last read on this machine: `.mind/.local/ingested.json`.


_INGESTED_LARGEST = 64 * 1024 * 1024


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
            data, _ = files.look(self._path("ingested.json"), limit=_INGESTED_LARGEST)
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


_LARGEST = 100_000_000


class State(StrEnum):
    """How an ingested file is now."""

    CURRENT = "current"
    CHANGED = "changed"
    MISSING = "missing"
    UNKNOWN = "unknown"
    """It was ingested on another machine and is not here, or may not be read."""


@frozen
class Checked:
    """An ingested file, by one of its chunks, and how it is now."""

    part: Record
    state: State

    @property
    def path(self) -> str:
        """Returns the path of the file, relative to the project."""
        return self.part.origin

    @property
    def message(self) -> str | None:
        """Returns why the chunks may be out of date; None if they are not."""
        if self.state is State.CHANGED:
            return f"`{self.path}` changed after it was ingested"
        if self.state is State.MISSING:
            return f"`{self.path}` no longer exists"
        return None

    @property
    def remedy(self) -> str:
        """Returns the command that refreshes or removes the chunks."""
        from shlex import quote

        if self.state is State.MISSING:
            return f"mind rm {self.part.parent}"
        options_end = "-- " if self.path.startswith("-") else ""
        return f"mind ingest --update {options_end}{quote(self.path)}"


def stale(mind: Mind, records: Sequence[Record]) -> dict[str, str]:
    """Returns, by the id of each memory whose ingested file changed, why and what to do.

    Only the files of these memories are looked at.
    """
    told = {one.part.place.path: one for one in checked(mind, records) if one.message}
    return {
        record.memory.id: f"{one.message}: `{one.remedy}`"
        for record in records
        if record.parent is not None and (one := told.get(record.place.path))
    }


def checked(mind: Mind, records: Iterable[Record]) -> tuple[Checked, ...]:
    """Returns the ingested files that the chunks among some memories are from, each once."""
    parts: dict[str, Record] = {}
    for record in records:
        if record.parent is not None:
            parts.setdefault(record.place.path, record)
    if not parts or _is_past(mind):
        return ()
    seen = IngestedFiles(mind.project.root).read()
    return tuple(Checked(part=part, state=_state(mind, part, seen)) for part in parts.values())


def _is_past(mind: Mind) -> bool:
    """Returns whether the memory is that of a commit, of whose time nothing can be checked."""
    from mimo.store.revisions import PastStore

    return isinstance(mind.store, PastStore)


def _state(mind: Mind, part: Record, seen: Mapping[str, Seen]) -> State:
    path = part.origin
    known = seen.get(path)
    place = place_of(mind, path)
    if not _may_read(mind, place, was_read=known is not None):
        return State.UNKNOWN
    try:
        status = place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return State.MISSING if known else State.UNKNOWN
    except (OSError, ValueError):
        return State.UNKNOWN
    if known == Seen(status.st_size, status.st_mtime_ns, part.place.digest):
        return State.CURRENT
    from mimo.store.sandbox import Sandbox

    source = mind.store.source(part.place)
    try:
        data = Sandbox(None, mind.project.root).read(place, _LARGEST)
    except NotFound:
        return State.MISSING if known else State.UNKNOWN
    except (OSError, MindError):
        return State.UNKNOWN
    if source is None:
        return State.UNKNOWN
    return State.CURRENT if digest(data) == source.sha256 else State.CHANGED


def place_of(mind: Mind, path: str) -> Path:
    """Returns where the file of a source is."""
    return Path(os.path.normpath(Path(os.path.realpath(mind.project.root)) / path))


def _may_read(mind: Mind, place: Path, *, was_read: bool) -> bool:
    """Returns whether a file may be compared.

    The path comes from a file that may be another user's: outside the project only a person's own
    ingested files are looked at, and nothing outside of SANDBOX_DIR.
    """
    limit = mind.environ.get("SANDBOX_DIR")
    if limit and not place.is_relative_to(os.path.realpath(Path(limit).expanduser())):
        return False
    if place.is_relative_to(os.path.realpath(mind.project.root)):
        return True
    return was_read and mind.agent is None
