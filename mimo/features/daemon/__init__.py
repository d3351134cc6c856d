"""The optional daemon as other processes see it: its lock, its state and its log."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from mimo import installation
from mimo.call import Call
from mimo.data import disk, locks
from mimo.data.state import StateFile
from mimo.frozen import frozen

_LOCK = "daemon.pid"
_STATE = "daemon.json"
_PAUSE_SECONDS = 0.2
_WAIT_SECONDS = 1.0
"""A process that checks for a daemon holds the lock for an instant."""

OTHER_CODE = "the daemon runs another build of mind than this command"
RESTART = "`mind daemon restart`"


@frozen
class Running:
    """A running daemon."""

    pid: int
    started: datetime | None
    watching: tuple[str, ...]
    """The roots of the projects that it watches."""
    has_other_code: bool = False
    """True if it runs other code than this process, such as that before an update."""


def held(home: Path) -> AbstractContextManager[None]:
    """Holds the lock of the daemon. Raises `StorageFailed` if another process has it."""
    return locks.lock(home / _LOCK, wait=_WAIT_SECONDS)


def running(home: Path) -> Running | None:
    """Returns the running daemon, or None."""
    pid = locks.holder(home / _LOCK)
    if pid is None:
        return None
    state = _STATES.read(home, _STATE)
    return state if state and state.pid == pid else Running(pid=pid, started=None, watching=())


def _running(state: Any) -> Running:
    return Running(
        pid=state["pid"],
        started=datetime.fromisoformat(state["started"]).astimezone(UTC),
        watching=tuple(map(str, state["watching"])),
        has_other_code=state.get("code") != installation.digest(),
    )


_STATES = StateFile(_running)


def write_state(home: Path, *, started: datetime, watching: Sequence[Path]) -> None:
    """Writes the start time of this daemon and the projects that it watches."""
    state = {
        "pid": os.getpid(),
        "code": installation.digest(),
        "started": started.isoformat(),
        "watching": [str(root).encode("utf-8", "replace").decode() for root in watching],
    }
    _STATES.write(home, _STATE, state)


def log_file(home: Path) -> Path:
    """Returns the path of the daemon's log."""
    return home / "logs" / "daemon.log"


def newest(call: Call, count: int) -> tuple[str, ...]:
    """Returns the last lines, oldest first; none if there is no log."""
    log = _opened(log_file(call.mind.home))
    if log is None:
        return ()
    with log:
        return tuple(line.decode("utf-8", "replace").rstrip("\n") for line in deque(log, count))


def followed(call: Call, count: int) -> Iterator[tuple[str, ...]]:
    """Yields the last lines and then new lines without an end, some at a time.

    When a full log is rotated, reading continues with the new file.
    """
    path = log_file(call.mind.home)
    log = _opened(path)
    try:
        if log and (lines := _lines(log)[-count:]):
            yield lines
        while True:
            # Checked first: lines that were written to the old log before that are read below.
            ended = log is None or _is_rotated(log, path)
            if log and (lines := _lines(log)):
                yield lines
            if not ended or (following := _opened(path)) is None:
                call.mind.timer.sleep(_PAUSE_SECONDS)
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
    """Returns the complete lines that follow; an incomplete one is left for later."""
    data = log.read()
    end = data.rfind(b"\n") + 1
    log.seek(end - len(data), 1)
    return tuple(data[:end].decode("utf-8", "replace").split("\n")[:-1])


def _is_rotated(log: BinaryIO, path: Path) -> bool:
    try:
        return not os.path.samestat(os.fstat(log.fileno()), path.stat())
    except FileNotFoundError:
        return False
