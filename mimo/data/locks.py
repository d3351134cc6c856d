"""Lock files. The system releases a lock when its holder exits or is killed.

The only module that locks files: with flock, or on Windows with a byte beyond the end of the file.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from mimo.data import disk
from mimo.data.disk import WAIT_SECONDS
from mimo.data.failures import failure
from mimo.errors import StorageFailed

_LOCKED_BYTE = 1 << 30


@contextmanager
def lock(path: Path, *, wait: float = WAIT_SECONDS) -> Iterator[None]:
    """Holds the lock file at `path` while the block runs; a missing file is created.

    The lock is not re-entrant, and excludes threads as well as processes. Raises `StorageFailed`
    with the holder after `wait` seconds, or once the command has waited for 10 s in total.
    """
    descriptor = _opened_lock(path)
    try:
        wait_for(descriptor, path, wait)
        # The process id is for error messages only, so a full disk does not matter. It is padded,
        # since truncating the file would take longer than everything else here.
        with suppress(OSError):
            disk.overwrite(descriptor, f"{os.getpid():<20}\n".encode())
        yield
    finally:
        os.close(descriptor)


@contextmanager
def courtesy(path: Path) -> Iterator[None]:
    """Holds a lock file if it is free within 10 seconds.

    The block runs in any case, so a process that hangs does not stop others.
    """
    with ExitStack() as held:
        with suppress(StorageFailed):
            held.enter_context(lock(path))
        yield


def hold(path: Path, *, wait: float) -> int | None:
    """Returns a descriptor that holds the lock file at `path` until all its copies are closed.

    A child process that inherits it holds the lock, too. None if the lock isn't free within `wait`
    seconds.
    """
    descriptor = _opened_lock(path)
    try:
        wait_for(descriptor, path, wait)
    except StorageFailed:
        os.close(descriptor)
        return None
    return descriptor


@contextmanager
def holding(path: Path) -> Iterator[bool]:
    """Gives whether the block holds the lock file at `path`; does not wait for it."""
    descriptor = hold(path, wait=0)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def excludes(path: Path) -> bool:
    """Returns whether the lock file at `path` excludes others, which some file systems only claim.

    A missing file is not checked. Raises `StorageFailed` if the file can't be opened.
    """
    with ExitStack() as opened:
        try:
            first_fd = disk.opened(path, os.O_RDWR)
            opened.callback(os.close, first_fd)
            second = disk.opened(path, os.O_RDWR)
            opened.callback(os.close, second)
        except FileNotFoundError:
            return True
        except OSError as error:
            raise failure("lock", path, error) from error
        try:
            return not try_lock(first_fd) or not try_lock(second)
        except OSError:  # The file system has no locks.
            return False


def holder(path: Path) -> int | None:
    """Returns the process that holds the lock file at `path`; None if it is free."""
    try:
        descriptor = disk.opened(path, os.O_RDWR, follow=True)
    except OSError:
        return None
    try:
        return None if try_lock(descriptor) else _named(descriptor)
    except OSError:  # The file system has no locks.
        return None
    finally:
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Returns whether a process holds the lock file at `path`, which may be missing."""
    try:
        descriptor = disk.opened(path, os.O_RDWR)
    except OSError:
        return False
    try:
        # Shared, so that two processes that check at once do not block each other.
        return not try_lock(descriptor, shared=True)
    except OSError:  # The file system has no locks.
        return False
    finally:
        os.close(descriptor)


def _opened_lock(path: Path) -> int:
    try:
        disk.make_folder(path.parent)
        return disk.opened(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise failure("lock", path, error) from error


def wait_for(descriptor: int, path: Path, wait: float) -> None:
    """Takes the lock of an open file. Raises `StorageFailed` if it isn't free in `wait` seconds."""
    attempts = disk.attempts(wait)
    try:
        while not try_lock(descriptor):
            if next(attempts):
                raise disk.busy(path, _named(descriptor))
    except OSError as error:
        raise StorageFailed(
            f"can't lock `{path}`: {error.strerror or error}",
            hint="its file system has no locks: move it to a local disk, or mount it with locks"
            " (NFS: without `nolock`)",
            details={"path": str(path), "errno": errno.errorcode.get(error.errno or 0)},
        ) from error


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Returns whether the lock of an open file could be taken at once. Raises `OSError`."""
    try:
        import fcntl
    except ModuleNotFoundError:
        return _try_byte(descriptor)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _try_byte(descriptor: int) -> bool:
    """Locks one byte on Windows, where a locked part of a file can't be read by others."""
    import msvcrt

    os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
    try:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
    except PermissionError:
        return False
    return True


def _named(descriptor: int) -> int | None:
    """Returns the process id in a lock file; None if that process ended, so it is an old one."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    text = os.read(descriptor, 20).decode("ascii", "replace").strip()
    try:
        if os.name == "posix":  # On Windows, the signal would end the process.
            os.kill(int(text), 0)
    except (ValueError, OverflowError, ProcessLookupError):
        return None
    except OSError:
        pass  # another user's
    return int(text)
