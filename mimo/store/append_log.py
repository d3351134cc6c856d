"""Append logs: files that grow by whole lines.

An append writes all of its lines, or fails and cuts the file back to its old length. If the
process is killed or the disk fails, the file may end in a torn line, without a newline. A torn
line was never acknowledged: readers skip it, and the next append removes it. The readers of a log
report any other damage.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from mimo import disk
from mimo.disk import WAIT_SECONDS
from mimo.store import files, locking

_BLOCK = 4096


class Log(NamedTuple):
    """The content of an append log."""

    whole: bytes
    """The complete lines, each with its newline."""
    torn: bytes
    """The incomplete line that an interrupted write left at the end; usually empty."""

    @property
    def lines(self) -> list[bytes]:
        """Returns the complete lines, without their newlines."""
        return self.whole.split(b"\n")[:-1]


def split(data: bytes) -> Log:
    """Returns the complete lines of some bytes, and the torn line after them."""
    end = data.rfind(b"\n") + 1
    return Log(data[:end], data[end:])


def read(path: Path) -> Log:
    """Returns the content of a log. Raises `OSError`."""
    return split(disk.read(path))


def torn(path: Path) -> int:
    """Returns the length of the torn line at the end of a log; usually 0."""
    try:
        descriptor = disk.opened(path)
    except OSError:
        return 0
    try:
        return os.fstat(descriptor).st_size - _end_of_lines(descriptor)
    finally:
        os.close(descriptor)


def append(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Adds complete lines to a log, which is created if it is missing. Raises `StorageFailed`.

    Processes append one after the other. After a failure the log is unchanged. Data that is not
    `durable` may be lost if the machine fails. Empty data only checks that the log is writable.
    """
    with files.reported("write", path):
        files.make_folder(path.parent)
        descriptor = _locked(path)
        try:
            disk.tighten_open(descriptor, path)
            if data:
                _add(descriptor, path, data, durable=durable)
        finally:
            os.close(descriptor)


def _locked(path: Path) -> int:
    """Returns a descriptor of the log, which holds its lock until it is closed."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    while True:
        descriptor = disk.opened(path, flags)
        try:
            locking.wait_for(descriptor, path, WAIT_SECONDS)
            # Meanwhile, another process may have replaced the log by a new file.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), path.lstat()):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _add(descriptor: int, path: Path, data: bytes, *, durable: bool) -> None:
    end = _end_of_lines(descriptor)
    if end < os.fstat(descriptor).st_size:
        os.ftruncate(descriptor, end)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]
        if durable:
            os.fsync(descriptor)
            if not end:
                files.flush_folder(path.parent)
    except BaseException:
        with suppress(OSError):
            os.ftruncate(descriptor, end)
        raise


def _end_of_lines(descriptor: int) -> int:
    """Returns the length of the complete lines of a file."""
    end = os.fstat(descriptor).st_size
    while end:
        start = max(0, end - _BLOCK) if end % _BLOCK == 0 else end - end % _BLOCK
        newline = os.pread(descriptor, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0
