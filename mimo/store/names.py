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
    """Returns whether a path is below `.mind/private/`.

    Letter case is ignored, as by the file systems on which two spellings are one folder.
    """
    return path.casefold().startswith(PRIVATE)


def is_shared(path: str) -> bool:
    """Returns whether git may hold a file under `.mind/`, by its path relative to the project."""
    folders = path.casefold().split("/")
    return len(folders) > 1 and folders[1] not in PRIVATE_FOLDERS
