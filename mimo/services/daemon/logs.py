"""The daemon's log, read: its end, and what comes."""

import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from mimo import disk
from mimo.mind import Mind
from mimo.store import daemon

_PAUSE_SECONDS = 0.2


def newest(mind: Mind, count: int) -> tuple[str, ...]:
    """Returns the last lines, oldest first; none where there is no log."""
    log = _opened(daemon.log_file(mind.home))
    if log is None:
        return ()
    with log:
        return tuple(line.decode("utf-8", "replace").rstrip("\n") for line in deque(log, count))


def followed(mind: Mind, count: int) -> Iterator[tuple[str, ...]]:
    """Yields the last lines and then, without an end, those that come, some at a time.

    A log that is full is put aside and a new one begun: it goes on with that.
    """
    path = daemon.log_file(mind.home)
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
