"""What git knows of the past: messages of commits, and when lines were written."""

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from mimo import disk
from mimo.frozen import frozen
from mimo.store import git


@frozen
class Commit:
    """A commit, as far as its message matters."""

    id: str
    author: str
    when: datetime
    body: str
    """The message without its first line."""


def line_dates(root: Path, path: str) -> dict[str, datetime]:
    """Returns when each line of a file was committed last, by its text without blanks around it.

    Of the last commit's state: reading the file itself could run git's filters.
    """
    told = git.output(root, "blame", "--porcelain", "HEAD", "--", path) or ""
    times: dict[str, datetime] = {}
    found: dict[str, datetime] = {}
    commit = ""
    for line in told.split("\n"):
        word, _, rest = line.partition(" ")
        if line.startswith("\t"):
            found.setdefault(line.strip(), times[commit])
        elif len(word) >= 40 and rest[:1].isdigit():
            commit = word
        elif word == "author-time":
            times[commit] = datetime.fromtimestamp(int(rest), UTC)
    return {text: time for text, time in found.items() if text}


def commits(root: Path, most: int) -> Iterator[Commit]:
    """Yields the last commits, newest first."""
    form = "--format=%H%x1f%an%x1f%ct%x1f%b"
    told = git.output(root, "log", "-z", f"--max-count={most}", form)
    for record in (told or "").split("\0"):
        id_, _, rest = record.partition("\x1f")
        author, _, rest = rest.partition("\x1f")
        seconds, _, body = rest.partition("\x1f")
        if seconds.isdigit():
            when = datetime.fromtimestamp(int(seconds), UTC)
            yield Commit(id=id_.strip(), author=author, when=when, body=body)


def stamp(root: Path) -> os.stat_result | None:
    """Returns the status of a file that changes with every commit; None outside git."""
    folder = directory(root)
    if folder is None:
        return None
    for name in ("logs/HEAD", _branch(folder), "packed-refs", "HEAD"):
        with suppress(OSError, ValueError):
            return (folder / name).lstat()
    return None


def folder(root: Path) -> Path | None:
    """Returns the folder in which every commit changes something; None where there is none."""
    found = directory(root)
    logs = found / "logs" if found else None
    return logs if logs and (logs / "HEAD").is_file() else None


def _branch(folder: Path) -> str:
    """Returns the file of the branch that is checked out; that of HEAD itself where there is none.

    It tells of commits where git is told to keep no log of them.
    """
    try:
        return disk.first_line(folder / "HEAD").partition("ref: ")[2] or "HEAD"
    except (OSError, ValueError):
        return "HEAD"


def directory(root: Path) -> Path | None:
    """Returns the git directory of the work tree that a folder lies in, found without git."""
    for folder in (root, *root.parents):
        marker = folder / ".git"
        if marker.is_dir():
            return marker
        if marker.is_file():
            try:
                named = disk.first_line(marker).partition("gitdir:")[2].strip()
            except (OSError, ValueError):
                return None
            return folder / named if named else None
    return None
