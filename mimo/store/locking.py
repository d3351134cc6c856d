"""Lock files. The system releases a lock when its holder exits or is killed."""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from mimo import disk
from mimo.disk import WAIT_SECONDS, current
from mimo.errors import Invalid, StorageFailed
from mimo.store.files import failure, safe_path

_LONGEST_PAUSE = 0.05


@contextmanager
def lock(path: Path, *, wait: float = WAIT_SECONDS) -> Iterator[None]:
    """Holds the lock file at `path` while the block runs; a missing file is created.

    The lock is not re-entrant, and excludes threads as well as processes. Raises `StorageFailed`
    with the holder after `wait` seconds, or once the command has waited for 10 s in total.
    """
    descriptor = _open(path)
    try:
        wait_for(descriptor, path, wait)
        # The process id is for error messages only, so a full disk does not matter. It is padded,
        # since truncating the file would take longer than everything else here.
        with suppress(OSError):
            os.pwrite(descriptor, f"{os.getpid():<20}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def courtesy(root: Path, name: str, *, wait: float = WAIT_SECONDS) -> Iterator[None]:
    """Holds the lock `.mind/.local/NAME` of a project if it is free within `wait` seconds.

    The block runs in any case, so a process that hangs does not stop others.
    """
    with ExitStack() as held:
        with suppress(StorageFailed, Invalid):
            held.enter_context(lock(safe_path(root, f".mind/.local/{name}"), wait=wait))
        yield


def holder(path: Path) -> int | None:
    """Returns the process that holds the lock file at `path`; None if it is free."""
    try:
        descriptor = disk.opened(path, os.O_RDWR, follow=True)
    except OSError:
        return None
    try:
        if _try(descriptor):
            return None
        return _named(descriptor)
    finally:
        os.close(descriptor)


def hold(path: Path, *, wait: float) -> int | None:
    """Returns a descriptor that holds the lock file at `path` until all its copies are closed.

    A child process that inherits it holds the lock, too. None if the lock isn't free within `wait`
    seconds.
    """
    descriptor = _open(path)
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


def is_held(path: Path) -> bool:
    """Returns whether a process holds the lock file at `path`, which may be missing."""
    try:
        descriptor = disk.opened(path, os.O_RDWR)
    except OSError:
        return False
    try:
        # Shared, so that two processes that check at once do not block each other.
        return not _try(descriptor, shared=True)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    try:
        disk.make_folder(path.parent)
        return disk.opened(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise failure("lock", path, error) from error


def wait_for(descriptor: int, path: Path, wait: float) -> None:
    """Takes the lock of an open file. Raises `StorageFailed` if it isn't free in `wait` seconds."""
    patience = current()
    deadline = time.monotonic() + min(wait, patience.left)
    pause = 0.001
    while not _try(descriptor):
        if time.monotonic() >= deadline:
            raise busy(path, _named(descriptor))
        with patience.spent():
            time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


def _named(descriptor: int) -> int | None:
    """Returns the process id in a lock file."""
    text = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
    return int(text) if text.isdigit() else None


def busy(path: Path, pid: int | None = None) -> StorageFailed:
    """Returns the error for a file that another process has locked."""
    holder = f"process {pid}" if pid else "another process"
    return StorageFailed(
        f"`{path}` is held by {holder}",
        hint="wait until it is done, or end it",
        details={"path": str(path), "pid": pid},
    )


def _try(descriptor: int, *, shared: bool = False) -> bool:
    """Returns whether the lock could be taken at once."""
    import fcntl

    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
