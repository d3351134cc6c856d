"""The commits of a served project, and the bare repository that they are pushed to.

The server writes into a working copy of its own. One lock covers a writing call with its commit and
its push, and the merging of the commits of others, so no call works on half-merged files.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from threading import Lock

from mimo.api import (
    Call,
    Conflict,
    Invalid,
    MindError,
    NoProject,
    StorageFailed,
    append_log,
    changes,
    disk,
    ensure_id,
    files,
    git,
    init,
    loads,
    projects,
    syncing,
)
from mimo.api import commit as commits

log = logging.getLogger("mind.http")

_TRIES = 8
"""The number of times that a push is tried, since others may be faster."""

_REFUSALS = 4
"""The number of pushes that may fail although no commit of others has come.

Another push holds the lock of the branch for a moment, and its commits are not there yet.
"""

_PAUSE = 0.05
"""The seconds before such a push is tried again, doubled each time."""


class Repository:
    """The repository of one served project."""

    def __init__(self, root: Path, home: Path, *, pushes: bool) -> None:
        """Takes the root of a working copy; with `pushes`, it shares its commits with `origin`."""
        self.root, self.pushes = root, pushes
        self._lock = Lock()
        # Not in the project: a clone could bring the file, and with it any author.
        name = disk.sha256(os.fsencode(root)).hex()[:16]
        self._journal = home / "cache" / f"{name}-uncommitted.jsonl"
        self._uncommitted = _noted(self._journal)
        self._problem: str | None = None

    @property
    def is_behind(self) -> bool:
        """True if the last exchange of commits failed."""
        return self._problem is not None

    @contextmanager
    def writing(self, call: Call, author: str | None) -> Iterator[list[str]]:
        """Commits and pushes the files that the block writes; a failure adds a notice to the list.

        A failed commit is repeated before and after the next call, also by another process. A
        failed push is repeated after the next call and by `exchange`.
        """
        notices: list[str] = []
        with self._lock:
            if any(writer != author for writer in self._uncommitted.values()):
                self._record(call, [])  # Before a file can get the text of another author.

            def note(contents: Mapping[Path, bytes | None]) -> None:
                inside = [path for path in contents if path.is_relative_to(self.root)]
                self._note(author, [path.relative_to(self.root).as_posix() for path in inside])

            try:
                with files.watched(note):
                    yield notices
            finally:
                self._record(call, notices)

    def _note(self, author: str | None, paths: list[str]) -> None:
        """Remembers files that are about to be written; their last author signs them."""
        for path in paths:
            is_included = path.startswith(f"{disk.STORE}/") and files.is_shared(path)
            if not is_included or self._uncommitted.get(path, ()) == author:
                continue
            self._uncommitted[path] = author
            line = json.dumps({"author": author, "path": path})
            with suppress(MindError):  # Without it, a commit that fails is not repeated later on.
                append_log.append(self._journal, f"{line}\n".encode(), durable=False)

    def _record(self, call: Call, notices: list[str]) -> None:
        try:
            for author in (authors := dict.fromkeys(self._uncommitted.values())):
                self._commit(call, author)
        except (MindError, OSError) as error:
            reason = error.message if isinstance(error, MindError) else str(error.strerror)
            notices.append(f"stored, but not committed: {reason}; the next call tries again")
            return
        if authors:
            disk.discard(self._journal)
        if self.pushes and (authors or self._problem) and (problem := self._exchanged()):
            notices.append(f"committed, but not pushed: {problem}; the server tries again")

    def _commit(self, call: Call, author: str | None) -> None:
        """Commits the files that calls of an author wrote."""
        own_paths = {path for path, by in self._uncommitted.items() if by == author}
        syncing.repository(call)
        commits.check_idle(self.root)
        commits.check_unattended(self.root)
        if pending := [change for change in commits.pending(self.root) if change.path in own_paths]:
            message = syncing.message_of(call, pending)
            paths = [change.path for change in pending]
            by = commits.PROGRAM if author is None and commits.identity(self.root) else author
            commits.commit(self.root, changes.unreviewed(message), paths, by)
        for path in own_paths:
            del self._uncommitted[path]

    def exchange(self) -> None:
        """Merges the commits of others, and pushes those that are not pushed yet."""
        if self.pushes:
            with self._lock:
                self._exchanged()

    def _exchanged(self) -> str | None:
        """Returns the reason for which commits are not pushed; None if all are."""
        problem, refusals = None, 0
        try:
            for attempt in range(_TRIES):
                commits.fetch(self.root)
                ahead, behind = _apart(self.root)
                if behind:
                    commits.merge_upstream(self.root)
                    ahead += 1
                if not ahead:
                    break
                try:
                    commits.publish(self.root)
                    break
                except MindError:
                    commits.fetch(self.root)
                    _, behind = _apart(self.root)
                    refusals += not behind
                    if refusals == _REFUSALS or attempt == _TRIES - 1:
                        raise
                    time.sleep(0 if behind else _PAUSE * 2**refusals)
        except (MindError, OSError) as error:
            problem = error.message if isinstance(error, MindError) else str(error.strerror)
            if problem != self._problem:
                log.warning("commits of `%s` can't be exchanged: %s", self.root.name, problem)
        self._problem = problem
        return problem


def _noted(journal: Path) -> dict[str, str | None]:
    """Returns the files that an earlier process wrote and did not commit, with their authors."""
    noted = {}
    with suppress(OSError):
        for line in append_log.split(disk.read(journal)).lines:
            with suppress(ValueError, KeyError, TypeError):
                record = loads(line)
                noted[str(record["path"])] = record["author"]
    return noted


def working_copy(home: Path, bare: Path, *, now: datetime) -> Path:
    """Returns the root of the server's own working copy of a bare repository.

    A missing one is cloned, becomes a project, and is registered. Raises `NoProject` for another
    folder, `Conflict` if the copy of another repository has its name, and `StorageFailed`.
    """
    bare = disk.expanded(bare).resolve()
    if not ((bare / "HEAD").is_file() and (bare / "objects").is_dir()):
        raise NoProject(
            f"`{bare}` is not a bare git repository", hint="`git init --bare` makes one"
        )
    root = projects.served_root(home.resolve()) / bare.name.removesuffix(".git")
    if root.name in ("", "."):
        raise Invalid(f"`{bare}` has no name", hint="rename it to NAME.git")
    if not (root / ".git").exists():
        disk.make_folder(root.parent)
        cloned = git.clone(bare, root)
        if cloned.returncode:
            raise StorageFailed(
                f"`{bare}` can't be cloned: {git.complaint(cloned.stderr)}",
                hint="`git clone` shows the same error; it must be readable by this user",
            )
    elif _origin(root) != str(bare):
        raise Conflict(
            f"`{root}` is the working copy of `{_origin(root)}`",
            hint="repositories that are served need different names",
        )
    init(root, home, now=now)
    ensure_id(root, home)
    syncing.install(root)
    if pending := commits.pending(root):
        paths = [change.path for change in pending]
        commits.commit(root, "Set up the memory of mind", paths, commits.PROGRAM)
    Repository(root, home, pushes=True).exchange()
    return projects.explicit(root, home).root


def _origin(root: Path) -> str:
    """Returns the URL of the remote `origin`; empty without one."""
    return os.fsdecode(git.run(root, "config", "--get", "remote.origin.url").stdout).strip()


def _apart(root: Path) -> tuple[int, int]:
    """Returns the numbers of commits that only HEAD, by default 1, and only its upstream have."""
    counted = git.run(root, "rev-list", "--left-right", "--count", "HEAD...@{upstream}", "--")
    if counted.returncode:
        return 1, 0
    ahead, behind = map(int, counted.stdout.split())
    return ahead, behind
