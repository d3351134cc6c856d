"""Letting git merge memories field by field."""

from contextlib import suppress
from pathlib import Path

from mimo.errors import Invalid
from mimo.store.repository import Repository

LACKING = "git merges memories here as plain text"


def install(root: Path) -> bool:
    """Sets the merge driver in the repository's own settings; returns whether that is new.

    Where there is no git, or no repository, nothing is to be done.
    """
    repository = Repository(root)
    with suppress(Invalid):
        return repository.is_there() and repository.install_driver()
    return False


def in_repository(root: Path) -> bool:
    """Returns whether a git repository is around the project, without asking git."""
    return any((folder / ".git").exists() for folder in (root, *root.parents))


def lacking(root: Path) -> str | None:
    """Returns what to say where git would merge memories as text; None where all is well.

    A clone brings `.gitattributes`, but never a setting that names a program to run.
    """
    if not in_repository(root):
        return None
    with suppress(Invalid):
        if not Repository(root).merges():
            return LACKING
    return None
