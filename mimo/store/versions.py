"""Files as git has them: what is staged, and all that ever was."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from mimo.errors import Invalid, StorageFailed
from mimo.store.git import environment, hardened

if TYPE_CHECKING:
    from subprocess import Popen

_RAW = ("--raw", "-z", "--no-renames", "--no-abbrev", "--relative", "--diff-filter=d")
_SAFE = ("--no-ext-diff", "--no-textconv")
_SUBMODULE = "160000"
_LONGEST = 32 * 1024 * 1024
"""Bytes of the largest file that is kept in memory to be looked at."""


class Version(NamedTuple):
    """One state of a file."""

    path: str
    """Relative to the project's root."""
    blob: str
    """Git's name of its content."""
    before: str | None = None
    """The content that it replaces."""
    commit: str | None = None
    """The first commit that has it."""


def staged(root: Path, paths: Sequence[str]) -> list[Version]:
    """Returns the files that the next commit changes, below some paths of the project.

    Raises `Invalid` where there is no git repository.
    """
    said = _said(root, "diff", "--cached", *_RAW, *_SAFE, "--", *paths)
    return [
        Version(path, new, before=old if old.strip("0") else None)
        for _, old, new, path in _changes(said)
    ]


def history(root: Path, paths: Sequence[str]) -> list[Version]:
    """Returns every content that a file below some paths had in any commit of any branch, once.

    Raises `Invalid` where there is no git repository.
    """
    said = _said(
        root,
        "log",
        "--all",
        "--topo-order",
        "--reverse",
        "-m",
        "--format=%x01%H",
        *_RAW,
        *_SAFE,
        "--",
        *paths,
    )
    found: dict[str, Version] = {}
    for commit, _, new, path in _changes(said):
        found.setdefault(new, Version(path, new, commit=commit))
    return list(found.values())


class Blobs:
    """Contents, read one after the other by one process of git."""

    def __init__(self, process: "Popen[bytes]") -> None:
        """Take a `git cat-file --batch`."""
        self._ask: IO[bytes] = _pipe(process.stdin)
        self._answer: IO[bytes] = _pipe(process.stdout)

    def read(self, blob: str) -> bytes:
        """Returns a content; nothing of one that is missing or very large."""
        self._ask.write(f"{blob}\n".encode())
        self._ask.flush()
        head = self._answer.readline().split()
        if len(head) != 3:
            return b""
        left, kept = int(head[2]), b""
        if left <= _LONGEST:
            kept, left = self._answer.read(left), 0
        while left:
            left -= len(self._answer.read(min(left, 1 << 20))) or left
        self._answer.read(1)
        return kept


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise StorageFailed("git could not be asked")
    return stream


@contextmanager
def blobs(root: Path) -> Iterator[Blobs]:
    """Yields what reads contents; its process ends with the block."""
    import subprocess

    with subprocess.Popen(
        hardened(root, "cat-file", "--batch"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(),
    ) as process:
        try:
            yield Blobs(process)
        finally:
            process.kill()


def _changes(said: bytes) -> Iterator[tuple[str | None, str, str, str]]:
    """Yields commit, old content, new content and path of each change that git tells."""
    commit = None
    words = iter(said.decode("utf-8", "surrogateescape").split("\0"))
    for word in words:
        if word.startswith("\x01"):
            commit = word[1:41]
        elif word.lstrip("\n").startswith(":"):
            _, mode, old, new, _ = word.split()
            path = next(words)
            if mode != _SUBMODULE:
                yield (
                    commit,
                    old,
                    new,
                    path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"),
                )


def _environment() -> dict[str, str]:
    """Returns the environment for git, with the index that a commit under way uses.

    `git commit -a` and `git commit FILE` run their hooks with another one than the usual.
    """
    index = os.environ.get("GIT_INDEX_FILE")
    return environment() | ({"GIT_INDEX_FILE": str(Path(index).absolute())} if index else {})


def _said(root: Path, *words: str) -> bytes:
    import subprocess

    if shutil.which("git") is None:
        raise Invalid("there is no git on this machine", hint="install it, or name a path to scan")
    done = subprocess.run(
        hardened(root, *words),
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env=_environment(),
    )
    if done.returncode:
        raise Invalid(
            f"git can't tell: {done.stderr.decode('utf-8', 'replace').strip()[:200]}",
            hint="run it in a project that is a git repository",
        )
    return done.stdout
