"""The memory in git: commits, the merge driver, and leaks of private files."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from mimo.call import Call
from mimo.data import disk, files
from mimo.data.disk import STORE
from mimo.data.files import unshared_folder
from mimo.errors import Command, Hint, Invalid, MindError, StorageFailed, join_texts
from mimo.frozen import frozen, replace
from mimo.guard import privacy
from mimo.memory import changes
from mimo.memory.model import Memory, Problem
from mimo.project import commit as commits
from mimo.project import git, init
from mimo.project.revisions import Change, has_memories, is_memory
from mimo.project.walk import LOG
from mimo.text.calendar import iso_utc

PAUSE_SECONDS = 20
"""The time for which an automatic commit waits for more changes."""

_LOST_SECONDS = 120
"""The time after which a process that has not committed counts as dead."""

_TASK = "Committing"


@frozen
class Sync:
    """A sync that was done, or would be in a dry run."""

    commit: str | None
    branch: str | None
    message: str | None
    pending: tuple[Change, ...]
    pulled: str | None = None
    pushed: bool = False
    approved: int = 0
    """The number of memories that are approved by the commit only; an ingested file is one."""
    unapproved: tuple[str, ...] = ()
    """The files that a hook changed on the disk, so that the commit does not approve them."""
    left_out: tuple[str, ...] = ()
    """The files that are too large to be searched for secrets, or lead through a link."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """Returns what the user should know about the commit."""
        remarks = []
        if self.left_out:
            remarks.append(
                f"{commits.some(self.left_out)} can't be committed by mind: a symbolic link, or a "
                "file that is too large to be searched for secrets"
            )
        if self.approved:
            memories = "1 memory" if self.approved == 1 else f"{self.approved:,} memories"
            remarks.append(
                Hint(f"this commit approves {memories}; ", Command("untrust", "ID"), " ends that")
            )
        if self.unapproved:
            remarks.append(
                f"a git hook changed {commits.some(self.unapproved)} without staging the change, "
                "which is not committed and not approved"
            )
        if self.commit and self.branch is None:
            remarks.append(
                "HEAD is detached, so this commit is on no branch; `git switch -c NAME` keeps it"
            )
        return tuple(remarks)


def repository(call: Call) -> Path:
    """Returns the root of the project, which is in a git repository.

    Raises `Invalid` if there is none, git is missing, or git would hang on its files.
    """
    root = call.mind.project.root
    if git.run(root, "rev-parse", "--is-inside-work-tree").stdout.strip() != b"true":
        if reason := git.refusal(root):
            raise Invalid(f"git: {reason}", hint="correct that first; `git status` shows it, too")
        raise Invalid(
            "the project is not in a git repository",
            hint="`git init` creates one; mind also works without git",
        )
    return root


def sync(
    call: Call,
    *,
    message: str | None,
    pull: bool = False,
    push: bool = False,
    dry_run: bool = False,
    automatic: bool = False,
) -> Sync:
    """Commits the shared files of `.mind/` only, then pulls and pushes if requested.

    What a person commits is approved. A commit of an agent, or an automatic one, approves nothing.
    Links and very large files are left out. Raises `SecretDetected` if a file to be committed holds
    a secret, unless the user allows it. If the pull or the push fails, the error also names the
    commit.
    """
    root = repository(call)
    commits.check_idle(root)
    if automatic:
        commits.check_unattended(root)
    commits.check_shared(root)
    changed = commits.pending(root)
    unfit = {entry.path: None for entry in changed if not _is_fit(root, entry)}
    pending = tuple(entry for entry in changed if entry.path not in unfit)
    if pending and not dry_run:  # Its line is shown as soon as git begins, which reports nothing.
        call.advance(_TASK, 0, len(pending))
    if not call.caller.allows_secrets:
        _check_secrets(call, root, pending)
    message = (message or message_of(call, pending)) if pending else None
    if message and (automatic or call.agent is not None):
        message = changes.unreviewed(message)
    done = Sync(
        commit=None,
        branch=git.branch(root),
        message=message,
        pending=pending,
        left_out=tuple(unfit),
    )
    if dry_run:
        return done
    if message:
        done = _committed(call, root, done, message)
    note_failure(call, None)
    call.release()
    try:
        exchange = _exchange_machines if call.mind.is_users else _exchange
        done = replace(done, pulled=exchange(root, pull=pull, push=push))
    except MindError as error:
        if done.commit:
            number = len(done.pending)
            committed = "1 file was" if number == 1 else f"{number:,} files were"
            remarks = (f"{committed} committed as `{done.commit}`", *done.remarks)
            error.hint = join_texts(*remarks, error.hint) or ""
            error.details |= {"commit": done.commit, "approved": done.approved}
        raise
    return replace(done, pushed=push, branch=git.branch(root))


def _exchange(root: Path, *, pull: bool, push: bool) -> str | None:
    """Pulls and pushes, and returns the output of the pull."""
    pulled = commits.pull(root) if pull else None
    if push:
        commits.push(root)
    return pulled


def _exchange_machines(root: Path, *, pull: bool, push: bool) -> str | None:
    """Does the same with the memory that the user's machines share, which stays private here."""
    pulled = commits.merge_machines(root) if pull else None
    if push:
        commits.push_machine(root)
    for path in [*disk.exposed_below(root)]:  # git makes files with modes of its own.
        disk.tighten(path)
    return pulled or None


def _check_secrets(call: Call, root: Path, pending: Sequence[Change]) -> None:
    """Raises `SecretDetected` if a file to be committed holds a secret; warns of one in prose."""
    for number, entry in enumerate(pending, 1):
        path = files.safe_path(root, entry.path)
        if entry.change != "removed" and path.is_file():
            secret = privacy.check_file(entry.path, disk.read(path), by_person=call.agent is None)
            if secret:
                call.note("secret", privacy.warning(secret))
        call.advance("Checking", number, len(pending))


def _is_fit(root: Path, entry: Change) -> bool:
    """Returns whether a changed file can be read and committed; a removed one always can."""
    with suppress(FileNotFoundError):
        try:
            return files.safe_path(root, entry.path).stat().st_size <= disk.STATE_BYTES
        except (Invalid, StorageFailed):
            return False
    return True


def _committed(call: Call, root: Path, done: Sync, message: str) -> Sync:
    """Commits the pending files, and returns the sync with the commit, if one was made."""
    old_texts = unapproved(call, done.pending)
    total = len(done.pending)
    call.advance(_TASK, 0, total)
    try:
        commit = commits.commit(root, message, [change.path for change in done.pending])
        after = unapproved(call, done.pending) if commit else {}
    finally:
        if call.console.progress:  # Also if the caller has cancelled: the commit is made.
            call.console.progress(_TASK, total, total)
    if commit is None:
        return replace(done, message=None, pending=())
    # A hook may have changed a file: committed are the old text, the new one, or another one.
    approved = {
        names: number
        for path, (names, number) in old_texts.items()
        if path not in after or call.mind.trust.trusted(*names)
    }
    changed = {path for path, text in after.items() if text != old_texts.get(path)}
    return replace(
        done,
        commit=commit,
        approved=sum(approved.values()),
        unapproved=tuple(sorted(changed)) if call.agent is None else (),
    )


def unapproved(call: Call, pending: Sequence[Change]) -> dict[str, tuple[tuple[str, ...], int]]:
    """Returns the names and the number of memories of each changed file that is not approved."""
    paths = [change.path for change in pending if has_memories(change.path)]
    named = {path: call.mind.store.approvals(path) for path in paths}
    trusted = call.mind.trust.checker([name for names in named.values() for name in names])
    return {
        path: (names, _number(call, path))
        for path, names in named.items()
        if not all(map(trusted, names))
    }


def _number(call: Call, path: str) -> int:
    """Returns the number of memories in a file; an ingested file counts as one."""
    if path != LOG:
        return 1
    records = call.mind.store.read(path)
    return 0 if isinstance(records, Problem) else len(records)


def message_of(call: Call, pending: Sequence[Change]) -> str:
    """Returns a commit message with the titles of the changed memories."""
    titles: dict[str, list[str]] = {change: [] for change in changes.VERBS}
    agents = []
    memories = [entry for entry in pending if is_memory(entry.path)]
    for entry in memories or pending:
        memory = None if entry.change == "removed" else _memory(call, entry.path)
        if memory:
            name = f"{memory.type.value}: {memory.heading}"
        elif is_memory(entry.path):
            name = entry.path.rpartition("/")[2].removesuffix(".md")
        else:
            name = entry.path
        titles[entry.change].append(changes.one_line(name))
        if memory and memory.by and entry.change == "added":
            agents.append(memory.by)
    return changes.message(titles, agents, changes.VERBS if memories else changes.OF_FILES)


def _memory(call: Call, path: str) -> Memory | None:
    """Returns the memory in a file; None if it has none or several."""
    if not is_memory(path):
        return None
    records = call.mind.store.read(path)
    if isinstance(records, Problem) or len(records) != 1:
        return None
    return records[0].memory


# Automatic commits, which the user's setting `autocommit` switches on. The first change starts a
# separate process (`committing`), which waits for more changes and commits all of them together.
# Commands do not wait for it, and its failures do not affect them.


def commit_later(call: Call) -> None:
    """Schedules a commit of the written files unless another process has scheduled one."""
    with suppress(MindError, OSError):
        root = call.mind.project.root
        path = scheduled_file(root)
        if stamp := disk.stamp(path):
            if 0 <= time.time() - stamp.mtime_ns / 1e9 < _LOST_SECONDS:
                return
            files.remove(path)
        files.write_new(path, b"")
        _start(root, call.mind.home)


def _start(root: Path, home: Path) -> int:
    """Starts the process that commits, which outlives this one; returns its id."""
    import subprocess
    from threading import Thread

    words = [str(root), str(home), str(PAUSE_SECONDS)]
    process = subprocess.Popen(
        [sys.executable, "-m", "mimo.operations.committing", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",  # Python imports from the current folder first, which may be a clone.
    )
    # Waited for, so that a server that runs for days keeps no zombie processes.
    Thread(target=process.wait, name="mind-reaper", daemon=True).start()
    return process.pid


def failure_of_commit(call: Call) -> str | None:
    """Returns the time and the reason of the last automatic commit if it failed."""
    with suppress(OSError, MindError):
        time_, _, reason = disk.read(_failure(call)).decode("utf-8", "replace").partition(" ")
        return f"the automatic commit of {time_} failed: {changes.one_line(reason)}"
    return None


def note_failure(call: Call, error: MindError | OSError | None) -> None:
    """Stores the reason for which an automatic commit failed; None removes it."""
    with suppress(MindError, OSError):
        if error is None:
            _failure(call).unlink(missing_ok=True)
        else:
            reason = error.message if isinstance(error, MindError) else error.strerror
            text = f"{iso_utc(call.mind.now(), 'seconds')} {reason}"
            files.replace(_failure(call), text.encode("utf-8", "replace"), mode=0o600)


def _failure(call: Call) -> Path:
    # Not in the project: a clone could bring the file, and with it any text.
    root = disk.sha256(os.fsencode(call.mind.project.root)).hex()[:16]
    return call.mind.home / "cache" / f"{root}-autocommit"


def scheduled_file(root: Path) -> Path:
    """Returns the file that exists while a commit of a project's changes is scheduled."""
    return files.local(root, "autocommit")


# The merge driver, and private files in git.


def install(root: Path) -> bool:
    """Installs the merge driver in the repository's settings; returns whether it is new.

    Does nothing without git or a repository.
    """
    try:
        return bool(git.has_repository(root)) and git.install_driver(root)
    except Invalid:
        return False


def lacking(root: Path) -> str | None:
    """Returns a warning if git would merge memories as text, or slowly; None if all is well.

    A clone copies `.gitattributes`, but not the setting that names the program. A driver that the
    user wrote is well.
    """
    if not git.is_inside(root):
        return None
    with suppress(Invalid):
        driver = git.driver(root)
        if not driver:
            return "git merges memories here as plain text"
        if "mind merge-driver" in driver and driver != git.DRIVER:
            return "git merges memories here with the slower driver of an older version"
    return None


@frozen
class Leak:
    """A way in which private files can get into git, and the remedy."""

    message: str
    hint: str
    file: str


def leaks(root: Path) -> Iterator[Leak]:
    """Yields missing ignore rules of the project, and private files that git tracks."""
    if not git.is_inside(root):
        return
    if init.IGNORE_FILE in init.lacking(root):
        yield Leak(
            message=f"{init.IGNORE_FILE} lacks rules that keep private files out of git",
            hint=Hint(
                Command("doctor", fix=True),
                " restores them; ",
                Command("sync"),
                " never commits such files",
            ),
            file=init.IGNORE_FILE,
        )
    if tracked := commits.unshared(root):
        folders = " ".join(sorted({unshared_folder(path) or path for path in tracked}))
        yield Leak(
            message=f"git tracks files that must stay on this machine: {commits.some(tracked)}",
            hint=f"`git rm -rf --cached -- {folders}` and a commit untrack them; earlier commits "
            "keep them",
            file=tracked[0],
        )


def ignored(root: Path) -> str | None:
    """Returns a warning if ignore rules keep a part of the memory out of git; None otherwise.

    A memory that git ignores as a whole is the user's decision.
    """
    if not git.is_inside(root):
        return None
    try:
        words = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--", STORE)
        listed = os.fsdecode(git.run(root, *words).stdout).split("\0")
        paths = [path for path in listed if has_memories(path) or _is_apart(path)]
        paths = [path for path in paths if not disk.is_temporary(path.rpartition("/")[2])]
        if not paths or git.is_ignored(root, files.SETTINGS):
            return None
        rule = git.output(root, "check-ignore", "-v", "--", paths[0]) or ""
        place = re.match(r"(.+?):([0-9]+):", rule)
        note = f" (line {place[2]} of {place[1]})" if place else ""
        return (
            f"git ignores files of the memory, so they are not shared: {commits.some(paths)}{note}"
        )
    except Invalid as error:  # Only the error for a file of ignore rules has a path.
        return error.message if "path" in error.details else None


def _is_apart(path: str) -> bool:
    """Returns whether a file is one that is shared without being a memory, by its path."""
    apart = (f"{STORE}/values/", f"{STORE}/procedures/", files.POLICY)
    return path.startswith(apart) and files.is_shared(path)
