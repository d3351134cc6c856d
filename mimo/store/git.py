"""Asking git, in a way in which nothing that a repository holds can run.

Hooks, file-system monitors, pagers, external diffs and prompts are off, and no lock is taken.
"""

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from mimo.errors import Invalid
from mimo.frozen import frozen

if TYPE_CHECKING:
    import subprocess

_OFF = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.pager=cat",
    "protocol.ext.allow=never",
    "log.showSignature=false",
)
_SECONDS = 5
_SECONDS_OF_A_DIFF = 60


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


def diff(root: Path, *, staged: bool = False, rev: str | None = None) -> str:
    """Returns the changes below a folder as a unified diff without context.

    They are those of the files since the last commit, or since `rev`; with `staged`, what the next
    commit would hold; with two revisions (`main...HEAD`) what lies between them. Paths are relative
    to the top of the work tree. Raises `Invalid` where git can't tell.
    """
    shape = ("--unified=0", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames")
    prefixes = ("--src-prefix=a/", "--dst-prefix=b/", "--no-relative", "--ignore-submodules")
    against = [] if staged and rev is None else [rev or "HEAD"]
    settings = [] if staged or ".." in (rev or "") else _without_filters(root)
    answer = _asked(
        root,
        *settings,
        *("diff", *shape, *prefixes),
        *(["--cached"] if staged else []),
        *("--end-of-options", *against, "--", "."),
        seconds=_SECONDS_OF_A_DIFF,
    )
    if answer is None:
        raise Invalid(
            "git can't be asked what changed", hint="install git, or name the files to check"
        )
    if answer.returncode:
        raise Invalid(f"git can't tell what changed: {_complaint(answer.stderr)}", hint=_NO_DIFF)
    return answer.stdout.decode("utf-8", "surrogateescape")


def top(root: Path) -> Path | None:
    """Returns the folder that the paths of `diff` are relative to; None outside git."""
    for folder in (root, *root.parents):
        if (folder / ".git").exists():
            return folder
    return None


_NO_DIFF = "outside git, and before the first commit, name the files to check"


def _complaint(told: bytes) -> str:
    lines = told.decode("utf-8", "replace").strip().splitlines()
    return lines[0].removeprefix("fatal: ") if lines else "it gives no reason"


def _without_filters(root: Path) -> list[str]:
    """Returns settings without which git would run the filters of a repository on its files."""
    answer = _asked(root, "config", "--name-only", "--get-regexp", r"^filter\..*")
    told = answer.stdout.decode("utf-8", "replace") if answer else ""
    names = {line.rpartition(".")[0] for line in told.splitlines()}
    empty = ("clean=", "smudge=", "process=", "required=false")
    return [word for name in sorted(names) for end in empty for word in ("-c", f"{name}.{end}")]


def _said(root: Path, *words: str) -> str | None:
    """Returns what git prints for a question, stripped; None where it fails or says nothing."""
    answer = _asked(root, *words)
    if answer is None or answer.returncode:
        return None
    return answer.stdout.decode("utf-8", "replace").strip() or None


def _asked(
    root: Path, *words: str, seconds: float = _SECONDS
) -> "subprocess.CompletedProcess[bytes] | None":
    """Returns what git answers; None where there is no git, or it takes too long."""
    import subprocess

    program = shutil.which("git")
    if program is None:
        return None
    settings = [word for setting in _OFF for word in ("-c", setting)]
    quiet = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8"}
    try:
        return subprocess.run(
            [program, *settings, "-C", str(root), "--literal-pathspecs", *words],
            capture_output=True,
            timeout=seconds,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **quiet},
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
