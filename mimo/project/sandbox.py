"""Reading files that the user names, by path, folder or glob, within a sandbox.

No `..`, symbolic link or race leads out of the sandbox. Folders are listed without hidden files,
links, and the files that git ignores.
"""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from enum import Enum, auto
from fnmatch import fnmatchcase
from pathlib import Path

from mimo.data import disk
from mimo.data.failures import failure
from mimo.errors import (
    Command,
    FileTooLarge,
    Hint,
    Invalid,
    NotFound,
    SandboxViolation,
    StorageFailed,
)
from mimo.frozen import NamedTuple
from mimo.project import git

_GENERATED = frozenset("node_modules __pycache__ venv target build dist".split())
"""Names of files and folders that are left out of a repository if git is not installed."""
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
        flags = os.O_RDONLY | disk.NO_FOLLOW | disk.NO_WAIT | disk.CLOSE_ON_EXEC
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
        if not hasattr(os, "O_DIRECTORY"):
            raise Invalid(
                f"`{path}` can't be read: this system has no way to open it without its links",
                hint="on Windows, use WSL; see docs/windows.md",
            )
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
            hint=Hint("split it, or raise the limit: ", Command("config", "ingest.max_bytes", "N")),
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


# The files that a name or glob matches.


class Target(NamedTuple):
    """A file that a name or glob matches."""

    path: Path
    is_named: bool
    """True if the user named the file itself, not a folder or a glob."""
    problem: StorageFailed | None = None
    """The error if the path is a folder that can't be listed, or in which git can't be asked."""


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
    """Yields the files below a folder, sorted. For each level of folders, git is asked once."""
    try:
        level = [(folder, _repository(sandbox, folder))]
    except StorageFailed as error:
        yield Target(folder, is_named=False, problem=error)
        return
    targets: list[Target] = []
    while level:
        entries, problems = _entries(sandbox, level)
        targets += problems
        level = []
        for top, sorts in entries.items():
            try:
                left = sorts.keys() - _ignored(top, sorts)
            except StorageFailed as error:
                targets.append(Target(top or folder, is_named=False, problem=error))
                continue
            level += [(path, top) for path in left if sorts[path] is Sort.FOLDER]
            targets += [Target(path, False) for path in left if sorts[path] is Sort.FILE]
    yield from sorted(targets, key=lambda target: target.path.parts)


def _entries(
    sandbox: Sandbox, folders: Iterable[tuple[Path, Path | None]]
) -> tuple[Mapping[Path | None, Mapping[Path, Sort]], list[Target]]:
    """Returns the files and folders in some folders, by the top of their repository, and problems.

    Each folder comes with the top of the repository that it is in.
    """
    entries: dict[Path | None, dict[Path, Sort]] = defaultdict(dict)
    problems: list[Target] = []
    for folder, top in folders:
        try:
            listed = sandbox.listed(folder)
        except StorageFailed as error:
            problems.append(Target(folder, is_named=False, problem=error))
            continue
        is_top = any(entry.name == ".git" for entry in listed) and git.is_top(folder)
        for name, sort in listed:
            if sort in (Sort.FILE, Sort.FOLDER) and not name.startswith("."):
                entries[folder if is_top else top][folder / name] = sort
    return entries, problems


def _repository(sandbox: Sandbox, folder: Path) -> Path | None:
    """Returns the top of the repository whose ignore rules apply in a folder that the user named.

    None outside of git, for a repository that is not in the sandbox, and if it ignores the folder.
    """
    for top in (folder, *folder.parents):
        if sandbox.root is not None and not top.is_relative_to(sandbox.root):
            return None
        if git.is_top(top):
            return None if top != folder and _ignored(top, [folder]) else top
    return None


def _ignored(top: Path | None, paths: Iterable[Path]) -> Set[Path]:
    """Returns the untracked paths that a repository ignores.

    Raises `StorageFailed` if git fails, or can't read a file with rules.
    """
    if top is None:
        return frozenset()
    if disk.program("git") is None:
        return {path for path in paths if path.name in _GENERATED}
    names = {os.fsencode(path.relative_to(top)): path for path in paths}
    # A name is not an option or a pattern if it begins with a dot.
    data = b"".join(b"./%s\0" % name for name in names)
    try:
        git.check_rules(top, {path.parent for path in paths})
        asked = git.run(top, "check-ignore", "-z", "--stdin", data=data)
    except Invalid as error:
        reason = error.message
    else:
        # Git goes on without the rules that it can't read.
        if asked.returncode <= 1 and b"Permission denied" not in asked.stderr:
            return {names[name[2:]] for name in asked.stdout.split(b"\0")[:-1]}
        reason = git.complaint(asked.stderr)
    raise StorageFailed(
        f"git can't tell which files of `{top}` it ignores, so they are skipped: {reason}",
        hint="see `git status`, or name single files",
        details={"path": str(top)},
    )


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
