"""Names as people give them - files, folders, globs - as the files that they stand for."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from mimo.errors import Invalid, NotFound, StorageFailed
from mimo.store.ignored import RULED, Rules, is_ignored, rules_above, rules_in
from mimo.store.sandbox import Sandbox, Sort

_MAGIC = frozenset("*?[")
_MOST_DEEP = 2
"""`**` in one glob: each multiplies the comparisons."""


class Target(NamedTuple):
    """A file that a name stands for."""

    path: Path
    is_named: bool
    """Whether somebody named it, rather than a folder or a glob that holds it."""
    problem: StorageFailed | None = None
    """Why a folder, which it then is, can't be looked into."""


def targets(sandbox: Sandbox, name: str) -> Iterator[Target]:
    """Yields the files that a name stands for, sorted.

    What a folder holds is looked through as git would: without what it ignores, hidden files and
    links. Raises `NotFound`, and `Invalid` or `SandboxViolation` for what may not be read.
    """
    path = sandbox.locate(name)
    match sandbox.sort(path):
        case Sort.LINK:
            raise sandbox.refused(path)
        case Sort.FOLDER:
            yield from _below(sandbox, path, rules_above(sandbox, path))
        case None if not _MAGIC.isdisjoint(name):
            yield from _matching(sandbox, name)
        case None:
            raise NotFound(f"there is no `{name}`", hint="name a file, a folder or a glob")
        case _:
            yield Target(path, is_named=True)


def is_one_file(sandbox: Sandbox, name: str) -> bool:
    """Returns whether a name stands for a single file, be it there or not."""
    sort = sandbox.sort(sandbox.locate(name))
    return sort is not Sort.FOLDER and (sort is not None or _MAGIC.isdisjoint(name))


def _below(sandbox: Sandbox, folder: Path, rules: tuple[Rules, ...]) -> Iterator[Target]:
    waiting = [(folder, rules, Sort.FOLDER)]
    while waiting:
        path, rules, sort = waiting.pop()
        if sort is Sort.FILE:
            yield Target(path, is_named=False)
            continue
        try:
            entries = sandbox.listed(path)
        except StorageFailed as error:
            yield Target(path, is_named=False, problem=error)
            continue
        if not RULED.isdisjoint(entry.name for entry in entries):
            rules = (*rules, *rules_in(sandbox, path))
        for entry in reversed(entries):
            below, is_folder = path / entry.name, entry.sort is Sort.FOLDER
            hidden = entry.name.startswith(".")
            known = is_folder or entry.sort is Sort.FILE
            if known and not hidden and not is_ignored(below, rules, is_folder=is_folder):
                waiting.append((below, rules, entry.sort))


def _matching(sandbox: Sandbox, name: str) -> Iterator[Target]:
    parts = name.split("/")
    fixed = next(place for place, part in enumerate(parts) if not _MAGIC.isdisjoint(part))
    pattern = [part for part in parts[fixed:] if part not in ("", ".")]
    if ".." in pattern or pattern.count("**") > _MOST_DEEP:
        raise Invalid(
            f"`{name}` is no glob", hint=f"`..` stands before the stars; {_MOST_DEEP} `**` at most"
        )
    folder = sandbox.locate("/".join(parts[:fixed]) or ("/" if name.startswith("/") else "."))
    if sandbox.sort(folder) is not Sort.FOLDER:
        raise NotFound(f"there is no folder `{folder}`", hint="check how it is spelt")
    for target in _below(sandbox, folder, rules_above(sandbox, folder)):
        if target.problem or fits(target.path.relative_to(folder).parts, pattern):
            yield target


def fits(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """Returns whether the parts of a path are what a glob says."""
    if not pattern:
        return not names
    if pattern[0] == "**":
        rest = pattern[1:] or ["*"]
        return any(fits(names[skipped:], rest) for skipped in range(len(names)))
    return bool(names) and fnmatchcase(names[0], pattern[0]) and fits(names[1:], pattern[1:])
