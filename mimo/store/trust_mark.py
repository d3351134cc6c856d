"""What tells a folder that became a repository from a clone that took its place.

A project outside git is trusted by its path, and `git init` changes what trust is kept by. The
same random mark, in the project's own `.local` and beside its approvals outside of it, says that
it is still the folder that somebody approved: no clone can bring that.
"""

import os
from contextlib import suppress
from pathlib import Path

from mimo.errors import Invalid, StorageFailed
from mimo.store import files
from mimo.store.names import LOCAL, STORE

_INSIDE = f"{LOCAL}/trust-mark"
_OUTSIDE = "mark"
_BYTES = 16


def leave(folder: Path, root: Path) -> None:
    """Marks a project and the folder of its approvals; where that can't be, nothing is carried."""
    if not (root / STORE).is_dir() or fits(folder, root):
        return
    mark = f"{os.urandom(_BYTES).hex()}\n".encode()
    with suppress(StorageFailed, Invalid):
        files.replace(files.safe_path(root, _INSIDE), mark, mode=0o600)
        files.replace(folder / _OUTSIDE, mark, mode=0o600)


def fits(folder: Path, root: Path) -> bool:
    """Returns whether a project has the mark that was left when it was approved."""
    with suppress(OSError, StorageFailed, Invalid):
        inside = files.read(files.safe_path(root, _INSIDE))
        return len(inside) == 2 * _BYTES + 1 and inside == files.read(folder / _OUTSIDE)
    return False
