"""Append logs: files that grow by whole lines."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from mimo.data import disk, files, locks
from mimo.data.disk import WAIT_SECONDS
from mimo.frozen import NamedTuple

_BLOCK = 4096


class Log(NamedTuple):
    """The content of an append log."""

    whole: bytes
    """The complete lines, each with its newline."""
    torn: bytes
    """The line without a newline that an interrupted write left at the end; usually empty.

    It was never acknowledged: readers skip it, and the next append removes it.
    """

    @property
    def lines(self) -> list[bytes]:
        """Returns the complete lines, without their newlines."""
        return self.whole.split(b"\n")[:-1]


def split(data: bytes) -> Log:
    """Returns the complete lines of some bytes, and the torn line after them."""
    end = data.rfind(b"\n") + 1
    return Log(data[:end], data[end:])


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


def append(
    path: Path,
    data: bytes,
    *,
    durable: bool = True,
    flush_name: bool = False,
    wait: float = WAIT_SECONDS,
) -> None:
    """Adds complete lines to a log, which is created if it is missing. Raises `StorageFailed`.

    Processes append one after the other, and wait up to `wait` seconds. After a failure the log is
    unchanged. Data that is not `durable` may be lost if the machine fails. Empty data only checks
    that the log is writable. Durable data flushes the name of a new log. `flush_name` is for a log
    whose earlier lines were not durable, so that its name may not be on the disk.
    """
    with files.reported("write", path):
        disk.make_folder(path.parent)
        descriptor = _locked_log(path, wait)
        try:
            disk.tighten_open(descriptor, path)
            if not data:
                return
            end = _end_of_lines(descriptor)
            if end < os.fstat(descriptor).st_size:
                os.ftruncate(descriptor, end)
            try:
                left = memoryview(data)
                while left:
                    left = left[os.write(descriptor, left) :]
                if durable:
                    os.fsync(descriptor)
                    if flush_name or not end:
                        disk.flush_folder(path.parent)
            except BaseException:
                with suppress(OSError):
                    os.ftruncate(descriptor, end)
                raise
        finally:
            os.close(descriptor)


def rewrite(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Changes the content of a log; a missing one stays missing. Raises `StorageFailed`.

    Other processes append to the new content.
    """
    with files.reported("write", path):
        if not path.exists():
            return
        descriptor = _locked_log(path)
        try:
            data = disk.read(path)
            changed = change(data)
            if changed != data:
                files.replace(path, changed, mode=0o600)
        finally:
            os.close(descriptor)


def _locked_log(path: Path, wait: float = WAIT_SECONDS) -> int:
    """Returns a descriptor of the log, which holds its lock until it is closed."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    while True:
        descriptor = disk.opened(path, flags)
        try:
            locks.wait_for(descriptor, path, wait)
            # Meanwhile, another process may have replaced the log by a new file.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), path.lstat()):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _end_of_lines(descriptor: int) -> int:
    """Returns the length of the complete lines of a file."""
    end = os.fstat(descriptor).st_size
    while end:
        start = (end - 1) // _BLOCK * _BLOCK
        os.lseek(descriptor, start, os.SEEK_SET)
        if (newline := os.read(descriptor, end - start).rfind(b"\n")) >= 0:
            return start + newline + 1
        end = start
    return 0
