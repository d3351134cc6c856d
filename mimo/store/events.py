"""The event log: `.mind/.local/events.jsonl`, one event on each line.

An event has a `name`, a `time`, `measurements` (numbers) and `metadata`. A full log is renamed to
`events.1.jsonl`, and that one to `events.2.jsonl`. The log is local and may be lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any

from mimo import disk
from mimo.frozen import frozen
from mimo.store import files
from mimo.store.files import lock

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
        """Adds events. Raises `MindError`."""
        if not events:
            return
        log, old, oldest = (files.local(self._root, name) for name in _NAMES)
        with lock(log.with_name("events.lock"), wait=_WAIT_SECONDS):
            size, lines = log.stat().st_size if log.exists() else 0, list[bytes]()
            for line in map(_line, events):
                if size and size + len(line) > self._largest:
                    files.append(log, b"".join(lines), durable=False)
                    if old.exists():
                        files.rename(old, oldest)
                    files.rename(log, old)
                    size, lines = 0, []
                size += len(line)
                lines.append(line)
            files.append(log, b"".join(lines), durable=False)

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
                data, inode = files.log_of(content).whole, status.st_ino
            end = end if end.inode else Place(inode=inode, offset=len(data))
            is_read = bool(inode) and inode == place.inode
            contents.setdefault(inode, data[place.offset :] if is_read else data)
            if is_read:
                break
        return [event for data in reversed(contents.values()) for event in _events(data)], end


def _line(event: Event) -> bytes:
    data = {
        "name": event.name,
        "time": event.time.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "measurements": dict(event.measurements),
        "metadata": dict(event.metadata),
    }
    return json.dumps(data, ensure_ascii=False, default=str).encode("utf-8", "replace") + b"\n"


def _events(lines: bytes) -> Iterator[Event]:
    """Yields the events of some lines; other lines are ignored."""
    for line in lines.splitlines():
        with suppress(ValueError, TypeError, KeyError, OverflowError, RecursionError):
            data = json.loads(line)
            event = Event(
                name=str(data["name"]),
                time=datetime.fromisoformat(data["time"]),
                measurements=dict(data["measurements"]),
                metadata=dict(data["metadata"]),
            )
            if event.time.tzinfo and all(isfinite(n) for n in event.measurements.values()):
                yield event
