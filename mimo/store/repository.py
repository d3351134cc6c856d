"""The git repository that a project is in."""

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mimo.errors import Invalid
from mimo.store import git
from mimo.store.git import complaint

if TYPE_CHECKING:
    from subprocess import CompletedProcess

DRIVER = "mind merge-driver %O %A %B %P || git merge-file %A %O %B"
"""What git merges memories with; without mind on its PATH it merges them as text."""


class Repository:
    """Runs git in one project."""

    def __init__(self, root: Path) -> None:
        """Take the project's root, which may be a folder of the work tree."""
        self.root = root

    def ask(self, *words: str, given: bytes = b"", seconds: float = git.SECONDS) -> bytes:
        """Returns the output of a command that reads. Raises `Invalid` if it fails."""
        result = self.run(*words, given=given, seconds=seconds)
        if result.returncode:
            hint = git.PARTIAL if b"promisor" in result.stderr else "see `git status`"
            raise Invalid(f"git {words[0]}: {complaint(result.stderr)}", hint=hint)
        return result.stdout

    def run(
        self, *words: str, given: bytes = b"", seconds: float = git.SECONDS
    ) -> "CompletedProcess[bytes]":
        """Returns the result of a command that reads. Raises `Invalid` if it can't be run."""
        return git.run(self.root, *words, data=given, seconds=seconds)

    def run_as_person(
        self, *words: str, given: bytes = b"", seconds: float = git.SECONDS
    ) -> "CompletedProcess[bytes]":
        """Returns the result of a command with the user's hooks, filters and signing.

        Raises `Invalid` if it can't be run.
        """
        return git.run_as_person(self.root, *words, data=given, seconds=seconds)

    def is_there(self) -> bool:
        """Returns whether the project is in a work tree, and git can be asked about it."""
        try:
            return self.folder is not None
        except Invalid:
            return False

    @cached_property
    def folder(self) -> Path | None:
        """Returns the git directory; None outside a work tree. Raises `Invalid`."""
        result = self.run("rev-parse", "--is-inside-work-tree", "--absolute-git-dir")
        inside, _, folder = result.stdout.partition(b"\n")
        return Path(os.fsdecode(folder.removesuffix(b"\n"))) if inside == b"true" else None

    def merges(self) -> bool:
        """Returns whether git merges memories here with our driver."""
        return self.run("config", "--get", "merge.mind.driver").stdout.strip() != b""

    def install_driver(self) -> bool:
        """Lets git merge memories with our driver; returns whether that is new."""
        known = self.run("config", "--local", "--get", "merge.mind.driver").stdout
        if known.decode("utf-8", "replace").strip() == DRIVER:
            return False
        self.ask("config", "--local", "merge.mind.name", "memories, field by field")
        self.ask("config", "--local", "merge.mind.driver", DRIVER)
        return True
