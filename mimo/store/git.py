"""Asking git, in a way in which nothing that a repository holds can run.

Hooks, file-system monitors, pagers, external diffs and prompts are off, and no lock is taken.
"""

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

_OFF = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.pager=cat",
    "protocol.ext.allow=never",
    "log.showSignature=false",
)
_SECONDS = 5


def author_of(root: Path, path: str) -> str | None:
    """Returns who last committed a file of the project; None where git can't tell."""
    return said(root, "log", "-1", "--no-ext-diff", "--no-textconv", "--format=%an", "--", path)


def said(root: Path, *words: str) -> str | None:
    """Returns what git prints for a question, stripped; None where it fails or says nothing."""
    answer = asked(root, *words)
    if answer is None or answer.returncode:
        return None
    return answer.stdout.decode("utf-8", "replace").strip() or None


def asked(
    root: Path, *words: str, seconds: float = _SECONDS
) -> "subprocess.CompletedProcess[bytes] | None":
    """Returns what git answers; None where there is no git, or it takes too long."""
    import subprocess

    program = shutil.which("git")
    if program is None:
        return None
    settings = [word for setting in _OFF for word in ("-c", setting)]
    quiet = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8"}
    try:
        return subprocess.run(
            [program, *settings, "-C", str(root), "--literal-pathspecs", *words],
            capture_output=True,
            timeout=seconds,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **quiet},
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
