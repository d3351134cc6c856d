"""Checks whether ingested files have changed since they were ingested."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from mimo.call import Call
from mimo.data import disk, files
from mimo.data.files import LOCAL, digest
from mimo.data.locks import lock
from mimo.data.state import StateFile
from mimo.errors import Command, Hint, MindError, NotFound
from mimo.frozen import NamedTuple, frozen
from mimo.memory.model import Record
from mimo.project.projects import index_owner

_LARGEST = 100_000_000


class Seen(NamedTuple):
    """The state of an ingested file when it was read, and the digest of the file of its chunks."""

    size: int
    mtime_ns: int
    kept: str
    strategy: str = ""
    """The strategy by which it was cut."""

    def is_of(self, status: os.stat_result) -> bool:
        """Returns whether a file with this status has the same size and modification time."""
        return (self.size, self.mtime_ns) == (status.st_size, status.st_mtime_ns)


def _list(rows: Any) -> dict[str, Seen]:
    return {
        str(path): Seen(int(size), int(time), *map(str, texts))
        for path, (size, time, *texts) in rows.items()
    }


_LIST = StateFile(_list)


class IngestedFiles:
    """The states of a project's ingested files, by path: `.mind/.local/ingested-….json`.

    The files in it are read again when they change, so it must not come with a clone.
    """

    def __init__(self, root: Path, owner: str) -> None:
        """Takes the project's root and the user's secret. Nothing is read yet."""
        self._root = root
        self._name = f"{LOCAL}/{files.own_name('ingested', owner)}.json"

    def read(self) -> dict[str, Seen]:
        """Returns the files that were read on this machine; none if the list can't be read."""
        return _LIST.read(self._root, self._name) or {}

    def add(self, seen: Mapping[str, Seen]) -> None:
        """Adds files that were read. Raises `StorageFailed`."""
        with lock(files.local(self._root, "ingested.lock")):
            _LIST.write(self._root, self._name, self.read() | dict(seen))


def ingested_files(call: Call) -> IngestedFiles:
    """Returns the list of the project's ingested files on this machine."""
    return IngestedFiles(call.mind.project.root, index_owner(call.mind.home, call.mind.randomness))


class State(StrEnum):
    """The state of an ingested file."""

    CURRENT = "current"
    CHANGED = "changed"
    MISSING = "missing"
    UNKNOWN = "unknown"
    """It was ingested on another machine and is missing here, or it can't be read."""


@frozen
class Checked:
    """An ingested file, by one of its chunks, and its state."""

    part: Record
    state: State

    @property
    def path(self) -> str:
        """Returns the path of the file, relative to the project."""
        return self.part.origin

    @property
    def message(self) -> str | None:
        """Returns the reason for which the chunks may be stale; None if they are not."""
        if self.state is State.CHANGED:
            return f"`{self.path}` changed after it was ingested"
        if self.state is State.MISSING:
            return f"`{self.path}` no longer exists"
        return None

    @property
    def removal(self) -> Command:
        """Returns the command that removes the chunks."""
        return Command("rm", self.part.parent or "")

    @property
    def remedy(self) -> Command:
        """Returns the command that refreshes or removes the chunks."""
        if self.state is State.MISSING:
            return self.removal
        return Command("ingest", self.path, update=True)


def stale(call: Call, records: Sequence[Record]) -> dict[str, str]:
    """Returns the reason and the remedy for each memory whose ingested file changed, by id."""
    changed = {check.part.place.path: check for check in checked(call, records) if check.message}
    return {
        record.memory.id: Hint(f"{check.message}: ", check.remedy)
        for record in records
        if record.parent is not None and (check := changed.get(record.place.path))
    }


def checked(call: Call, records: Iterable[Record]) -> tuple[Checked, ...]:
    """Returns the ingested file of each chunk among some memories, each file once."""
    parts: dict[str, Record] = {}
    for record in records:
        if record.parent is not None:
            parts.setdefault(record.place.path, record)
    if not parts:
        return ()
    from mimo.project.revisions import PastStore

    if isinstance(call.mind.store, PastStore):  # The files of an earlier revision can't be checked.
        return ()
    seen = ingested_files(call).read()
    return tuple(Checked(part=part, state=_state(call, part, seen)) for part in parts.values())


def _state(call: Call, part: Record, seen: Mapping[str, Seen]) -> State:
    path = part.origin
    entry = seen.get(path)
    place = place_of(call, path)
    if not _may_read(call, place, was_read=entry is not None):
        return State.UNKNOWN
    try:
        status = place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return State.MISSING if entry else State.UNKNOWN
    except (OSError, ValueError):
        return State.UNKNOWN
    if entry and entry.is_of(status) and entry.kept == part.place.digest:
        return State.CURRENT
    from mimo.project.sandbox import Sandbox

    source = call.mind.store.source(part.place)
    try:
        data = Sandbox(None, call.mind.project.root).read(place, _LARGEST)
    except NotFound:
        return State.MISSING if entry else State.UNKNOWN
    except (OSError, MindError):
        return State.UNKNOWN
    if source is None:
        return State.UNKNOWN
    return State.CURRENT if digest(data) == source.sha256 else State.CHANGED


def place_of(call: Call, path: str) -> Path:
    """Returns the absolute path of an ingested file."""
    return Path(os.path.normpath(Path(os.path.realpath(call.mind.project.root)) / path))


def _may_read(call: Call, place: Path, *, was_read: bool) -> bool:
    """Returns whether a file may be compared.

    Its path may come from another user's file. Outside the project only files that a person
    ingested on this machine are read, and never files outside SANDBOX_DIR.
    """
    limit = call.mind.environ.get("SANDBOX_DIR")
    if limit and not place.is_relative_to(os.path.realpath(disk.expanded(limit))):
        return False
    if place.is_relative_to(os.path.realpath(call.mind.project.root)):
        return True
    return was_read and call.agent is None
