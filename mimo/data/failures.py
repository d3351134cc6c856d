"""Errors for failed system calls, with the next step."""

from __future__ import annotations

import errno
from contextlib import suppress
from pathlib import Path

from mimo.data import disk
from mimo.errors import StorageFailed

_HINTS = {
    errno.ENOSPC: ("no space left on the disk", "free some space; the file was not changed"),
    errno.EDQUOT: ("your disk quota is used up", "free some space; the file was not changed"),
    errno.EROFS: ("the file system is read-only", "mount it writable, or use another folder"),
    errno.EACCES: ("permission denied", "check who owns it (`ls -l`); it was not changed"),
    errno.EPERM: ("operation not permitted", "check who owns it (`ls -l`); it was not changed"),
    errno.ELOOP: ("it is a symbolic link", "links are never followed; use a regular file"),
    errno.ENOTDIR: ("one of its folders is a file", "move that file away"),
    errno.ENAMETOOLONG: ("the name is too long", "choose a shorter one"),
    errno.EIO: ("input/output error", "check the disk (`dmesg`)"),
    errno.EMFILE: ("too many files are open", "close some programs, or raise `ulimit -n`"),
    errno.ENFILE: ("too many files are open on this machine", "close some programs"),
    errno.EFBIG: ("the file is too large", "make it smaller; it was not changed"),
}
"""The reason and the hint for an error number. A command may have changed other files."""


def failure(verb: str, path: Path, error: OSError) -> StorageFailed:
    """Returns the error for a failed system call; `verb` names the operation."""
    reason, hint = _HINTS.get(error.errno or 0, (error.strerror or str(error), ""))
    if error.errno in (errno.EACCES, errno.EPERM) and (place := place_of_another(path)):
        hint = f"`{place}` is another user's: {ONE_USER}; it was not changed"
    return StorageFailed(
        f"can't {verb} `{path}`: {reason}",
        hint=hint,
        details={"path": str(path), "errno": errno.errorcode.get(error.errno or 0)},
    )


ONE_USER = "a working tree serves one user, so work in a clone of your own"
"""The hint for a working tree in which another user works."""


def place_of_another(path: Path) -> Path | None:
    """Returns the private place that contains a path if it belongs to another user, or None."""
    place = disk.private_place(path)
    with suppress(OSError):
        if place and disk.is_foreign(place.lstat()):
            return place
    return None
