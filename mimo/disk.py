"""Opening files for reading: regular files only, never waiting for another process.

A named pipe, a socket or a device in the place of a file would block a command for ever, so every
file that mind opens is opened here.
"""

import errno
import os
import stat
from pathlib import Path

from mimo import permissions

STATE_BYTES = 64_000_000
"""Maximum size of a state file of ours that is read whole."""


def opened(path: Path, flags: int = os.O_RDONLY, mode: int = 0o600, *, follow: bool = False) -> int:
    """Returns a descriptor of a regular file; symbolic links are followed only with `follow`.

    Raises `OSError` if the file is missing, or is anything but a regular file, or if it is in
    $MIND_HOME but another user's: keys and approvals are there.
    """
    flags |= flag("O_NONBLOCK") | flag("O_CLOEXEC") | (0 if follow else flag("O_NOFOLLOW"))
    descriptor = os.open(path, flags, mode)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise _not_regular(path)
    if permissions.is_foreign(status) and permissions.is_in_home(path):
        os.close(descriptor)
        raise OSError(errno.EPERM, "it belongs to another user", str(path))
    return descriptor


def opener(name: str, flags: int) -> int:
    """Returns a descriptor, as `open(opener=…)` takes it; in a private place only for the user."""
    path = Path(name)
    descriptor = opened(path, flags, permissions.mode_for(path, 0o666), follow=True)
    permissions.tighten_open(descriptor, path)
    return descriptor


def look(
    path: Path, *, limit: int | None = None, follow: bool = False
) -> tuple[bytes, os.stat_result]:
    """Returns the bytes of a regular file, at most `limit` + 1 of them, and its stamp.

    Raises `OSError` as `opened` does.
    """
    descriptor = opened(path, follow=follow)
    try:
        status = os.fstat(descriptor)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read() if limit is None else file.read(limit + 1), status
    finally:
        os.close(descriptor)


def read(path: Path, *, limit: int = STATE_BYTES, follow: bool = False) -> bytes:
    """Returns the bytes of a regular file. Raises `OSError`, also if they are more than `limit`."""
    data, status = look(path, limit=limit, follow=follow)
    if len(data) > limit:
        reason = f"too large: {status.st_size:,} bytes, at most {limit:,} are read"
        raise OSError(errno.EFBIG, reason, str(path))
    return data


def start(path: Path, size: int) -> bytes:
    """Returns the first bytes of a regular file. Raises `OSError` as `opened` does."""
    return look(path, limit=size - 1, follow=True)[0]


def first_line(path: Path) -> str:
    """Returns the first line of a small text file, without white space around it.

    Raises `OSError`, and `ValueError` if it is not UTF-8 or holds a NUL.
    """
    line = start(path, 4096).partition(b"\n")[0].decode().strip()
    if "\0" in line:
        raise ValueError(path)
    return line


def check(path: Path) -> None:
    """Raises `OSError` if something other than a regular file has this name.

    For files that a library opens itself.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(status.st_mode):
        raise _not_regular(path)


def _not_regular(path: Path) -> OSError:
    return OSError(errno.EINVAL, "not a regular file", str(path))


def flag(name: str) -> int:
    """Returns a flag of `os.open`, or 0 if the system does not have it."""
    return int(getattr(os, name, 0))
