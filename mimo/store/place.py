"""Where a project's index is kept, and whose it is."""

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from mimo import permissions
from mimo.errors import Conflict
from mimo.store.files import failure, read, write_new
from mimo.store.names import STORE


def index_folder(root: Path, home: Path) -> Path:
    """Returns `.mind/.index`, or a folder of the user's cache where that can't be used safely."""
    inside = root / STORE / ".index"
    writable = os.access(inside if inside.exists() else inside.parent, os.W_OK)
    if writable and not _is_anothers(inside):
        return inside
    import hashlib

    return home / "cache" / hashlib.sha256(os.fsencode(root)).hexdigest()[:16]


def index_owner(home: Path, randomness: Callable[[int], bytes]) -> str:
    """Returns what marks an index as made by this user: a secret that no clone can know.

    Raises `StorageFailed` where it can be neither read nor made.
    """
    path = owner_file(home)
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
        return read(owner_file(home)).decode("ascii", "replace")
    except OSError:
        return None


def owner_file(home: Path) -> Path:
    """Returns the path of the secret that marks files as made by this user."""
    return home / "index-owner"


def own_name(name: str, owner: str) -> str:
    """Returns the name of a file that only this user's mind can have made.

    A folder such as `.mind/.local/` may come with a clone or an archive, whose author does not know
    the secret `owner`: a file of another name is never read.
    """
    import hashlib

    return f"{name}-{hashlib.sha256(f'{name} {owner}'.encode()).hexdigest()[:12]}"


def _is_anothers(folder: Path) -> bool:
    """Returns whether a folder is another user's, a link, or holds a link: a write may go astray.

    The folder of a project that the user allowed may have its owner.
    """
    try:
        status = folder.lstat()
    except OSError:
        return False
    if stat.S_ISLNK(status.st_mode):
        return True
    if permissions.is_foreign(status) and not permissions.is_foreign(folder.parent.lstat()):
        return True
    try:
        with os.scandir(folder) as entries:
            return any(entry.is_symlink() for entry in entries)
    except OSError:
        return False
