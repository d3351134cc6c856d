"""Commits that nobody asks for: off unless `autocommit` is set, and never in anybody's way.

The first change starts a process of its own, which waits for more and then commits all of them
together. A command neither waits for it nor fails because of it.
"""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

from mimo.disk import STORE
from mimo.errors import MindError
from mimo.mind import Mind
from mimo.store import files

PAUSE_SECONDS = 20
"""So long a process gathers changes before it commits them."""

_LOST_SECONDS = 120
"""So long after its start a process that never committed counts as gone."""


def later(mind: Mind) -> None:
    """Lets what was written be committed soon, where the user wants that."""
    with suppress(MindError, OSError):
        if mind.has_project and mind.config["autocommit"] and _claim(mind):
            _start(mind.project.root, mind.home)


def commit(root: Path, home: Path) -> None:
    """Commits what has gathered; where it can't be done now, a later change tries again."""
    from mimo.operations.syncing import sync

    with suppress(MindError, OSError):
        files.remove(_waiting(root))
    with suppress(MindError, OSError):
        mind = Mind.open(root, project=root, environ={**os.environ, "MIND_HOME": str(home)})
        sync(mind, message=None)


def _claim(mind: Mind) -> bool:
    """Returns whether no process is gathering already, and says that one is now."""
    path = _waiting(mind.project.root)
    with suppress(FileNotFoundError):
        if time.time() - path.lstat().st_mtime < _LOST_SECONDS:
            return False
        files.remove(path)
    files.write_new(path, b"")
    return True


def _waiting(root: Path) -> Path:
    return files.safe_path(root, f"{STORE}/.local/autocommit")


def _start(root: Path, home: Path) -> None:
    import subprocess

    process = subprocess.Popen(
        [sys.executable, "-m", __name__, str(root), str(home)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    process.returncode = 0  # It outlives us: nobody waits for it, and that is no leak.


if __name__ == "__main__":
    time.sleep(PAUSE_SECONDS)
    commit(Path(sys.argv[1]), Path(sys.argv[2]))
