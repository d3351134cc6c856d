"""Asking git, in a way in which nothing that a repository holds can run.

Hooks, file-system monitors, pagers, external diffs and prompts are off, and no lock is taken.
"""

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from mimo.frozen import frozen

_OFF = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.pager=cat",
    "protocol.ext.allow=never",
    "log.showSignature=false",
)
_SECONDS = 5


@frozen
class Commit:
    """A commit, as far as its message matters."""

    id: str
    author: str
    when: datetime
    body: str
    """The message without its first line."""


def author_of(root: Path, path: str) -> str | None:
    """Returns who last committed a file of the project; None where git can't tell."""
    return _said(root, "log", "-1", "--no-ext-diff", "--no-textconv", "--format=%an", "--", path)


def line_dates(root: Path, path: str) -> dict[str, datetime]:
    """Returns when each line of a file was committed last, by its text without blanks around it.

    It is the last commit's state that is asked for: to look at the file itself, git would run the
    filters that the repository's settings name.
    """
    told = _said(root, "blame", "--porcelain", "--no-textconv", "HEAD", "--", path) or ""
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
    told = _said(root, "log", "-z", f"--max-count={most}", "--no-ext-diff", "--no-textconv", form)
    for record in (told or "").split("\0"):
        id_, _, rest = record.partition("\x1f")
        author, _, rest = rest.partition("\x1f")
        seconds, _, body = rest.partition("\x1f")
        if seconds.isdigit():
            when = datetime.fromtimestamp(int(seconds), UTC)
            yield Commit(id=id_.strip(), author=author, when=when, body=body)


def directory(root: Path) -> Path | None:
    """Returns the git directory of the work tree that a folder lies in, found without git."""
    for folder in (root, *root.parents):
        marker = folder / ".git"
        if marker.is_dir():
            return marker
        if marker.is_file():
            try:
                named = marker.read_text("utf-8", "replace").partition("gitdir:")[2].strip()
            except OSError:
                return None
            return folder / named if named else None
    return None


def history_stamp(root: Path) -> os.stat_result | None:
    """Returns the status of the file that changes with every commit; None outside git."""
    folder = directory(root)
    if folder is None:
        return None
    for name in ("logs/HEAD", "HEAD"):
        try:
            return (folder / name).lstat()
        except OSError:
            continue
    return None


def _said(root: Path, *words: str) -> str | None:
    """Returns what git prints for a question, stripped; None where it fails or says nothing."""
    import subprocess

    program = shutil.which("git")
    if program is None:
        return None
    settings = [word for setting in _OFF for word in ("-c", setting)]
    quiet = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8"}
    try:
        answer = subprocess.run(
            [program, *settings, "-C", str(root), "--literal-pathspecs", *words],
            capture_output=True,
            timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **quiet},
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.decode("utf-8", "replace").strip() or None
