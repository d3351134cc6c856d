"""Files from outside, read only where they may be: no way out by `..`, by a link or by a race.

Every folder on the way is opened by its name within the one before it, which no link can turn
elsewhere; what was checked is what is read.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto
from pathlib import Path
from typing import NamedTuple

from mimo.errors import FileTooLarge, Invalid, NotFound, SandboxViolation
from mimo.store.files import failure


class Sort(Enum):
    """What stands behind a name."""

    FILE = auto()
    FOLDER = auto()
    LINK = auto()
    OTHER = auto()


class Entry(NamedTuple):
    """A name in a folder."""

    name: str
    sort: Sort


class Sandbox:
    """The part of the file system that may be read."""

    def __init__(self, root: Path | None, base: Path) -> None:
        """Take the folder that nothing outside of is read, if any, and where names begin."""
        self._given = Path(os.path.abspath(root)) if root else None  # noqa: PTH100 - links stay
        self.root = Path(os.path.realpath(root)) if root else None
        self._base = base

    def locate(self, name: str) -> Path:
        """Returns the place that a name stands for, without a link above its last part.

        Raises `SandboxViolation` where it lies outside.
        """
        if not name or "\0" in name:
            raise Invalid(f"`{name!r}` is no path", hint="name a file, a folder or a glob")
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
            f"`{name}` lies outside of `{self.root}`",
            hint="only files in there may be read; see SANDBOX_DIR",
            details={"path": name, "sandbox": str(self.root)},
        )

    def sort(self, path: Path) -> Sort | None:
        """Returns what stands at a place; None where there is nothing."""
        try:
            if path == self._top(path):
                return Sort.FOLDER if path.is_dir() else None
            with self._folder(path.parent) as folder:
                status = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
                return _sort(status.st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def read(self, path: Path, limit: int) -> bytes:
        """Returns the bytes of a regular file.

        Raises `NotFound`, `FileTooLarge` where they are more than `limit`, and `Invalid` or
        `SandboxViolation` for what is no regular file or lies behind a link.
        """
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            with self._folder(path.parent) as folder:
                file = os.open(path.name, flags, dir_fd=folder)
        except FileNotFoundError:
            raise NotFound(f"there is no file `{path}`", hint="check how it is spelt") from None
        except OSError as error:
            if self.sort(path) is Sort.LINK:
                raise self.refused(path) from None
            raise failure("read", path, error) from error
        try:
            return _content(file, path, limit)
        finally:
            os.close(file)

    def listed(self, path: Path) -> list[Entry]:
        """Returns what a folder holds, sorted by name. Raises `StorageFailed`."""
        try:
            with self._folder(path) as folder, os.scandir(folder) as entries:
                found = [Entry(entry.name, _of_entry(entry)) for entry in entries]
        except OSError as error:
            raise failure("list", path, error) from error
        return sorted(found)

    def refused(self, path: Path) -> Invalid | SandboxViolation:
        """Returns what is told of a link."""
        message = f"`{path}` is a symbolic link, and links are never followed"
        if self.root is None:
            return Invalid(message, hint="name the file that it leads to")
        return SandboxViolation(message, hint="name the file itself", details={"path": str(path)})

    def _top(self, path: Path) -> Path:
        """Returns the folder that the way to a place begins at."""
        return self.root or Path(path.anchor)

    @contextmanager
    def _folder(self, path: Path) -> Iterator[int]:
        """Gives a folder, opened step by step from the root."""
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
            hint="split it, or raise the limit: mind config ingest.max_bytes N",
            details={"path": str(path), "size": size, "max": limit},
        )
    return data


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _of_entry(entry: "os.DirEntry[str]") -> Sort:
    if entry.is_symlink():
        return Sort.LINK
    if entry.is_dir(follow_symlinks=False):
        return Sort.FOLDER
    return Sort.FILE if entry.is_file(follow_symlinks=False) else Sort.OTHER


def _sort(mode: int) -> Sort:
    if stat.S_ISLNK(mode):
        return Sort.LINK
    if stat.S_ISDIR(mode):
        return Sort.FOLDER
    return Sort.FILE if stat.S_ISREG(mode) else Sort.OTHER
