"""Automatic commits, if the setting `autocommit` is on.

The first change starts a separate process, which waits for more changes and commits all of them
together. Commands do not wait for that process, and its failures do not affect them.
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
"""The time for which a process collects changes before it commits them."""

_LOST_SECONDS = 120
"""The time after which a process that has not committed counts as dead."""


def later(mind: Mind) -> None:
    """Schedules a commit of written files if `autocommit` is on."""
    with suppress(MindError, OSError):
        if mind.has_project and mind.config["autocommit"] and _claim(mind):
            _start(mind.project.root, mind.home)


def commit(root: Path, home: Path) -> None:
    """Commits the collected changes; if that fails, a later change schedules it again."""
    from mimo.operations.syncing import sync

    with suppress(MindError, OSError):
        files.remove(_waiting(root))
    with suppress(MindError, OSError):
        mind = Mind.open(root, project=root, environ={**os.environ, "MIND_HOME": str(home)})
        sync(mind, message=None)


def _claim(mind: Mind) -> bool:
    """Claims the collecting of changes; returns False if another process has claimed it."""
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
    process.returncode = 0  # The process outlives this one; prevents a warning about that.


if __name__ == "__main__":
    time.sleep(PAUSE_SECONDS)
    commit(Path(sys.argv[1]), Path(sys.argv[2]))
