"""Committing, pulling and pushing the memory, and finding private files that git tracks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from mimo import disk
from mimo.disk import PRIVATE_FOLDERS, STORE
from mimo.errors import Conflict, Invalid, MindError, StorageFailed
from mimo.store import git
from mimo.store.files import TEMPORARY_PREFIX, TEMPORARY_SUFFIX, is_shared
from mimo.store.revisions import Change

_PLAIN = (2, 3)
"""Versions of git's index with uncompressed paths."""
_INCOMPLETE = (b"link\0\0", b"sdir\0\0")
"""Extensions of an index without some of its files."""
_UNSHARED = re.compile(
    rf"{re.escape(STORE)}/(?:[^\0]*/)?(?:{'|'.join(map(re.escape, PRIVATE_FOLDERS))})/".encode()
)
_UNDER_WAY = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
}
_SLOW = 600
"""Deadline in seconds for commands that run hooks, sign, or use the network."""


def unshared(root: Path) -> tuple[str, ...]:
    """Returns the tracked files in private folders, relative to the project.

    Empty if git can't be asked. Git's index is read first, since that is much faster than git.
    """
    if not _may_hold(root):
        return ()
    try:
        listed = git.ask(root, "ls-files", "-z", "--", STORE)
    except MindError:
        return ()
    paths = os.fsdecode(listed).split("\0")
    return tuple(path for path in paths if path and not is_shared(path))


def _may_hold(root: Path) -> bool:
    """Returns whether the index may contain a private file; only git knows for certain."""
    folder = git.directory(root)
    if folder is None:
        return False
    try:
        data = disk.read(folder / "index")
    except FileNotFoundError:
        return False
    except (OSError, StorageFailed):
        return True
    plain = int.from_bytes(data[4:8], "big") in _PLAIN
    if not plain or any(name in data for name in _INCOMPLETE):
        return True
    return _UNSHARED.search(data.lower()) is not None


def check_idle(root: Path) -> None:
    """Raises `Conflict` during a merge, a rebase or the like."""
    folder = git.directory(root) or root
    action = next((_UNDER_WAY[name] for name in _UNDER_WAY if (folder / name).exists()), None)
    if action:
        hint = "finish it or cancel it with --abort, then sync again"
        raise Conflict(f"{action} is in progress in this repository", hint=hint)


def pending(root: Path) -> tuple[Change, ...]:
    """Returns the files that a commit of the memory would contain, by path."""
    words = ("--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--ignored=no")
    listed = os.fsdecode(git.ask(root, "status", *words, "--", STORE)).split("\0")
    prefix = os.fsdecode(git.ask(root, "rev-parse", "--show-prefix").rstrip(b"\n"))
    private = {_identity(root / STORE / name) for name in PRIVATE_FOLDERS} - {None}
    result = []
    for entry in listed:
        marks, path = entry[:2], entry[3 + len(prefix) :]
        # The name is empty for a repository inside `.mind/`. git's ignore rules do not matter.
        name = path.rpartition("/")[2]
        temporary = name.startswith(TEMPORARY_PREFIX) and name.endswith(TEMPORARY_SUFFIX)
        if not name or temporary or not is_shared(path):
            continue
        # A private folder may have another name on this file system.
        if _identity(root / STORE / path.split("/")[1]) not in private:
            removed = "D" in marks and not os.path.lexists(root / path)
            change = "removed" if removed else "added" if set(marks) & set("?A") else "changed"
            result.append(Change(path=path, change=change))
    return tuple(sorted(result, key=lambda file: file.path))


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino)


def check_shared(root: Path) -> None:
    """Raises `Invalid` if ignore rules keep the whole memory out of git."""
    result = git.run(root, "check-ignore", "--quiet", "--", f"{STORE}/config.toml")
    if result.returncode == 0:
        hint = "remove it from .gitignore to share it; `git check-ignore -v .mind` shows the line"
        raise Invalid(f"git ignores `{STORE}/` here", hint=hint)


def commit(root: Path, message: str, paths: Iterable[str]) -> str | None:
    """Commits exactly these files, with the user's hooks and signing.

    Other staged files stay staged. Returns the short id; None if the files equal the last commit
    after the user's filters. Raises `StorageFailed` with the message of git or of a hook. If a hook
    added a private file, the commit is undone.
    """
    names = b"".join(b":(literal)" + os.fsencode(path) + b"\0" for path in paths)
    from_input = ("--pathspec-from-file=-", "--pathspec-file-nul")
    _do(root, "add", "--all", *from_input, data=names)
    if git.run(root, "diff", "--cached", "--quiet", "--", STORE).returncode == 0:
        return None
    before = os.fsdecode(git.run(root, "rev-parse", "--verify", "--quiet", "HEAD").stdout).strip()
    _do(root, "commit", "--quiet", f"--message={message}", "--only", *from_input, data=names)
    # A hook of the user may have added private files.
    words = ("-r", "--root", "-m", "--no-commit-id", "--name-only", "--no-renames", "-z")
    listed = git.ask(
        root, "diff-tree", *words, "--diff-filter=d", "--relative", "HEAD", "--", STORE
    )
    committed = os.fsdecode(listed).split("\0")
    private = sorted({path for path in committed if path and not is_shared(path)})
    if private:
        target = ("HEAD", before) if before else ("-d", "HEAD")
        _do(root, "update-ref", "-m", "mind sync: undone", *target)
        raise StorageFailed(
            f"a git hook added the private file `{private[0]}`, so the commit was undone",
            hint="restore the ignore rules with `mind doctor --fix`, then sync again",
            details={"files": private},
        )
    return git.ask(root, "rev-parse", "--short", "HEAD").decode().strip()


def branch(root: Path) -> str | None:
    """Returns the name of the branch; None on a detached head."""
    name = git.run(root, "symbolic-ref", "--quiet", "--short", "HEAD").stdout
    return os.fsdecode(name).strip() or None


def pull(root: Path) -> str:
    """Fetches and merges the upstream's commits, and returns the output of git.

    Raises `Conflict` if a file of the upstream would replace a private file: git overwrites ignored
    files without asking.
    """
    _do(root, "fetch", "--quiet")
    revision = f"@{{upstream}}:./{STORE}"
    listed = git.run(root, "ls-tree", "-r", "-z", "--name-only", "--full-tree", revision).stdout
    paths = {f"{STORE}/{path}" for path in os.fsdecode(listed).split("\0") if path}
    planted = {path for path in paths if not is_shared(path)} - set(unshared(root))
    lost = sorted(path for path in planted if os.path.lexists(root / path))
    if lost:
        raise Conflict(
            f"a pull would overwrite the private file `{lost[0]}`",
            hint="the upstream has a file of that name; remove it there, or move yours",
            details={"files": lost},
        )
    settings = [git.run(root, "config", "--get", key).stdout for key in ("pull.rebase", "pull.ff")]
    return _do(root, "pull", *([] if any(settings) else ["--no-rebase"]), "--no-edit")


def push(root: Path) -> str:
    """Pushes the branch to its upstream, and returns the output of git."""
    if branch(root) is None:
        raise Invalid(
            "HEAD is detached, so no branch can be pushed", hint="run `git switch -c NAME`"
        )
    return _do(root, "push", "--quiet")


def _do(root: Path, *words: str, data: bytes = b"") -> str:
    result = git.run_as_person(root, *words, data=data, seconds=_SLOW)
    printed = (result.stdout + result.stderr).decode("utf-8", "replace").strip()
    if result.returncode:
        lines = printed.splitlines()
        reason = git.complaint(result.stderr or result.stdout)
        raise StorageFailed(
            f"git {words[0]}: {reason}",
            hint="; ".join(lines[-3:]) if len(lines) > 1 else "see `git status`",
        )
    return printed
