"""What the daemon leaves for others to see: a lock while it runs, and what it watches.

That the lock is held is what says that it runs, so nothing stale is ever believed: the system lets
go of the lock when the process ends, however that comes about.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from mimo.frozen import frozen
from mimo.store import files, locking

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
