"""Processes that work for a project after the command that starts them has ended."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mimo.mind import Mind
from mimo.store import projects

PRIORITY = 19
"""The lowest: any other work on the machine goes first."""


def start(module: str, root: Path, home: Path) -> int:
    """Runs a module for a project in a process that outlives this one; returns the process id."""
    import subprocess
    from threading import Thread

    process = subprocess.Popen(
        [sys.executable, "-m", module, str(root), str(home)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",  # Python imports from the current folder first, which may be a clone.
    )
    # Waited for, so that a server that runs for days keeps no zombie processes.
    Thread(target=process.wait, name="mind-reaper", daemon=True).start()
    return process.pid


def opened(root: Path, home: Path) -> Mind:
    """Returns the memory for which such a process was started: a project's, or the user's own."""
    environ = {**os.environ, "MIND_HOME": str(home)}
    if root == projects.user_root(home) and (user := Mind.open(None, environ=environ).user()):
        return user
    return Mind.open(root, project=root, environ=environ)
