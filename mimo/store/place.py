"""Where a project's index is kept, and whose it is."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from mimo.errors import Conflict
from mimo.store.files import failure, read, write_new
from mimo.store.names import STORE


def index_folder(root: Path, home: Path) -> Path:
    """Returns `.mind/.index`, or a folder of the user's cache where that can't be used safely."""
    inside = root / STORE / ".index"
    writable = os.access(inside if inside.exists() else inside.parent, os.W_OK)
    if writable and not _has_links(inside):
        return inside
    import hashlib

    return home / "cache" / hashlib.sha256(os.fsencode(root)).hexdigest()[:16]


def index_owner(home: Path, randomness: Callable[[int], bytes]) -> str:
    """Returns what marks an index as made by this user: a secret that no clone can know.

    Raises `StorageFailed` where it can be neither read nor made.
    """
    path = home / "index-owner"
    try:
        if not path.exists():
            with suppress(Conflict):  # another process was quicker
                write_new(path, randomness(16).hex().encode(), mode=0o600)
        return read(path).decode("ascii", "replace")
    except OSError as error:
        raise failure("read", path, error) from error


def known_owner(home: Path) -> str | None:
    """Returns what marks an index as made by this user; None where none was made yet."""
    try:
        return read(home / "index-owner").decode("ascii", "replace")
    except OSError:
        return None


def _has_links(folder: Path) -> bool:
    """Returns whether a folder is a link or holds one: what is written there may go elsewhere."""
    if folder.is_symlink():
        return True
    try:
        with os.scandir(folder) as entries:
            return any(entry.is_symlink() for entry in entries)
    except OSError:
        return False


def stamp(path: Path | None) -> tuple[int, int, int] | None:
    """Returns what tells one state of a file from another; None where there is none."""
    try:
        found = path.stat() if path else None
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino) if found else None
