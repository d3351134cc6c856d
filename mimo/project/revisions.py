"""The history of the memory in git: commits, the files at a commit, and their last changes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mimo import when
from mimo.data import disk
from mimo.data.disk import STORE, Stamp
from mimo.data.files import digest, is_shared
from mimo.errors import Command, Hint, Invalid, NotFound
from mimo.frozen import frozen
from mimo.memory.changes import AGENT
from mimo.memory.model import Place, Problem, Record
from mimo.project import git
from mimo.project.accesses import Accesses
from mimo.project.memories import MemoryStore, of_log, records_of
from mimo.project.walk import LOG, Walk, is_markdown, misnamed

if TYPE_CHECKING:
    from mimo.memory.sources import Source

_LARGEST = 1_000_000
"""Maximum size in bytes of a file that is read from a commit."""
_AT_ONCE = 500
"""Number of blobs that are read at once, in the order of the files."""
_FIELDS = (
    f"%H%x00%an%x00%ae%x00%at%x00%ct%x00%s%x00%(trailers:key={AGENT},valueonly,separator=%x2C)%x00"
)
"""Seven fields. Only NUL can't be part of a name, an address or a message."""
_FIRST_TIMESTAMP = 100_000_000
"""In March 1973. Git does not read smaller numbers as timestamps."""
_CHANGES = {"A": "added", "D": "removed"}
_APART = (f"{STORE}/values/", f"{STORE}/procedures/")


@frozen
class Commit:
    """A commit."""

    id: str
    author: str
    email: str
    """The author's address in the commit; the repository's `.mailmap` is ignored."""
    when: datetime
    """The author's date."""
    committed: datetime
    """The committer's date, which a rebase changes."""
    subject: str
    agents: str
    """The agents named in the message, separated by commas."""

    @property
    def short(self) -> str:
        """Returns the start of the id."""
        return self.id[:10]


@frozen
class Change:
    """A file that a commit changed, or would change."""

    path: str
    """Relative to the project."""
    change: str
    """`added`, `changed` or `removed`."""


@frozen
class Step:
    """A commit and its changes to the memory."""

    commit: Commit
    files: tuple[Change, ...]


def _logged(root: Path, *words: str) -> Iterator[tuple[Commit, list[str]]]:
    """Yields the commits that `git log` lists, each with the names of files after it.

    Each begins with a random mark, which no name can be. (Git ends the list of names in different
    ways, depending on whether the commit is a merge.) Raises `Invalid` if git fails.
    """
    mark = os.urandom(8).hex()
    logged = git.ask(root, "log", "-z", f"--format={mark}%x00{_FIELDS}", *words)
    for record in os.fsdecode(logged).split(f"{mark}\0")[1:]:
        id_, author, email, written, committed, subject, agents, *names = record.split("\0")
        commit = Commit(
            id=id_,
            author=author,
            email=email,
            when=disk.moment(int(written or 0)),
            committed=disk.moment(int(committed or 0)),
            subject=subject,
            agents=agents.replace(",", ", "),
        )
        yield commit, [name for word in names if (name := word.removeprefix("\n"))]


def commits_by_path(
    root: Path, revision: str = "HEAD", folders: Sequence[str] = (f"{STORE}/",)
) -> dict[str, list[Commit]]:
    """Returns the commits up to a revision that changed each file of the folders, by path.

    The newest commit comes first. A missing revision gives no commits.
    """
    if not git.run(root, "rev-parse", "--verify", "--quiet", revision).stdout:
        return {}
    words = ("--name-only", "--relative", "-c", revision, "--", *folders)
    changed: dict[str, list[Commit]] = {}
    for commit, names in _logged(root, *words):
        for name in names:
            changed.setdefault(name, []).append(commit)
    return changed


def commits_before(root: Path, moments: Iterable[datetime]) -> dict[datetime, Commit | None]:
    """Returns the last commit of this branch before each moment; None if there was none.

    Commits of a branch that was merged are not of this one.
    """
    times = sorted(set(moments))
    if not times:
        return {}
    oldest = max(int(times[0].timestamp()), _FIRST_TIMESTAMP)
    newest: list[Commit] = []
    if commit_id(root, "HEAD"):
        for words in ((f"--since={oldest}",), ("-1", f"--before={oldest}")):
            logged = _logged(root, "--first-parent", *words, "HEAD", "--")
            newest += [commit for commit, _ in logged]
    newest.sort(key=lambda commit: commit.committed, reverse=True)
    return {moment: next((c for c in newest if c.committed <= moment), None) for moment in times}


def steps(
    root: Path,
    path: str | None,
    limit: int,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Iterator[Step]:
    """Yields the commits that changed the memory, or one file of it, also before it was renamed.

    The times limit them to `[since, until)`.
    """
    if not commit_id(root, "HEAD"):
        return
    paths = ["--follow", "--", path] if path else ["--", f"{STORE}/"]
    words = [f"--max-count={limit}", "--name-status", "--relative", "-c"]
    if since:
        words.append(f"--since={since.isoformat()}")
    if until:  # Git includes the second of the bound.
        words.append(f"--until={(until - timedelta(seconds=1)).isoformat()}")
    for commit, names in _logged(root, *words, *paths):
        yield Step(commit=commit, files=tuple(_changes(names)))


def path_with_line(root: Path, pattern: str) -> str | None:
    """Returns the last path of the newest file that ever had a matching line; None if none had.

    The pattern is an extended POSIX regular expression.
    """
    if not commit_id(root, "HEAD"):
        return None
    # Git takes a removed file and a new one that is similar for a renamed one.
    words = ("--max-count=1", "--name-status", "--relative", "--no-renames", f"-G{pattern}")
    for _, names in _logged(root, *words, "--", f"{STORE}/"):
        files = sorted(_changes(names), key=lambda file: file.change == "removed")
        return files[0].path if files else None
    return None


def _changes(words: Sequence[str]) -> Iterator[Change]:
    tail = iter(words)
    for word in tail:
        mark = word[:1]
        if mark in ("R", "C") and word[1:].isdigit():  # That of a merge has no path before.
            next(tail, "")
        path = next(tail, "")
        if path.startswith(f"{STORE}/") and is_shared(path):
            yield Change(path=path, change=_CHANGES.get(mark, "changed"))


def commits(root: Path, ids: Iterable[str]) -> dict[str, Commit]:
    """Returns commits by their ids."""
    unique_ids = list(dict.fromkeys(ids))
    if not unique_ids:
        return {}
    return {commit.id: commit for commit, _ in _logged(root, "--no-walk", *unique_ids, "--")}


def resolve(root: Path, revision: str, *, now: datetime) -> Commit:
    """Returns the commit of a revision, or the last commit of this branch before a date.

    Raises `NotFound`.
    """
    id_ = commit_id(root, revision) or _last_commit(root, revision, now)
    if id_ is None:
        raise NotFound(
            f"`{revision}` is not a commit, branch, tag or date of this repository",
            hint=git.SHALLOW
            if git.boundary(root)
            else Hint(
                "such as HEAD~3, v1.2, 2026-11-01 or `last week`; ",
                Command("log"),
                " lists the commits",
            ),
        )
    return commits(root, [id_])[id_]


def commit_id(root: Path, revision: str) -> str | None:
    """Returns the id of the commit that a revision names, or None."""
    if not revision or revision.startswith("-") or "\0" in revision:
        return None
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    printed = git.run(root, *words).stdout.decode("ascii", "replace").strip()
    # Of `^HEAD` and `A..B`, which name sets of commits, git prints other words.
    return printed if re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", printed) else None


def _last_commit(root: Path, date: str, now: datetime) -> str | None:
    try:
        until = when.window(None, None, date, now=now).until
    except Invalid:
        return None
    if until is None:
        return None
    timestamp = int(until.timestamp()) - 1
    # The other parents of a merge were not on this branch before it.
    words = ("rev-list", "-1", "--first-parent", f"--before={timestamp}")
    # Before the first commit, HEAD names none.
    can_have_commits = timestamp >= _FIRST_TIMESTAMP and commit_id(root, "HEAD") is not None
    commit = git.ask(root, *words, "HEAD", "--").decode().strip() if can_have_commits else ""
    if not commit:
        raise NotFound(
            f"there is no commit before {until:%Y-%m-%d %H:%M} UTC",
            hint=git.SHALLOW if git.boundary(root) else Hint(Command("log"), " lists the commits"),
        )
    return commit


def merge_base(root: Path, left: str, second: str) -> str:
    """Returns the last common commit of two branches."""
    return git.ask(root, "merge-base", left, second).decode().strip()


def main_branch(root: Path) -> str:
    """Returns the main branch: the remote's default branch, `main` or `master`."""
    for name in ("origin/HEAD", "main", "master", "origin/main", "origin/master"):
        if commit_id(root, name):
            return name
    raise NotFound(
        "there is no main branch here", hint=Hint("name one: ", Command("diff", "main...HEAD"))
    )


def short_name(root: Path, revision: str) -> str:
    """Returns the name of a branch as users write it: `origin/main` for `origin/HEAD`."""
    name = git.run(root, "rev-parse", "--abbrev-ref", revision).stdout.decode("utf-8", "replace")
    return name.strip() or revision


# Files at a commit, and their contents.


def tree_id(root: Path, commit: str) -> str:
    """Returns the id of the tree of the memory at a commit; empty if there was none."""
    words = ("rev-parse", "--verify", "--quiet", f"{commit}:./{STORE}")
    return git.run(root, *words).stdout.decode().strip()


def last_change(root: Path, commit: Commit) -> Commit:
    """Returns the last commit up to this one that changed the memory."""
    logged = _logged(root, "--max-count=1", commit.id, "--", f"{STORE}/")
    return next((changed for changed, _ in logged), commit)


def tree(root: Path, *words: str) -> dict[str, str]:
    """Returns the blob of each regular file that `git ls-tree -r` with `words` lists, by path."""
    blob_of = {}
    for entry in git.ask(root, "ls-tree", "-r", "-z", *words).split(b"\0"):
        about, _, name = entry.partition(b"\t")
        if about.startswith(b"100"):
            blob_of[os.fsdecode(name)] = about.split()[2].decode()
    return blob_of


def has_memories(path: str) -> bool:
    """Returns whether a file under `.mind/` is a memory, an ingested file, or the log."""
    return path == LOG or is_memory(path)


def is_memory(path: str) -> bool:
    """Returns whether a file under `.mind/` is a memory or an ingested file, by its path."""
    folders = path.split("/")
    hidden = any(part.startswith(".") for part in folders[1:])
    apart = hidden or path == LOG or path.startswith(_APART)
    return folders[0] == STORE and is_markdown(path) and is_shared(path) and not apart


def differences(root: Path, base: str, after: str) -> Iterator[tuple[str, str, str]]:
    """Yields the files of memories that differ between two commits.

    Each has its path and its blobs before and after; the id of a missing file is all zeros.
    """
    words = ("diff-tree", "-r", "-z", "--no-renames", "--relative", base, after)
    parts = git.ask(root, *words, "--", f"{STORE}/").split(b"\0")
    for about, name in zip(parts[::2], parts[1::2], strict=False):
        _, _, old, new, _ = about.decode().split()
        if has_memories(path := os.fsdecode(name)):
            yield path, old, new


def records_at(root: Path, data: bytes, path: str, commit: Commit) -> tuple[Record, ...] | Problem:
    """Returns the memories in a file's bytes at a commit, or the problem with it."""
    if path == LOG:
        return of_log(root, data, commit.when, revision=commit.id)
    return records_of(data, path, commit.when)


def contents(root: Path, places: Iterable[tuple[str, str]]) -> Mapping[tuple[str, str], bytes]:
    """Returns the bytes of files at commits, by (commit, path), except files over a megabyte."""
    # git reads one name from each line, so a path with a line break would name another file.
    pairs = [pair for pair in dict.fromkeys(places) if "\n" not in pair[1]]
    ids = small_blobs(root, [f"{commit}:./{path}" for commit, path in pairs])
    blob_of = {pair: blob for pair, blob in zip(pairs, ids, strict=False) if blob}
    content = blobs(root, blob_of.values())
    return {pair: content[blob] for pair, blob in blob_of.items()}


def small_blobs(root: Path, names: Sequence[str]) -> list[str | None]:
    """Returns the id of each object; None if it is missing, over a megabyte, or not a blob."""
    if not names:
        return []
    data = os.fsencode("".join(f"{name}\n" for name in names))
    listed = git.ask(root, "cat-file", "--batch-check", data=data).decode("utf-8", "replace")
    # A line repeats the name of a missing object, which may have other separators of lines.
    words = [line.rsplit(" ", 2) for line in listed.removesuffix("\n").split("\n")]
    # After the name of a missing object is the word `missing`, where others have their size.
    sizes = (
        int(w[2]) if len(w) == 3 and w[1] == "blob" and w[2].isdigit() else None for w in words
    )
    return [
        w[0] if size is not None and size <= _LARGEST else None
        for w, size in zip(words, sizes, strict=True)
    ]


def blobs(root: Path, names: Iterable[str]) -> dict[str, bytes]:
    """Returns the content of objects by their names; missing ones are left out."""
    unique_names = list(dict.fromkeys(names))
    if not unique_names:
        return {}
    answer = git.ask(root, "cat-file", "--batch", data="\n".join([*unique_names, ""]).encode())
    content, place = {}, 0
    for name in unique_names:
        end = answer.index(b"\n", place)
        size = answer[place:end].rsplit(b" ", 1)[-1]
        place = end + 1
        if size.isdigit():
            content[name] = answer[place : place + int(size)]
            place += int(size) + 1
    return content


class PastStore(MemoryStore):
    """Reads the memories at a commit from git's objects; they can't be changed."""

    def __init__(self, root: Path, commit: Commit) -> None:
        """Takes the project's root and the commit, whose date memories without one get."""
        super().__init__(root)
        self.commit = commit
        self._content: dict[str, bytes] = {}

    @cached_property
    def _blobs(self) -> dict[str, str]:
        files = tree(self.root, self.commit.id, "--", f"{STORE}/")
        return {path: blob for path, blob in files.items() if has_memories(path)}

    def stamps_of(self, paths: Sequence[str]) -> None:
        """Returns None: these files are not on the disk."""

    def stamp(self, path: str) -> Stamp | None:
        """Returns the stamp of a file as `walk` does."""
        blob = self._blobs.get(path)
        return _stamp(blob) if blob else None

    def walk(self) -> Walk:
        """Returns a stamp for each file, made from the id of its blob."""
        result = Walk()
        for path, blob in self._blobs.items():
            if problem := misnamed(path):
                result.problems.append(problem)
            else:
                result.files.add(path, _stamp(blob))
        self._problems = tuple(result.problems)
        return result

    def folders(self) -> tuple[()]:
        """Returns no folders, since a commit never changes."""
        return ()

    def read(self, path: str) -> tuple[Record, ...] | Problem:
        """Returns the memories in a file at the commit, or the problem with it."""
        data = self.data(path)
        if data is None:
            return Problem(path=path, line=None, reason="its content is missing in git")
        return records_at(self.root, data, path, self.commit)

    def digest(self, path: str) -> str:
        """Returns the digest of a file; empty if it is missing."""
        data = self.data(path)
        return "" if data is None else digest(data)

    def source(self, place: Place) -> Source | None:
        """Returns the source from the header of its file; None if the header is incomplete."""
        from mimo.memory.sources import header_of

        data = self.data(place.path)
        return header_of(data, path=place.path) if data is not None else None

    def raw(self, record: Record) -> bytes:
        """Returns the bytes of a memory's file."""
        return self.data(record.place.path) or b""

    def data(self, path: str) -> bytes | None:
        """Returns the bytes of a file, and caches those of the files after it."""
        blob = self._blobs.get(path)
        if blob is None:
            return None
        if blob not in self._content:
            names = list(self._blobs.values())
            place = names.index(blob)
            self._content = blobs(self.root, names[place : place + _AT_ONCE])
        return self._content.get(blob)


def _stamp(blob: str) -> Stamp:
    """Returns the id of a blob as the four numbers of a stamp."""
    return Stamp(*(int(blob[start : start + 15] or "0", 16) for start in (0, 15, 30, 45)))


class Uncounted(Accesses):
    """Accesses at an earlier revision, which do not keep memories from fading."""

    def note(self, ids: Iterable[str], now: datetime) -> None:
        """Counts nothing."""
