"""What git ignores, told by the `.gitignore` files that apply, without running git."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mimo.errors import MindError
from mimo.store.sandbox import Sandbox, Sort

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

RULED = frozenset((".git", ".gitignore"))
"""A folder without any of these names has no rules: opening each is a way from the root."""
_MOST_BYTES = 1024 * 1024
_MOST_STARS = 4
"""Stars in one part of a pattern: each multiplies the time that a long name takes."""


class Rules(NamedTuple):
    """The patterns of one file, and the folder that they are relative to."""

    folder: Path
    patterns: "GitIgnoreSpec"


def is_ignored(path: Path, rules: Iterable[Rules], *, is_folder: bool) -> bool:
    """Returns whether the innermost rules that say something about `path` ignore it."""
    for rule in reversed(list(rules)):
        name = path.relative_to(rule.folder).as_posix() + "/" * is_folder
        found = rule.patterns.check_file(name).include
        if found is not None:
            return found
    return False


def rules_above(sandbox: Sandbox, folder: Path) -> tuple[Rules, ...]:
    """Returns the rules of a repository that apply to all that a folder holds, outermost first.

    None of them where they ignore the folder itself: who names it wants what it holds.
    """
    found: list[Rules] = []
    for above in _repository(sandbox, folder):
        found.extend(rules_in(sandbox, above))
    while found and is_ignored(folder, found, is_folder=True):
        found.pop()
    return tuple(found)


def rules_in(sandbox: Sandbox, folder: Path) -> Iterator[Rules]:
    """Yields the rules that begin to apply in a folder."""
    for name in (".git/info/exclude", ".gitignore"):
        path = folder / name
        try:
            if sandbox.sort(path) is Sort.FILE:
                text = sandbox.read(path, _MOST_BYTES).decode("utf-8", "replace")
                yield Rules(folder, _compiled(text))
        except MindError:
            continue


def _repository(sandbox: Sandbox, folder: Path) -> list[Path]:
    """Returns the folders above one, from the top of its repository on; none outside of one."""
    above: list[Path] = []
    for one in (folder, *folder.parents):
        if sandbox.root is not None and not one.is_relative_to(sandbox.root):
            return []
        if one != folder:
            above.insert(0, one)
        if sandbox.sort(one / ".git") is not None:
            return above
    return []


def _compiled(text: str) -> "GitIgnoreSpec":
    """Returns the patterns of a file without those that mean nothing."""
    from pathspec import GitIgnoreSpec

    lines = [line for line in text.splitlines() if not _slow().search(line)]
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        return GitIgnoreSpec.from_lines(line for line in lines if _is_pattern(line))


def _is_pattern(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


@cache
def _slow() -> re.Pattern[str]:
    return re.compile(rf"(?:\*[^*/]+){{{_MOST_STARS},}}\*|(?:\*\*.*){{{_MOST_STARS},}}")
