"""What git remembers of the memory: revisions, the files they hold, and who wrote what."""

import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from mimo.domain import when
from mimo.domain.changes import AGENT
from mimo.errors import Invalid, NotFound
from mimo.frozen import frozen
from mimo.store.names import is_shared
from mimo.store.repository import Repository
from mimo.store.walk import STORE, is_markdown

_FORMAT = f"%x1e%H%x1f%an%x1f%at%x1f%s%x1f%(trailers:key={AGENT},valueonly,separator=%x2C)%x1f"
_CHANGES = {"A": "added", "D": "removed"}
_APART = (f"{STORE}/values/", f"{STORE}/procedures/")


@frozen
class Commit:
    """A commit, as far as people need it to know what it was."""

    id: str
    author: str
    when: datetime
    subject: str
    agents: str = ""
    """The agents that are named in its message, by commas."""

    @property
    def short(self) -> str:
        """Returns the start of its id."""
        return self.id[:10]


@frozen
class Touched:
    """A file that a commit changed."""

    path: str
    change: str
    """`added`, `changed` or `removed`."""


@frozen
class Step:
    """A commit, and what it did to the memory."""

    commit: Commit
    files: tuple[Touched, ...]


@frozen
class Difference:
    """A file that differs between two revisions; an empty blob stands for none."""

    path: str
    before: str
    after: str


@frozen
class Line:
    """A line of a file, and the commit that it comes from."""

    commit: str
    number: int
    text: str


def resolve(repository: Repository, revision: str, *, now: datetime) -> Commit:
    """Returns the commit that a revision names, or the last one of this branch before a date.

    Raises `NotFound` where it is neither.
    """
    found = _commit_id(repository, revision) or _before(repository, revision, now)
    if found is None:
        raise NotFound(
            f"`{revision}` is no commit, branch, tag or date of this repository",
            hint="such as HEAD~3, v1.2, 2026-11-01 or `last week`; `mind log` lists the commits",
        )
    told = repository.ask("log", "-1", f"--format={_FORMAT}", found)
    return next(_steps(told)).commit


def common(repository: Repository, first: str, second: str) -> str:
    """Returns the commit at which two branches parted."""
    return repository.ask("merge-base", first, second).decode().strip()


def main_branch(repository: Repository) -> str:
    """Returns the branch that others are merged into: the remote's own, `main` or `master`."""
    for name in ("origin/HEAD", "main", "master", "origin/main", "origin/master"):
        if _commit_id(repository, name):
            return name
    raise NotFound("there is no main branch here", hint="name one: `mind diff main...HEAD`")


def state(repository: Repository, commit: str) -> str:
    """Returns the name of all that the memory was at a commit; empty where there was none."""
    told = repository.run("rev-parse", "--verify", "--quiet", f"{commit}:./{STORE}")
    return told.stdout.decode().strip()


def files(repository: Repository, commit: str) -> dict[str, str]:
    """Returns the blob of each file of memories at a commit, by path relative to the project."""
    told = repository.ask("ls-tree", "-r", "-z", commit, "--", f"{STORE}/")
    found = {}
    for entry in told.split(b"\0"):
        about, _, name = entry.partition(b"\t")
        path = os.fsdecode(name)
        if about.startswith(b"100") and is_memory(path):
            found[path] = about.split()[2].decode()
    return found


def is_memory(path: str) -> bool:
    """Returns whether a file under `.mind/` is one of memories, by its name."""
    folders = path.split("/")
    hidden = any(part.startswith(".") for part in folders[1:])
    apart = hidden or path == f"{STORE}/MEMORY.md" or path.startswith(_APART)
    return folders[0] == STORE and is_markdown(path) and is_shared(path) and not apart


def blobs(repository: Repository, names: Iterable[str]) -> dict[str, bytes]:
    """Returns the content of blobs by their names."""
    wanted = list(dict.fromkeys(names))
    if not wanted:
        return {}
    told = repository.ask("cat-file", "--batch", given="\n".join([*wanted, ""]).encode())
    found, place = {}, 0
    for name in wanted:
        end = told.index(b"\n", place)
        size = told[place:end].rsplit(b" ", 1)[-1]
        place = end + 1
        if size.isdigit():
            found[name] = told[place : place + int(size)]
            place += int(size) + 1
    return found


def differences(repository: Repository, before: str, after: str) -> tuple[Difference, ...]:
    """Returns the files of memories that differ between two commits."""
    words = (
        "diff-tree",
        "-r",
        "-z",
        "--no-renames",
        "--relative",
        before,
        after,
        "--",
        f"{STORE}/",
    )
    parts = repository.ask(*words).split(b"\0")
    found = []
    for about, name in zip(parts[::2], parts[1::2], strict=False):
        _, _, old, new, _ = about.decode().split()
        if is_memory(path := os.fsdecode(name)):
            found.append(Difference(path=path, before=_some(old), after=_some(new)))
    return tuple(found)


def _some(blob: str) -> str:
    """Returns the name of a blob; empty for the zeros that stand for none."""
    return blob if blob.strip("0") else ""


def steps(repository: Repository, path: str | None, limit: int) -> Iterator[Step]:
    """Yields the commits that changed the memory, or one file of it under whatever name."""
    what = ["--follow", "--", path] if path else ["--", f"{STORE}/"]
    words = ("log", "-z", f"--max-count={limit}", "--name-status", "--relative")
    if _commit_id(repository, "HEAD"):
        told = repository.ask(*words, f"--format={_FORMAT}", *what)
        yield from _steps(told)


def blame(repository: Repository, path: str) -> tuple[Line, ...]:
    """Returns the lines of a file at the last commit, each with the commit that it comes from."""
    told = repository.ask("blame", "--porcelain", "HEAD", "--", path)
    found: list[Line] = []
    commit, number = "", 0
    for line in told.decode("utf-8", "replace").split("\n"):
        word, _, rest = line.partition(" ")
        if line.startswith("\t"):
            found.append(Line(commit=commit, number=number, text=line[1:]))
        elif len(word) >= 40 and rest[:1].isdigit():
            commit, number = word, int(rest.split()[1])
    return tuple(found)


def commits(repository: Repository, names: Iterable[str]) -> dict[str, Commit]:
    """Returns commits by their ids."""
    wanted = list(dict.fromkeys(names))
    if not wanted:
        return {}
    told = repository.ask("log", "--no-walk", f"--format={_FORMAT}", *wanted)
    return {step.commit.id: step.commit for step in _steps(told)}


def _commit_id(repository: Repository, revision: str) -> str | None:
    if not revision or revision.startswith("-") or "\0" in revision:
        return None
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    return repository.run(*words).stdout.decode().strip() or None


def _before(repository: Repository, date: str, now: datetime) -> str | None:
    try:
        until = when.window(None, None, date, now=now).until
    except Invalid:
        return None
    if until is None:
        return None
    words = ("rev-list", "-1", f"--before={int(until.timestamp()) - 1}", "HEAD")
    found = repository.run(*words).stdout.decode().strip()
    if not found:
        raise NotFound(
            f"there was no commit before {until:%Y-%m-%d %H:%M} UTC", hint="`mind log` has them"
        )
    return found


def _steps(told: bytes) -> Iterator[Step]:
    for record in os.fsdecode(told).split("\x1e")[1:]:
        id_, author, seconds, subject, agents, names = record.split("\x1f", 5)
        commit = Commit(
            id=id_,
            author=author,
            when=datetime.fromtimestamp(int(seconds), UTC),
            subject=subject,
            agents=agents.replace(",", ", "),
        )
        yield Step(commit=commit, files=tuple(_touched(names.strip("\0\n").split("\0"))))


def _touched(words: Sequence[str]) -> Iterator[Touched]:
    rest = iter(words)
    for word in rest:
        mark = word.strip("\n")
        if mark[:1] in ("R", "C"):
            next(rest, "")
        path = next(rest, "")
        if path.startswith(f"{STORE}/") and is_shared(path):
            yield Touched(path=path, change=_CHANGES.get(mark[:1], "changed"))
