"""The event log: `.mind/.local/events.jsonl`, one event on each line.

An event has a `name`, a `time`, `measurements` (numbers) and `metadata`. A full log is renamed to
`events.1.jsonl`, and that one to `events.2.jsonl`. The log is local and may be lost.

Appending holds the lock of the log itself (see `append_log.append`). Only renaming needs more.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any

from mimo.data import append_log, disk, files, locks
from mimo.data.loads import loads
from mimo.data.locks import lock
from mimo.errors import MindError, StorageFailed
from mimo.frozen import frozen
from mimo.text.calendar import iso_utc

LARGEST = 1024 * 1024
"""Size in bytes at which a log is renamed."""
_NAMES = ("events.jsonl", "events.1.jsonl", "events.2.jsonl")
"""The log and the full logs before it, newest first."""
_MOST_BYTES = 16 * 1024 * 1024
_WAIT_SECONDS = 2.0


@frozen
class Event:
    """An event."""

    name: str
    """For example `mimo.procedure.start`."""
    time: datetime
    measurements: Mapping[str, float]
    metadata: Mapping[str, Any]


@frozen
class Place:
    """A position in the log: a file and an offset."""

    inode: int = 0
    offset: int = 0


class EventLog:
    """The events of one project; may be used by several threads and processes at once."""

    def __init__(self, root: Path, *, largest: int = LARGEST) -> None:
        """Takes a project's root; nothing is read yet."""
        self._root = root
        self._largest = largest

    def write(self, *events: Event) -> None:
        """Adds events; those that can't be written are dropped."""
        lines = list[bytes]()
        for event in events:
            data = {
                "name": event.name,
                "time": iso_utc(event.time),
                "measurements": dict(event.measurements),
                "metadata": dict(event.metadata),
            }
            line = json.dumps(data, ensure_ascii=False, default=str)
            lines.append(line.encode("utf-8", "replace") + b"\n")
        with suppress(MindError, OSError):
            log = files.local(self._root, _NAMES[0])
            size = log.stat().st_size if log.exists() else 0
            if size + sum(map(len, lines)) > self._largest:
                self._fill(lines)
            elif lines:
                append_log.append(log, b"".join(lines), durable=False)

    def _fill(self, lines: Iterable[bytes]) -> None:
        """Adds lines, and renames each log that they fill."""
        log, old, oldest = (files.local(self._root, name) for name in _NAMES)
        with lock(log.with_name("events.lock"), wait=_WAIT_SECONDS):
            size, part = log.stat().st_size if log.exists() else 0, list[bytes]()
            for line in lines:
                if size and size + len(line) > self._largest:
                    append_log.append(log, b"".join(part), durable=False)
                    if old.exists():
                        files.rename(old, oldest)
                    with _held(log):
                        files.rename(log, old)
                    size, part = 0, []
                size += len(line)
                part.append(line)
            append_log.append(log, b"".join(part), durable=False)

    def replace(self, text: str, instead: str) -> None:
        """Replaces a whole text in all events by a shorter one. Raises `MindError`.

        Each line keeps its length, so that a follower neither misses an event nor gets one twice.
        """
        original = json.dumps(text, ensure_ascii=False).encode("utf-8", "replace")
        after = json.dumps(instead[: len(text)]).encode().ljust(len(original))
        paths = [files.local(self._root, name) for name in _NAMES]
        if not any(original in disk.read(path) for path in paths if path.exists()):
            return
        with lock(paths[0].with_name("events.lock"), wait=_WAIT_SECONDS):
            for path in filter(Path.exists, paths):
                with _held(path) as descriptor:
                    disk.overwrite(descriptor, disk.read(path).replace(original, after))

    def read(self) -> tuple[list[Event], Place]:
        """Returns all events, oldest first, and the position after them."""
        return self.since(Place())

    def since(self, place: Place) -> tuple[list[Event], Place]:
        """Returns the events after a position, and the position after them."""
        with suppress(FileNotFoundError):
            status = files.local(self._root, _NAMES[0]).stat()
            if (status.st_ino, status.st_size) == (place.inode, place.offset):
                return [], place
        # Newest first: a log that is renamed meanwhile is then read twice, and not missed.
        contents: dict[int, bytes] = {}
        end = Place()
        for name in _NAMES:
            data, inode = b"", 0
            with suppress(FileNotFoundError):
                content, status = disk.look(files.local(self._root, name), limit=_MOST_BYTES)
                data, inode = append_log.split(content).whole, status.st_ino
            end = end if end.inode else Place(inode=inode, offset=len(data))
            is_read = bool(inode) and inode == place.inode
            contents.setdefault(inode, data[place.offset :] if is_read else data)
            if is_read:
                break
        return [event for data in reversed(contents.values()) for event in _events(data)], end


@contextmanager
def _held(path: Path) -> Iterator[int]:
    """Holds the lock of a log, and gives its descriptor. Raises `StorageFailed`."""
    descriptor = locks.hold(path, wait=_WAIT_SECONDS)
    if descriptor is None:
        raise StorageFailed(f"`{path.name}` is in use", hint="try again")
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _events(lines: bytes) -> Iterator[Event]:
    """Yields the events of some lines; other lines are ignored."""
    for line in lines.splitlines():
        with suppress(ValueError, TypeError, KeyError, OverflowError):
            data = loads(line)
            event = Event(
                name=str(data["name"]),
                time=datetime.fromisoformat(data["time"]),
                measurements=dict(data["measurements"]),
                metadata=dict(data["metadata"]),
            )
            if event.time.tzinfo and all(isfinite(n) for n in event.measurements.values()):
                yield event
