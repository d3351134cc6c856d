"""Committing the memory, and nothing else of the repository."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from mimo.disk import PRIVATE_FOLDERS, STORE
from mimo.errors import Conflict, Invalid, MindError, StorageFailed
from mimo.frozen import frozen
from mimo.store import files, git
from mimo.store.files import TEMPORARY_PREFIX, TEMPORARY_SUFFIX, is_shared
from mimo.store.git import Repository, complaint

# Files of `.mind/` that git tracks although they never belong in a repository.


_PLAIN = (2, 3)
"""Versions of git's index that hold each path in full."""
_INCOMPLETE = (b"link\0\0", b"sdir\0\0")
"""Extensions of an index that does not list every file."""
_UNSHARED = re.compile(
    rf"{re.escape(STORE)}/(?:[^\0]*/)?(?:{'|'.join(map(re.escape, PRIVATE_FOLDERS))})/".encode()
)


def unshared(root: Path) -> tuple[str, ...]:
    """Returns the tracked files below folders that must not be shared, relative to the project.

    There are none where git can't be asked. git is asked only if its index may hold one: reading
    the index takes a fraction of the time that starting git does.
    """
    if not _may_hold(root):
        return ()
    try:
        listed = Repository(root).ask("ls-files", "-z", "--", STORE)
    except MindError:
        return ()
    paths = os.fsdecode(listed).split("\0")
    return tuple(path for path in paths if path and not is_shared(path))


def _may_hold(root: Path) -> bool:
    """Returns whether the index may name such a file; git alone can tell for certain."""
    folder = git.directory(root)
    if folder is None:
        return False
    try:
        data = files.read(folder / "index")
    except FileNotFoundError:
        return False
    except (OSError, StorageFailed):
        return True
    plain = int.from_bytes(data[4:8], "big") in _PLAIN
    if not plain or any(name in data for name in _INCOMPLETE):
        return True
    return _UNSHARED.search(data.lower()) is not None


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
    folder = repository.folder or repository.root
    found = next((what for name, what in _UNDER_WAY.items() if (folder / name).exists()), None)
    if found:
        hint = "finish it, or give it up with --abort, then sync again"
        raise Conflict(f"{found} is under way in this repository", hint=hint)


def pending(repository: Repository) -> tuple[Pending, ...]:
    """Returns what a commit of the memory would hold, by path."""
    words = ("--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--ignored=no")
    listed = os.fsdecode(repository.ask("status", *words, "--", STORE)).split("\0")
    prefix = os.fsdecode(repository.ask("rev-parse", "--show-prefix").rstrip(b"\n"))
    changes = {entry[3 + len(prefix) :]: entry[:2] for entry in listed if entry}
    own = _folders(repository.root)
    found = []
    for path, marks in changes.items():
        if _is_shared(repository.root, path, own):
            removed = "D" in marks and not os.path.lexists(repository.root / path)
            change = "removed" if removed else "added" if set(marks) & set("?A") else "changed"
            found.append(Pending(path=path, change=change))
    return tuple(sorted(found, key=lambda one: one.path))


def _is_shared(root: Path, path: str, unshared: frozenset[tuple[int, int]]) -> bool:
    """Returns whether a changed file may be committed, whatever git's ignore rules are.

    Left out are files below the folders that never belong in git, under any name that the file
    system takes for theirs, repositories inside `.mind/`, and temporary files.
    """
    name = path.rpartition("/")[2]
    temporary = name.startswith(TEMPORARY_PREFIX) and name.endswith(TEMPORARY_SUFFIX)
    if not name or temporary or not is_shared(path):
        return False
    first = root / STORE / path.split("/")[1]
    return _identity(first) not in unshared


def _folders(root: Path) -> frozenset[tuple[int, int]]:
    """Returns the identities of the folders that never belong in git."""
    found = (_identity(root / STORE / name) for name in PRIVATE_FOLDERS)
    return frozenset(one for one in found if one)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino)


def check_shared(repository: Repository) -> None:
    """Raises `Invalid` where the project's own rules keep the whole memory out of git."""
    result = repository.run("check-ignore", "--quiet", "--", f"{STORE}/config.toml")
    if result.returncode == 0:
        hint = "take it out of .gitignore to share it; `git check-ignore -v .mind` says which line"
        raise Invalid(f"git ignores `{STORE}/` here", hint=hint)


def commit(repository: Repository, message: str, paths: Iterable[str]) -> str | None:
    """Commits exactly these files as the user's own git would, hooks and signing included.

    Anything else that is staged stays staged. Returns the short id; None if the files hold what the
    last commit has, once the user's filters are applied. Raises `StorageFailed` with the message of
    git or of the hook that refused, and if a hook added a private file: the commit is taken back.
    """
    named = b"".join(b":(literal)" + os.fsencode(path) + b"\0" for path in paths)
    from_input = ("--pathspec-from-file=-", "--pathspec-file-nul")
    _do(repository, "add", "--all", *from_input, data=named)
    if repository.run("diff", "--cached", "--quiet", "--", STORE).returncode == 0:
        return None
    before = os.fsdecode(repository.run("rev-parse", "--verify", "--quiet", "HEAD").stdout).strip()
    _do(repository, "commit", "--quiet", f"--message={message}", "--only", *from_input, data=named)
    if private := _private_in_commit(repository):
        target = ("HEAD", before) if before else ("-d", "HEAD")
        _do(repository, "update-ref", "-m", "mind sync: taken back", *target)
        raise StorageFailed(
            f"a git hook added the private file `{private[0]}`, so the commit was taken back",
            hint="restore the ignore rules with `mind doctor --fix`, then sync again",
            details={"files": private},
        )
    return repository.ask("rev-parse", "--short", "HEAD").decode().strip()


def _private_in_commit(repository: Repository) -> list[str]:
    """Returns the files of the newest commit that never belong in git.

    The user's own hooks run after the files were chosen, and may add others.
    """
    words = ("-r", "--root", "-m", "--no-commit-id", "--name-only", "--no-renames", "-z")
    listed = repository.ask(
        "diff-tree", *words, "--diff-filter=d", "--relative", "HEAD", "--", STORE
    )
    paths = os.fsdecode(listed).split("\0")
    return sorted({path for path in paths if path and not is_shared(path)})


def branch(repository: Repository) -> str | None:
    """Returns the name of the branch; None on a detached head."""
    told = repository.run("symbolic-ref", "--quiet", "--short", "HEAD").stdout
    return os.fsdecode(told).strip() or None


def pull(repository: Repository) -> str:
    """Fetches and merges the upstream's commits, and returns the output of git.

    Raises `Conflict` if a file of the upstream would replace a private one here: git overwrites
    files that it ignores without a question.
    """
    _do(repository, "fetch", "--quiet")
    revision = f"@{{upstream}}:./{STORE}"
    listed = repository.run("ls-tree", "-r", "-z", "--name-only", "--full-tree", revision).stdout
    paths = {f"{STORE}/{path}" for path in os.fsdecode(listed).split("\0") if path}
    planted = {path for path in paths if not is_shared(path)} - set(unshared(repository.root))
    lost = sorted(path for path in planted if os.path.lexists(repository.root / path))
    if lost:
        raise Conflict(
            f"a pull would overwrite the private file `{lost[0]}`",
            hint="the upstream has a file of that name; remove it there, or move yours away",
            details={"files": lost},
        )
    chosen = [repository.run("config", "--get", key).stdout for key in ("pull.rebase", "pull.ff")]
    return _do(repository, "pull", *([] if any(chosen) else ["--no-rebase"]), "--no-edit")


def push(repository: Repository) -> str:
    """Sends the branch to where it is sent usually, and returns what git says of it."""
    if branch(repository) is None:
        raise Invalid("there is no branch here to push", hint="`git switch -c NAME` makes one")
    return _do(repository, "push", "--quiet")


def _do(repository: Repository, *words: str, data: bytes = b"") -> str:
    result = repository.run_as_person(*words, given=data, seconds=_SLOW)
    printed = (result.stdout + result.stderr).decode("utf-8", "replace").strip()
    if result.returncode:
        lines = printed.splitlines()
        reason = complaint(result.stderr or result.stdout)
        raise StorageFailed(
            f"git {words[0]}: {reason}",
            hint="; ".join(lines[-3:]) if len(lines) > 1 else "see `git status`",
        )
    return printed
