"""Files of `.mind/` that git tracks although they never belong in a repository."""

import os
import re
from pathlib import Path

from mimo.errors import MindError, StorageFailed
from mimo.permissions import PRIVATE_FOLDERS
from mimo.store import files, history
from mimo.store.names import STORE, is_shared
from mimo.store.repository import Repository

_PLAIN = (2, 3)
"""Versions of git's index that hold each path in full."""
_INCOMPLETE = (b"link\0\0", b"sdir\0\0")
"""Extensions of an index that does not list every file."""
_UNSHARED = re.compile(
    rf"{re.escape(STORE)}/(?:[^\0]*/)?(?:{'|'.join(map(re.escape, PRIVATE_FOLDERS))})/".encode()
)


def unshared(root: Path) -> tuple[str, ...]:
    """Returns the tracked files below folders that must not be shared, relative to the project.

    There are none where git can't be asked. git is asked only if its index may hold one: reading
    the index takes a fraction of the time that starting git does.
    """
    if not _may_hold(root):
        return ()
    try:
        listed = Repository(root).ask("ls-files", "-z", "--", STORE)
    except MindError:
        return ()
    paths = os.fsdecode(listed).split("\0")
    return tuple(path for path in paths if path and not is_shared(path))


def _may_hold(root: Path) -> bool:
    """Returns whether the index may name such a file; git alone can tell for certain."""
    folder = history.directory(root)
    if folder is None:
        return False
    try:
        data = files.read(folder / "index")
    except FileNotFoundError:
        return False
    except (OSError, StorageFailed):
        return True
    plain = int.from_bytes(data[4:8], "big") in _PLAIN
    if not plain or any(name in data for name in _INCOMPLETE):
        return True
    return _UNSHARED.search(data.lower()) is not None
