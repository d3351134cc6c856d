"""The names of mind's own folders, which the lightest paths need before anything else."""

from mimo.permissions import PRIVATE_FOLDERS
from mimo.permissions import STORE as STORE

CONFIG = "config.toml"
"""The settings of a project, or of the user in $MIND_HOME; without it a `.mind/` is no project."""

LOCAL = f"{STORE}/.local"
"""What is of this machine alone."""

PRIVATE = f"{STORE}/private/"


ALONE = "alone:"
"""Begins the digest of a text that is only trusted where it was approved itself: what anybody's
commit says comes from outside `.mind/`, and is not what somebody chose to follow."""


def is_private(path: str) -> bool:
    """Returns whether a path is in a folder called `private` below `.mind/`, at any depth.

    Letter case is ignored, as by the file systems on which two spellings are one folder.
    """
    folders = path.casefold().split("/")
    return folders[0] == STORE and "private" in folders[1:-1]


def unshared_folder(path: str) -> str | None:
    """Returns the folder for which git must never have a path under `.mind/`; None if git may.

    `path` is relative to the project, and may be the folder itself.
    """
    parts = path.split("/")
    for end, part in enumerate(parts[1:], 2):
        if part.casefold() in PRIVATE_FOLDERS:
            return "/".join(parts[:end])
    return None


def is_shared(path: str) -> bool:
    """Returns whether git may hold a file under `.mind/`, by its path relative to the project."""
    return "/" in path and unshared_folder(path) is None
