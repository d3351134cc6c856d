"""The number and the last time of accesses to each memory, from which decay is computed.

The counts are local and may be lost (class D). `.mind/.local/accesses.log` gets a line for each
answer: a count, a time in seconds since 1970, and ids. Unreadable lines are ignored. A log that has
grown is replaced by the sums of its lines, which have the same form, after a line with their size.

A process writes every few seconds at most, since each write wakes the watchers of `.mind/`.
"""

from __future__ import annotations

import re
from _thread import allocate_lock
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from mimo.data import append_log, disk, files
from mimo.errors import MindError
from mimo.memory.decay import Use
from mimo.memory.model import ID_PATTERN
from mimo.text.clean import compiled

_LONGEST_LOG = 256 * 1024
"""Size in bytes of added lines at which a log is summed up."""
_MOST_BYTES = 16 * 1024 * 1024
_MOST_KEPT = 100_000
"""Number of memories in the sums: those that were used last."""
_WAIT_SECONDS = 0.05
"""Maximum time that an answer waits to be counted."""
_PAUSE_SECONDS = 5
"""Minimum time between two writes of one process."""
_MOST_COUNT = 10**12
_LATEST = 253_402_300_799
"""The last second of the year 9999."""


class Accesses:
    """The accesses of one project; may be used by several threads and processes at once."""

    def __init__(self, root: Path) -> None:
        """Takes a project's root; nothing is read yet."""
        self._root = root
        self._lock = allocate_lock()
        self._waiting: list[str] = []
        self._written = 0

    def note(self, ids: Iterable[str], now: datetime) -> None:
        """Counts an access to each memory."""
        valid = [id_ for id_ in ids if compiled(ID_PATTERN).fullmatch(id_)]
        if not valid:
            return
        second = int(now.timestamp())
        self._waiting.append(f"1 {second} {' '.join(valid)}\n")
        if abs(second - self._written) >= _PAUSE_SECONDS:
            self._written = second
            self.flush()

    def flush(self) -> None:
        """Writes the counts that are not written yet; if that fails, they are lost."""
        with self._lock:
            lines, self._waiting = self._waiting, []
        if not lines:
            return
        with suppress(MindError, OSError):
            log = files.local(self._root, "accesses.log")
            data = "".join(lines).encode()
            append_log.append(log, data, durable=False, wait=_WAIT_SECONDS)
            if log.stat().st_size > _LONGEST_LOG and _grown(log) > _LONGEST_LOG:
                append_log.rewrite(log, _summed_up)

    def forget(self, id: str) -> None:
        """Removes a memory, or an ingested file with its chunks. Raises `MindError`."""
        named = re.compile(rf" {re.escape(id)}(?:\.[0-9]+)?(?=[ \n])".encode())
        log = files.local(self._root, "accesses.log")
        append_log.rewrite(log, lambda data: named.sub(b"", data))

    def uses(self) -> dict[str, Use]:
        """Returns the use of each memory that was used; none if the log can't be read."""
        try:
            data, _ = disk.look(files.local(self._root, "accesses.log"), limit=_MOST_BYTES)
        except (OSError, MindError):
            return {}
        sums = _sums(append_log.split(data).whole)
        return {id_: Use(count, disk.moment(stamp)) for id_, (count, stamp) in sums.items()}


def _grown(log: Path) -> int:
    """Returns the size in bytes of the lines that were added to a log since it was summed up."""
    size = log.stat().st_size
    first = disk.start(log, 32).partition(b"\n")[0]
    return size - int(first) if first.isdigit() and int(first) < size else size


def _summed_up(data: bytes) -> bytes:
    """Returns the sums of the lines of a log, those of the memories that were used last."""
    latest = sorted(_sums(data).items(), key=lambda item: item[1][1])[-_MOST_KEPT:]
    sums = "".join(f"{count} {last} {id_}\n" for id_, (count, last) in latest)
    return f"{len(sums)}\n{sums}".encode()


def _sums(data: bytes) -> dict[str, tuple[int, int]]:
    """Returns the number of accesses to each memory and the second of the last one."""
    counted: dict[str, tuple[int, int]] = {}
    for line in data.decode("ascii", "replace").splitlines():
        count, _, rest = line.partition(" ")
        last, _, ids = rest.partition(" ")
        if not (_is_number(count, _MOST_COUNT) and _is_number(last, _LATEST)):
            continue
        for id_ in ids.split(" "):
            if compiled(ID_PATTERN).fullmatch(id_):
                before = counted.get(id_, (0, 0))
                counted[id_] = (before[0] + int(count), max(before[1], int(last)))
    return counted


def _is_number(text: str, limit: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= len(str(limit)) and int(text) <= limit
