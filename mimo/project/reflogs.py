"""Reflogs, git's local logs of HEAD: the evidence of what was committed in this clone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from mimo.data import disk
from mimo.frozen import NamedTuple
from mimo.text.clean import compiled

_ENTRY = r"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) [^\t]*\t(.*?): (.*)"
"""A line of a reflog: two commits, an action, and a text such as the subject of a commit."""
_VISIT = r"[0-9a-f]{40,64} ([0-9a-f]{40,64}) [^\t]*> (\d{1,12}) [+-]\d{4}\t"
"""The commit and the time of a line."""
_REVERT = "revert"
_COMMIT_ACTION = r"commit(?: \((initial|amend|merge)\))?"
_REBASE = r"rebase(?: .*)?|(?!commit |cherry-pick |revert ).* \([a-z]+\)"
"""An action of a rebase; that of `git pull --rebase` begins with the words of the command."""
_LEAVES = r"moving from [0-9a-f]{40,64} to (?![0-9a-f]{40,64}$).*"
"""The text of a checkout of a branch on a detached HEAD, on which a rebase runs."""


class Reflogs(NamedTuple):
    """The new entries of the reflogs."""

    commits: Mapping[str, str | None]
    """The commits that were made here, each with the commit that it amended."""
    reverts: frozenset[str]
    """Those of them that revert other commits, which may be another author's."""
    positions: Mapping[str, str]
    """By the name of a reflog, the digest of its last line."""
    rebasing: tuple[str, ...]
    """The reflogs of the worktrees in which a rebase is in progress."""


def read(common: Path, positions: Mapping[str, str], rebasing: Sequence[str] = ()) -> Reflogs:
    """Returns the commits that were made in this clone since `positions`, in every worktree.

    A reflog without a position is read from its start. `rebasing` has the reflogs whose position is
    within a rebase. Commits within one are left out: if the user resolves a conflict and runs
    `git commit`, git names the user as the author of the whole commit of another author.
    """
    commits, reverts = dict[str, str | None](), set[str]()
    ends, within = dict(positions), list[str]()
    for name, folder in _worktrees(common):
        # First, since a rebase that ends meanwhile has written its last line.
        running = _is_rebasing(folder)
        if not (lines := _lines(folder)):
            continue
        ends[name] = _mark(lines[-1])
        after = [line.decode("latin-1") for line in _after(lines, positions.get(name))]
        logged, inside = _outside_rebases(after, name in rebasing or None, running)
        if inside:
            within.append(name)
        for previous, commit, kind in logged:
            commits[commit] = previous if kind == "amend" else commits.get(commit)
            reverts.update([commit] if kind == _REVERT else ())
    return Reflogs(commits, frozenset(reverts), ends, tuple(within))


def visits(common: Path) -> dict[str, int]:
    """Returns the time, in seconds since 1970, at which each commit was the current one first."""
    times: dict[str, int] = {}
    for _, folder in _worktrees(common):
        for line in _lines(folder):
            if match := compiled(_VISIT).match(line.decode("latin-1")):
                times[match[1]] = min(times.get(match[1], int(match[2])), int(match[2]))
    return times


def commits_within_rebases(common: Path) -> frozenset[str]:
    """Returns the commits that were made here within a rebase, as far as the reflogs go back."""
    within = set[str]()
    for _, folder in _worktrees(common):
        running = _is_rebasing(folder)
        lines = [line.decode("latin-1") for line in _lines(folder)]
        logged = [entry for line in lines if (entry := compiled(_ENTRY).match(line))]
        within |= {entry[2] for entry in logged if compiled(_COMMIT_ACTION).fullmatch(entry[3])}
        within -= {commit for _, commit, _ in _outside_rebases(lines, None, running)[0]}
    return frozenset(within)


def _outside_rebases(
    lines: Iterable[str], inside: bool | None, running: bool
) -> tuple[list[tuple[str, ...]], bool]:
    """Returns the commits outside of rebases, and whether a rebase goes on after the last line.

    Each commit has the one before it, its id and its kind. `inside` is None if that is unknown: git
    removes old lines, the first one of a rebase too, and writes no last one on a detached HEAD and
    for `git rebase --quit`. Therefore a commit waits for the next line of a rebase: it counts if
    that begins one, or if there is none and no rebase is `running`. A checkout keeps what
    a stopped rebase has staged, so the first commit after it does not count.
    """
    counted, waiting = list[tuple[str, ...]](), list[tuple[str, ...]]()
    has_staged = False
    for line in lines:
        if not (entry := compiled(_ENTRY).match(line)):
            continue
        previous, commit, action, text = entry.groups()
        match = compiled(_COMMIT_ACTION).fullmatch(action)
        if match or action == _REVERT:
            if not inside and not has_staged:
                waiting.append((previous, commit, match[1] if match else action))
            has_staged = False
        elif compiled(_REBASE).fullmatch(action):
            if action == "rebase" and text.startswith("checkout "):
                continue  # The branch was up to date.
            if action.endswith("(start)"):
                counted += waiting
            waiting.clear()
            if action.endswith(")"):
                inside = has_staged = not action.endswith(("(finish)", "(abort)"))
        elif inside and action == "checkout" and compiled(_LEAVES).fullmatch(text):
            inside = None
    goes_on = running and inside is not False
    return (counted if goes_on else counted + waiting), goes_on


def _is_rebasing(folder: Path) -> bool:
    """Returns whether a rebase is in progress in the worktree of a git directory."""
    return (folder / "rebase-merge").exists() or (folder / "rebase-apply/rebasing").exists()


def _worktrees(common: Path) -> Iterator[tuple[str, Path]]:
    """Yields the git directory of each worktree; the main one has an empty name."""
    yield "", common
    with suppress(OSError):
        worktrees = common / "worktrees"
        yield from ((name, worktrees / name) for name in sorted(os.listdir(worktrees)))  # noqa: PTH208


def _lines(folder: Path) -> list[bytes]:
    """Returns the lines of the reflog of a worktree; none if it can't be read."""
    with suppress(OSError):
        return disk.read(folder / "logs" / "HEAD").splitlines()
    return []


def _after(lines: list[bytes], position: str | None) -> list[bytes]:
    """Returns the lines after a position; if it is missing, all lines of a new log, or none."""
    if position is None:
        return lines
    for number in range(len(lines) - 1, -1, -1):
        if _mark(lines[number]) == position:
            return lines[number + 1 :]
    is_new = not lines[0].partition(b" ")[0].strip(b"0")
    return lines if is_new else []


def _mark(line: bytes) -> str:
    from hashlib import sha256

    return sha256(line).hexdigest()[:32]
