"""One writer at a time: a lock that the system takes back when its holder dies."""

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
    """Holds the lock file at `path`, made where it is missing, while the block runs.

    It is not re-entrant, and keeps threads apart as well as processes. Raises `StorageFailed`
    naming the holder when the lock isn't free within `wait` seconds, or the command has waited for
    10 s in total.
    """
    descriptor = _open(path)
    try:
        wait_for(descriptor, path, wait)
        # The process id only helps people; on a full disk the lock is held without it. It is padded
        # to one length, since truncating a file takes longer than all the rest.
        with suppress(OSError):
            os.pwrite(descriptor, f"{os.getpid():<20}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def courtesy(root: Path, name: str, *, wait: float = WAIT_SECONDS) -> Iterator[None]:
    """Holds `.mind/.local/NAME` of a project as `lock` does, or nothing where it can't be had.

    For what is better done one after the other, but must be done: one that hangs stops nobody.
    """
    with ExitStack() as held:
        with suppress(StorageFailed, Invalid):
            held.enter_context(lock(safe_path(root, f".mind/.local/{name}"), wait=wait))
        yield


def holder(path: Path) -> int | None:
    """Returns the process that holds the lock file at `path`; None where nobody does."""
    try:
        descriptor = disk.opened(path, os.O_RDWR, follow=True)
    except OSError:
        return None
    try:
        if _try(descriptor):
            return None
        named = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
        return int(named) if named.isdigit() else None
    finally:
        os.close(descriptor)


def hold(path: Path, *, wait: float) -> int | None:
    """Returns a descriptor that holds the lock file at `path` until it is closed everywhere.

    A child process that inherits it holds the lock too. None where somebody else has it for
    longer than `wait` seconds.
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
    """Gives whether the lock file at `path` is ours for the block; does not wait for it."""
    descriptor = hold(path, wait=0)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def is_held(path: Path) -> bool:
    """Returns whether somebody holds the lock file at `path`, which need not be there."""
    try:
        descriptor = disk.opened(path, os.O_RDWR)
    except OSError:
        return False
    try:
        # Shared, so that two who look at once don't take each other for the holder.
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
            holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
            raise busy(path, int(holder) if holder.isdigit() else None)
        with patience.spent():
            time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


def busy(path: Path, pid: int | None = None) -> StorageFailed:
    """Returns the error for a file that another process keeps from use."""
    who = f"process {pid}" if pid else "another process"
    return StorageFailed(
        f"`{path}` is held by {who}",
        hint="wait until it is done, or end it",
        details={"path": str(path), "pid": pid},
    )


def _try(descriptor: int, *, shared: bool = False) -> bool:
    """Returns whether the lock is ours now. The one place that knows the system's call."""
    import fcntl

    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
