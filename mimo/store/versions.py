"""Files as git has them: what is staged, and all that ever was."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from mimo.errors import Invalid, StorageFailed
from mimo.store import git

if TYPE_CHECKING:
    from subprocess import Popen

_RAW = ("--raw", "-z", "--no-renames", "--no-abbrev", "--relative", "--diff-filter=d")
_SUBMODULE = "160000"
_SECONDS = 600
"""Deadline for listing a whole history."""
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
    raw = _output(root, "diff", "--cached", *_RAW, "--", *paths)
    return [
        Version(path, new, before=old if old.strip("0") else None)
        for _, old, new, path in _changes(raw)
    ]


def history(root: Path, paths: Sequence[str]) -> list[Version]:
    """Returns every content that a file below some paths had in any commit of any branch, once.

    Raises `Invalid` where there is no git repository.
    """
    words = ("--all", "--topo-order", "--reverse", "-m", "--format=%x01%H")
    raw = _output(root, "log", *words, *_RAW, "--", *paths)
    found: dict[str, Version] = {}
    for commit, _, new, path in _changes(raw):
        found.setdefault(new, Version(path, new, commit=commit))
    return list(found.values())


class Blobs:
    """Contents, read one after the other by one process of git."""

    def __init__(self, process: "Popen[bytes]") -> None:
        """Take a `git cat-file --batch`."""
        self._ask: IO[bytes] = _pipe(process.stdin)
        self._answer: IO[bytes] = _pipe(process.stdout)

    def read(self, blob: str) -> bytes:
        """Returns a content; nothing of a very large one. Raises `Invalid` if it is missing."""
        try:
            self._ask.write(f"{blob}\n".encode())
            self._ask.flush()
        except BrokenPipeError:
            pass  # git has ended, and answers nothing.
        head = self._answer.readline().split()
        if len(head) != 3:
            raise Invalid(f"git does not have the content `{blob}`", hint=git.PARTIAL)
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
    with git.running(root, "cat-file", "--batch") as process:
        yield Blobs(process)


def _changes(raw: bytes) -> Iterator[tuple[str | None, str, str, str]]:
    """Yields commit, old content, new content and path of each change in git's raw format."""
    commit = None
    words = iter(raw.decode("utf-8", "surrogateescape").split("\0"))
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


def _output(root: Path, *words: str) -> bytes:
    result = git.run(root, *words, seconds=_SECONDS, index=True)
    if result.returncode:
        raise Invalid(f"git {words[0]}: {git.complaint(result.stderr)}", hint="see `git status`")
    return result.stdout
