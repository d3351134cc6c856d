"""Reading files that the user names, by path, folder or glob, within a sandbox.

No `..`, symbolic link or race leads out of the sandbox. Folders are listed as git would, without
ignored files, hidden files and links.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum, auto
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from mimo.errors import FileTooLarge, Invalid, MindError, NotFound, SandboxViolation, StorageFailed
from mimo.frozen import NamedTuple
from mimo.store import git
from mimo.store.files import failure

if TYPE_CHECKING:
    from mimo.store.ignore import Patterns


RULED = frozenset((".git", ".gitignore"))
"""Names that a folder with ignore rules has; checking first saves opening it."""
_MOST_BYTES = 1024 * 1024
_MAGIC = frozenset("*?[")
_MOST_DEEP = 2
"""Maximum number of `**` in one glob, as in the globs of memory files."""


class Sort(Enum):
    """The type of an entry in a folder."""

    FILE = auto()
    FOLDER = auto()
    LINK = auto()
    OTHER = auto()


_SORTS = {stat.S_IFREG: Sort.FILE, stat.S_IFDIR: Sort.FOLDER, stat.S_IFLNK: Sort.LINK}


class Entry(NamedTuple):
    """An entry in a folder."""

    name: str
    sort: Sort


class Sandbox:
    """The part of the file system from which files may be read."""

    def __init__(self, root: Path | None, base: Path) -> None:
        """Takes the sandbox, or None for no limit, and the folder that names are relative to."""
        self._given = Path(os.path.abspath(root)) if root else None  # noqa: PTH100 - keeps links
        self.root = Path(os.path.realpath(root)) if root else None
        self._base = base

    def locate(self, name: str) -> Path:
        """Returns the path of a name, with links resolved above its last part.

        Raises `SandboxViolation` if it is outside of the sandbox.
        """
        if not name or "\0" in name:
            raise Invalid(f"`{name!r}` is not a path", hint="name a file, a folder or a glob")
        path = self._base / name
        if self.root is None:
            if path.name in ("", ".."):
                return Path(os.path.realpath(path))
            return Path(os.path.realpath(path.parent), path.name)
        plain = Path(os.path.normpath(path))
        for root in (self._given, self.root):
            if root is not None and plain.is_relative_to(root):
                return self.root / plain.relative_to(root)
        raise SandboxViolation(
            f"`{name}` is outside of `{self.root}`",
            hint="only files in that folder may be read; see SANDBOX_DIR",
            details={"path": name, "sandbox": str(self.root)},
        )

    def sort(self, path: Path) -> Sort | None:
        """Returns the type of a path; None if it does not exist."""
        try:
            if path == self._top(path):
                return Sort.FOLDER if path.is_dir() else None
            with self._folder(path.parent) as folder:
                status = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
                return _SORTS.get(stat.S_IFMT(status.st_mode), Sort.OTHER)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def read(self, path: Path, limit: int) -> bytes:
        """Returns the bytes of a regular file.

        Raises `NotFound`, `FileTooLarge` if it has more than `limit` bytes, and `Invalid` or
        `SandboxViolation` if it is not a regular file or is behind a link.
        """
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            with self._folder(path.parent) as folder:
                file = os.open(path.name, flags, dir_fd=folder)
        except FileNotFoundError:
            raise NotFound(f"the file `{path}` does not exist", hint="check the spelling") from None
        except OSError as error:
            if self.sort(path) is Sort.LINK:
                raise self.refused(path) from None
            raise failure("read", path, error) from error
        try:
            return _content(file, path, limit)
        finally:
            os.close(file)

    def listed(self, path: Path) -> list[Entry]:
        """Returns the entries of a folder, sorted by name. Raises `StorageFailed`."""
        try:
            with self._folder(path) as folder, os.scandir(folder) as entries:
                return sorted(Entry(entry.name, _of_entry(entry)) for entry in entries)
        except OSError as error:
            raise failure("list", path, error) from error

    def refused(self, path: Path) -> Invalid | SandboxViolation:
        """Returns the error for a symbolic link."""
        message = f"`{path}` is a symbolic link, and links are never followed"
        if self.root is None:
            return Invalid(message, hint="name the target of the link")
        return SandboxViolation(message, hint="name the file itself", details={"path": str(path)})

    def _top(self, path: Path) -> Path:
        """Returns the folder from which a path is opened."""
        return self.root or Path(path.anchor)

    @contextmanager
    def _folder(self, path: Path) -> Iterator[int]:
        """Gives a descriptor of a folder, opened folder by folder from the root."""
        top = self._top(path)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        current = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            parts = path.relative_to(top).parts
            for end, part in enumerate(parts, 1):
                try:
                    following = os.open(part, flags, dir_fd=current)
                except OSError:
                    if _is_link(part, current):
                        raise self.refused(top.joinpath(*parts[:end])) from None
                    raise
                os.close(current)
                current = following
            yield current
        finally:
            os.close(current)


def _content(file: int, path: Path, limit: int) -> bytes:
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        raise Invalid(f"`{path}` is not a regular file", hint="name a file, a folder or a glob")
    with os.fdopen(file, "rb", closefd=False) as stream:
        data = b"" if status.st_size > limit else stream.read(limit + 1)
    size = max(status.st_size, len(data))
    if size > limit:
        raise FileTooLarge(
            f"File too large: {size:,} bytes (max: {limit:,} bytes)",
            hint="split it, or raise the limit: `mind config ingest.max_bytes N`",
            details={"path": str(path), "size": size, "max": limit},
        )
    return data


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _of_entry(entry: os.DirEntry[str]) -> Sort:
    if entry.is_symlink():
        return Sort.LINK
    if entry.is_dir(follow_symlinks=False):
        return Sort.FOLDER
    return Sort.FILE if entry.is_file(follow_symlinks=False) else Sort.OTHER


# Ignore rules, read without running git.


class Rules(NamedTuple):
    """Patterns of an ignore file, in its order, and the folder that they are relative to."""

    folder: Path
    patterns: Patterns


def is_ignored(path: Path, rules: Iterable[Rules], *, is_folder: bool) -> bool:
    """Returns whether the innermost rules that match `path` ignore it.

    A folder above may be ignored although `path` is not.
    """
    for rule in reversed(list(rules)):
        name = os.fsencode(path.relative_to(rule.folder))
        ignored = rule.patterns.ignore(name, is_folder=is_folder)
        if ignored is not None:
            return ignored
    return False


def rules_above(sandbox: Sandbox, folder: Path) -> tuple[Rules, ...]:
    """Returns the rules of folders above that apply in a folder, outermost first.

    Rules that ignore the folder itself are left out, since the user named the folder. Raises
    `StorageFailed` if a file with rules can't be read.
    """
    rules: list[Rules] = []
    for above, below in pairwise(_repository(sandbox, folder)):
        rules.extend(rules_in(sandbox, above))
        while rules and is_ignored(below, rules, is_folder=True):
            rules.pop()
    return tuple(rules)


def rules_in(sandbox: Sandbox, folder: Path) -> Iterator[Rules]:
    """Yields the rules of a folder's own ignore files.

    Raises `StorageFailed` if one can't be read: without it, files that it ignores would be read.
    """
    from mimo.store.ignore import patterns_of

    files = [(sandbox, folder / ".gitignore")]
    if sandbox.sort(folder / ".git") is not None and (common := git.common_directory(folder)):
        # In a worktree it is outside of the folder, and git follows links to it.
        exclude = Path(os.path.realpath(common / "info" / "exclude"))
        files.insert(0, (Sandbox(None, exclude.parent), exclude))
    for reader, path in files:
        try:
            is_file = reader.sort(path) is Sort.FILE
            patterns = patterns_of(reader.read(path, _MOST_BYTES) if is_file else b"")
        except (MindError, OSError) as error:
            raise StorageFailed(
                f"can't read the ignore rules in `{path}`, so the folder `{folder}` is skipped",
                hint="make it readable and at most 1 MiB, with at most 64 KiB of patterns with "
                "special characters, or name single files",
                details={"path": str(path)},
            ) from error
        if patterns.negated:
            yield Rules(folder, patterns)


def _repository(sandbox: Sandbox, folder: Path) -> list[Path]:
    """Returns the folders from the top of a repository to a folder in it; none outside of git."""
    folders: list[Path] = []
    for parent in (folder, *folder.parents):
        if sandbox.root is not None and not parent.is_relative_to(sandbox.root):
            return []
        folders.insert(0, parent)
        if sandbox.sort(parent / ".git") is not None:
            return folders
    return []


# The files that a name or glob matches.


class Target(NamedTuple):
    """A file that a name or glob matches."""

    path: Path
    is_named: bool
    """True if the user named the file itself, not a folder or a glob."""
    problem: StorageFailed | None = None
    """The error if the path is a folder that can't be listed, or if ignore rules can't be read."""


def targets(sandbox: Sandbox, name: str) -> Iterator[Target]:
    """Yields the files that a name matches, sorted.

    Raises `NotFound`, and `Invalid` or `SandboxViolation` if the files may not be read.
    """
    path = sandbox.locate(name)
    match sandbox.sort(path):
        case Sort.LINK:
            raise sandbox.refused(path)
        case Sort.FOLDER:
            yield from _below(sandbox, path)
        case None if not _MAGIC.isdisjoint(name):
            yield from _matching(sandbox, name)
        case None:
            raise NotFound(f"`{name}` does not exist", hint="name a file, a folder or a glob")
        case _:
            yield Target(path, is_named=True)


def is_one_file(sandbox: Sandbox, name: str) -> bool:
    """Returns whether a name is that of a single file, which may be missing."""
    sort = sandbox.sort(sandbox.locate(name))
    return sort is not Sort.FOLDER and (sort is not None or _MAGIC.isdisjoint(name))


def _below(sandbox: Sandbox, folder: Path) -> Iterator[Target]:
    try:
        waiting = [(folder, rules_above(sandbox, folder), Sort.FOLDER)]
    except StorageFailed as error:
        yield Target(folder, is_named=False, problem=error)
        return
    while waiting:
        path, rules, sort = waiting.pop()
        if sort is Sort.FILE:
            yield Target(path, is_named=False)
            continue
        try:
            entries = sandbox.listed(path)
            if not RULED.isdisjoint(entry.name for entry in entries):
                rules = (*rules, *rules_in(sandbox, path))
        except StorageFailed as error:
            yield Target(path, is_named=False, problem=error)
            continue
        for entry in reversed(entries):
            below, is_folder = path / entry.name, entry.sort is Sort.FOLDER
            hidden = entry.name.startswith(".")
            is_usual = is_folder or entry.sort is Sort.FILE
            if is_usual and not hidden and not is_ignored(below, rules, is_folder=is_folder):
                waiting.append((below, rules, entry.sort))


def _matching(sandbox: Sandbox, name: str) -> Iterator[Target]:
    parts = name.split("/")
    fixed = next(place for place, part in enumerate(parts) if not _MAGIC.isdisjoint(part))
    pattern = [part for part in parts[fixed:] if part not in ("", ".")]
    if ".." in pattern or pattern.count("**") > _MOST_DEEP:
        raise Invalid(
            f"`{name}` is not a glob", hint=f"put `..` before the stars; {_MOST_DEEP} `**` at most"
        )
    folder = sandbox.locate("/".join(parts[:fixed]) or ("/" if name.startswith("/") else "."))
    if sandbox.sort(folder) is not Sort.FOLDER:
        raise NotFound(f"the folder `{folder}` does not exist", hint="check the spelling")
    for target in _below(sandbox, folder):
        if target.problem or fits(target.path.relative_to(folder).parts, pattern):
            yield target


def fits(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """Returns whether the parts of a path match the parts of a glob.

    The time is at most proportional to the product of both lengths.
    """
    parts = [*pattern, "*"] if pattern[-1:] == ["**"] else pattern
    places = {0}  # in the glob, for the names so far
    for name in names:
        following = set[int]()
        for place in places:
            while place < len(parts) and parts[place] == "**":
                following.add(place)
                place += 1  # noqa: PLW2901
            if place < len(parts) and fnmatchcase(name, parts[place]):
                following.add(place + 1)
        places = following
    return len(parts) in places
