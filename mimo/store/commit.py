"""Committing the memory, and nothing else of the repository."""

import os
from collections.abc import Sequence
from pathlib import Path

from mimo.errors import Conflict, Invalid, StorageFailed
from mimo.frozen import frozen
from mimo.store.git import complaint
from mimo.store.repository import Repository
from mimo.store.walk import STORE

_UNDER_WAY = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
}
_SLOW = 600
"""Seconds for what runs a team's hooks, asks an agent to sign, or uses the network."""


@frozen
class Pending:
    """A file of the memory that differs from the last commit."""

    path: str
    """Relative to the project."""
    change: str
    """`added`, `changed` or `removed`."""


def check_idle(repository: Repository) -> None:
    """Raises `Conflict` while a merge, a rebase or the like waits to be finished."""
    folder = Path(os.fsdecode(repository.ask("rev-parse", "--absolute-git-dir").rstrip(b"\n")))
    found = next((what for name, what in _UNDER_WAY.items() if (folder / name).exists()), None)
    if found:
        hint = "finish it, or give it up with --abort, then sync again"
        raise Conflict(f"{found} is under way in this repository", hint=hint)


def pending(repository: Repository) -> tuple[Pending, ...]:
    """Returns what a commit of the memory would hold, by path."""
    words = ("--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--ignored=no")
    told = repository.ask("status", *words, "--", STORE)
    prefix = os.fsdecode(repository.ask("rev-parse", "--show-prefix").rstrip(b"\n"))
    found = []
    for entry in os.fsdecode(told).split("\0"):
        marks, path = entry[:2], entry[3:]
        if path:
            gone = "D" in marks and not os.path.lexists(repository.root / path[len(prefix) :])
            change = "removed" if gone else "added" if set(marks) & set("?A") else "changed"
            found.append(Pending(path=path[len(prefix) :], change=change))
    return tuple(sorted(found, key=lambda one: one.path))


def check_shared(repository: Repository) -> None:
    """Raises `Invalid` where the project's own rules keep the whole memory out of git."""
    result = repository.run("check-ignore", "--quiet", "--", f"{STORE}/config.toml")
    if result.returncode == 0:
        hint = "take it out of .gitignore to share it; `git check-ignore -v .mind` says which line"
        raise Invalid(f"git ignores `{STORE}/` here", hint=hint)


def commit(repository: Repository, message: str) -> str:
    """Commits the memory as a person's own git would, hooks and signing included.

    Whatever else is staged stays staged. Returns the short id. Raises `StorageFailed` with what
    git, or the hook that refused, says.
    """
    _do(repository, "add", "--all", "--", STORE)
    _do(repository, "commit", "--quiet", f"--message={message}", "--only", "--", STORE)
    return repository.ask("rev-parse", "--short", "HEAD").decode().strip()


def branch(repository: Repository) -> str | None:
    """Returns the name of the branch; None on a detached head."""
    told = repository.run("symbolic-ref", "--quiet", "--short", "HEAD").stdout
    return os.fsdecode(told).strip() or None


def pull(repository: Repository) -> str:
    """Fetches and merges what others remembered, and returns what git says of it."""
    chosen = [repository.run("config", "--get", key).stdout for key in ("pull.rebase", "pull.ff")]
    return _do(repository, "pull", *([] if any(chosen) else ["--no-rebase"]), "--no-edit")


def push(repository: Repository) -> str:
    """Sends the branch to where it is sent usually, and returns what git says of it."""
    if branch(repository) is None:
        raise Invalid("there is no branch here to push", hint="`git switch -c NAME` makes one")
    return _do(repository, "push", "--quiet")


def _do(repository: Repository, *words: str) -> str:
    answer = repository.run_as_person(*words, seconds=_SLOW)
    told = (answer.stdout + answer.stderr).decode("utf-8", "replace").strip()
    if answer.returncode:
        said: Sequence[str] = told.splitlines()
        reason = complaint(answer.stderr or answer.stdout)
        raise StorageFailed(
            f"git {words[0]}: {reason}",
            hint="; ".join(said[-3:]) if len(said) > 1 else "see `git status`",
        )
    return told
