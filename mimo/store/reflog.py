"""What was committed in this clone, as git's own log of HEAD has it.

A reflog is written by the git of this machine and never transferred, so that a commit which it
calls `commit: …` was made here, whatever the commit's author claims. Commits that came by fetch,
merge, rebase or cherry-pick stand there under other words.
"""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from mimo import disk

_MADE = re.compile(
    rb"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) [^\t]*\tcommit(?: \((initial|amend|merge)\))?: "
)


class Entry(NamedTuple):
    """A commit that was made here."""

    commit: str
    amended: str | None
    """The commit that it replaced by `git commit --amend`."""


class Entries(NamedTuple):
    """What the reflogs hold after a position."""

    made: tuple[Entry, ...]
    positions: Mapping[str, str]
    """By the name of a reflog, the digest of its last line."""


def read(common: Path, positions: Mapping[str, str]) -> Entries:
    """Returns the commits that were made here since `positions`, in every worktree.

    A reflog that is not in `positions` is read from its beginning.
    """
    made, ends = list[Entry](), dict(positions)
    for name, path in _logs(common):
        lines = _lines(path)
        if lines:
            made += _made(_after(lines, positions.get(name)))
            ends[name] = _mark(lines[-1])
    return Entries(tuple(dict.fromkeys(made)), ends)


def ends(common: Path) -> dict[str, str]:
    """Returns the positions after all that the reflogs hold now."""
    return {name: _mark(lines[-1]) for name, path in _logs(common) if (lines := _lines(path))}


def _logs(common: Path) -> Iterator[tuple[str, Path]]:
    yield "", common / "logs" / "HEAD"
    with suppress(OSError):
        for name in sorted(os.listdir(common / "worktrees")):  # noqa: PTH208 - names are enough
            yield name, common / "worktrees" / name / "logs" / "HEAD"


def _lines(path: Path) -> list[bytes]:
    try:
        return disk.read(path).splitlines()
    except OSError:
        return []


def _after(lines: list[bytes], position: str | None) -> list[bytes]:
    """Returns the lines after a position; where that is lost, those of a log that is new."""
    if position is None:
        return lines
    for number in range(len(lines) - 1, -1, -1):
        if _mark(lines[number]) == position:
            return lines[number + 1 :]
    is_new = not lines[0].partition(b" ")[0].strip(b"0")
    return lines if is_new else []


def _made(lines: list[bytes]) -> Iterator[Entry]:
    for line in lines:
        if match := _MADE.match(line):
            amended = match[1].decode() if match[3] == b"amend" else None
            yield Entry(match[2].decode(), amended)


def _mark(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()[:32]
