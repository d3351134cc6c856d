"""The daemon's log, read: its end, and what comes."""

import json
import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from mimo import disk
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.store import files, locking

# What the daemon leaves for others to see: a lock while it runs, and what it watches.


_LOCK = "daemon.pid"
_STATE = "daemon.json"
_WAIT_SECONDS = 1.0
"""Whoever asks whether it runs holds the lock for an instant."""


@frozen
class Running:
    """A daemon at work."""

    pid: int
    started: datetime | None
    watching: tuple[str, ...]
    """The roots of the projects that it watches."""


@contextmanager
def held(home: Path) -> Iterator[None]:
    """Holds what only one daemon can; raises `StorageFailed` where another one has it."""
    with locking.lock(home / _LOCK, wait=_WAIT_SECONDS):
        yield


def running(home: Path) -> Running | None:
    """Returns the daemon that runs, or None."""
    pid = locking.holder(home / _LOCK)
    if pid is None:
        return None
    try:
        state = json.loads(files.read(home / _STATE))
        if state["pid"] == pid:
            started = datetime.fromisoformat(state["started"]).astimezone(UTC)
            return Running(pid=pid, started=started, watching=tuple(map(str, state["watching"])))
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        pass
    return Running(pid=pid, started=None, watching=())


def tell(home: Path, *, started: datetime, watching: Sequence[Path]) -> None:
    """Writes down since when this process has been the daemon, and what it watches."""
    state = {
        "pid": os.getpid(),
        "started": started.isoformat(),
        "watching": [str(root).encode("utf-8", "replace").decode() for root in watching],
    }
    files.replace(home / _STATE, f"{json.dumps(state, indent=2)}\n".encode(), mode=0o600)


def log_file(home: Path) -> Path:
    """Returns where the daemon's log is."""
    return home / "logs" / "daemon.log"


_PAUSE_SECONDS = 0.2


def newest(mind: Mind, count: int) -> tuple[str, ...]:
    """Returns the last lines, oldest first; none where there is no log."""
    log = _opened(log_file(mind.home))
    if log is None:
        return ()
    with log:
        return tuple(line.decode("utf-8", "replace").rstrip("\n") for line in deque(log, count))


def followed(mind: Mind, count: int) -> Iterator[tuple[str, ...]]:
    """Yields the last lines and then, without an end, those that come, some at a time.

    A log that is full is put aside and a new one begun: it goes on with that.
    """
    path = log_file(mind.home)
    log = _opened(path)
    try:
        if log and (found := _lines(log)[-count:]):
            yield found
        while True:
            # Asked first: whatever was written to the old one before is read below.
            ended = log is None or _is_put_aside(log, path)
            if log and (found := _lines(log)):
                yield found
            if not ended or (following := _opened(path)) is None:
                mind.timer.sleep(_PAUSE_SECONDS)
                continue
            if log:
                log.close()
            log = following
    finally:
        if log:
            log.close()


def _opened(path: Path) -> BinaryIO | None:
    with suppress(FileNotFoundError):
        return os.fdopen(disk.opened(path, follow=True), "rb")
    return None


def _lines(log: BinaryIO) -> tuple[str, ...]:
    """Returns the whole lines from here on; what is still being written is left for later."""
    data = log.read()
    whole = data.rfind(b"\n") + 1
    log.seek(whole - len(data), 1)
    return tuple(data[:whole].decode("utf-8", "replace").split("\n")[:-1])


def _is_put_aside(log: BinaryIO, path: Path) -> bool:
    try:
        return not os.path.samestat(os.fstat(log.fileno()), path.stat())
    except FileNotFoundError:
        return False
