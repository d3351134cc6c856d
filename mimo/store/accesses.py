"""The number and the last time of accesses to each memory, from which decay is computed.

The counts are local and may be lost. `.mind/.local/accesses.log` gets a line for each answer, and
`.mind/.local/accesses` has the sums of earlier logs. A line in both is a count, a time in seconds
since 1970, and ids. Unreadable lines are ignored. The first line of the sums names the log that
they do not include yet, such as `accesses-2.log`, so that a process that is killed while it sums
up leaves no access counted twice.

A process writes every few seconds at most, since each write wakes the watchers of `.mind/`.
"""

from __future__ import annotations

import re
from _thread import allocate_lock
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from mimo import disk
from mimo.errors import MindError
from mimo.memory.decay import Use
from mimo.memory.model import ID_PATTERN
from mimo.store import append_log, files
from mimo.store.locks import lock
from mimo.text.clean import compiled

_LONGEST_LOG = 256 * 1024
"""Size in bytes at which a log is summed up."""
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

_LOG = r"accesses(?:-([1-9][0-9]{0,11}))?\.log"

_Counted = tuple[int, int]
"""The number of accesses, and the second of the last one."""


class Accesses:
    """The accesses of one project; may be used by several threads and processes at once."""

    def __init__(self, root: Path) -> None:
        """Takes a project's root; nothing is read yet."""
        self._root = root
        self._lock = allocate_lock()
        self._waiting: list[str] = []
        self._written = 0

    def note(self, ids: Iterable[str], now: datetime) -> None:
        """Counts an access to each memory. Raises `MindError`."""
        valid = [id_ for id_ in ids if compiled(ID_PATTERN).fullmatch(id_)]
        if not valid:
            return
        second = int(now.timestamp())
        self._waiting.append(f"1 {second} {' '.join(valid)}\n")
        if abs(second - self._written) >= _PAUSE_SECONDS:
            self._written = second
            self.flush()

    def flush(self) -> None:
        """Writes the counts that are not written yet. Raises `MindError`; they are then lost."""
        with self._lock:
            lines, self._waiting = self._waiting, []
        if lines:
            with lock(files.local(self._root, "accesses.lock"), wait=_WAIT_SECONDS):
                log = files.local(self._root, _log_of(self._read("accesses")))
                append_log.append(log, "".join(lines).encode(), durable=False)
                if log.stat().st_size > _LONGEST_LOG:
                    self._sum_up(log)

    def forget(self, id: str) -> None:
        """Removes a memory, or an ingested file with its chunks. Raises `MindError`."""
        named = re.compile(rf" {re.escape(id)}(?:\.[0-9]+)?(?=[ \n])".encode())
        with lock(files.local(self._root, "accesses.lock")):
            sums = files.local(self._root, "accesses")
            for path in (sums, *sums.parent.glob("accesses*.log")):
                append_log.rewrite(path, lambda data: named.sub(b"", data))

    def uses(self) -> dict[str, Use]:
        """Returns the use of each memory that was used."""
        return {
            id_: Use(count, disk.moment(last)) for id_, (count, last) in self._counted().items()
        }

    def _counted(self) -> dict[str, _Counted]:
        counted: dict[str, _Counted] = {}
        sums = self._read("accesses")
        _add(counted, sums)
        _add(counted, self._read(_log_of(sums)))
        return counted

    def _read(self, name: str) -> bytes:
        """Returns the complete lines of a file; none if it can't be read."""
        try:
            data, _ = disk.look(files.local(self._root, name), limit=_MOST_BYTES)
        except (OSError, MindError):
            return b""
        return append_log.split(data).whole

    def _sum_up(self, log: Path) -> None:
        latest = sorted(self._counted().items(), key=lambda item: item[1][1])[-_MOST_KEPT:]
        number = int(match[1] or 0) if (match := compiled(_LOG).fullmatch(log.name)) else 0
        following = f"accesses-{number + 1}.log"
        rows = (f"{count} {last} {id_}\n" for id_, (count, last) in latest)
        sums = f"{following}\n{''.join(rows)}".encode()
        files.replace(log.with_name("accesses"), sums, mode=0o600)
        for other in log.parent.glob("accesses*.log"):
            if other.name != following:
                files.remove(other)


def _log_of(sums: bytes) -> str:
    """Returns the name of the log that some sums do not include."""
    first = sums.partition(b"\n")[0].decode("latin-1")
    return first if first and compiled(_LOG).fullmatch(first) else "accesses.log"


def _add(counted: dict[str, _Counted], data: bytes) -> None:
    """Adds up the lines of a file; other lines are ignored."""
    for line in data.decode("ascii", "replace").splitlines():
        count, _, rest = line.partition(" ")
        last, _, ids = rest.partition(" ")
        if not (_is_number(count, _MOST_COUNT) and _is_number(last, _LATEST)):
            continue
        for id_ in ids.split(" "):
            if compiled(ID_PATTERN).fullmatch(id_):
                before = counted.get(id_, (0, 0))
                counted[id_] = (before[0] + int(count), max(before[1], int(last)))


def _is_number(text: str, most: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= len(str(most)) and int(text) <= most
