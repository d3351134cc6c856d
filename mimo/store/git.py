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
    # The one command that refuses the word takes its paths literally anyway.
    literal = () if words[0] == "check-ignore" else ("--literal-pathspecs",)
    quiet = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8"}
    try:
        return subprocess.run(
            [program, *settings, "-C", str(root), *literal, *words],
            capture_output=True,
            timeout=seconds,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **quiet},
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None


def has_repository(root: Path) -> bool | None:
    """Returns whether a folder lies in a repository; None where git would not say."""
    if not any((folder / ".git").exists() for folder in (root, *root.parents)):
        return False
    return True if said(root, "rev-parse", "--is-inside-work-tree") == "true" else None


def is_tracked(root: Path, path: str) -> bool:
    """Returns whether git knows a file of the project, on disk or not."""
    return said(root, "ls-files", "--", path) is not None


def is_ignored(root: Path, path: str) -> bool:
    """Returns whether git leaves a file alone that it does not know."""
    return said(root, "check-ignore", "--", path) is not None


def hardened(root: Path, *words: str) -> list[str]:
    """Returns the command line that asks git something about `root`; `[]` where there is no git."""
    program = shutil.which("git")
    settings = [word for setting in _OFF for word in ("-c", setting)]
    return [program, *settings, "-C", str(root), "--literal-pathspecs", *words] if program else []


def environment(*, reading: bool = True) -> dict[str, str]:
    """Returns the environment for git: it never asks, and finds the repository by the folder.

    A hook of git's own names another one in its environment.
    """
    kept = {key: value for key, value in os.environ.items() if key not in _OF_A_HOOK}
    locks = {"GIT_OPTIONAL_LOCKS": "0"} if reading else {}
    return {**kept, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8", **locks}


_OF_A_HOOK = frozenset(
    f"GIT_{name}"
    for name in (
        "DIR WORK_TREE INDEX_FILE PREFIX COMMON_DIR OBJECT_DIRECTORY NAMESPACE GRAFT_FILE"
        " ALTERNATE_OBJECT_DIRECTORIES INTERNAL_SUPER_PREFIX SHALLOW_FILE CONFIG REPLACE_REF_BASE"
        " NO_REPLACE_OBJECTS IMPLICIT_WORK_TREE CONFIG_PARAMETERS CONFIG_COUNT QUARANTINE_PATH"
    ).split()
)
