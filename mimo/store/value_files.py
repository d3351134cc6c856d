"""Values that last: one Markdown file each, `.mind/values/<namespace>/<key>.md`.

People may write and change them. What can't be read is named, and never overwritten or removed.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mimo.domain.codec import value as codec
from mimo.domain.codec.document import Unreadable
from mimo.domain.memory import Problem
from mimo.domain.names import SUFFIX, check_key, check_namespace, stem_of
from mimo.errors import Invalid, MindError, StorageFailed
from mimo.frozen import frozen
from mimo.store import files
from mimo.store.walk import STORE

FOLDER = f"{STORE}/values"


@frozen
class Kept:
    """A value that lasts, as its file has it."""

    value: Any
    path: str
    digest: str


class ValueFiles:
    """The files of one project. Hold the lock to write."""

    def __init__(self, root: Path) -> None:
        """Take a project's root; nothing is read yet."""
        self._root = root

    def read(self, namespace: str, key: str) -> Kept | None:
        """Returns a value, or None. Raises `StorageFailed` where its file can't be read."""
        relative = path_of(namespace, key)
        found = self._look(relative, namespace)
        if found is None:
            return None
        if isinstance(found, Problem):
            raise _broken(found)
        return found[1]

    def keys(self, namespace: str) -> list[str]:
        """Returns the keys of a namespace, in no order; files whose names fit none are no keys."""
        return list(self._named(namespace))

    def size(self, namespace: str, *, but: str) -> tuple[int, int]:
        """Returns how many files there are and their bytes, without that of one key."""
        folder = self._folder(namespace)
        own = path_of(namespace, but).rpartition("/")[2]
        sizes = [
            entry.stat(follow_symlinks=False).st_size
            for entry in _listed(folder)
            if entry.name.endswith(SUFFIX) and entry.name != own
        ]
        return len(sizes), sum(sizes)

    def write(self, namespace: str, key: str, value: Any) -> Kept:
        """Writes a value over what the key had, which `read` can read. Raises `StorageFailed`."""
        path = path_of(namespace, key)
        data = codec.render(namespace, key, value)
        files.replace(files.safe_path(self._root, path), data)
        return Kept(value=value, path=path, digest=files.digest(data))

    def remove(self, namespace: str, key: str) -> bool:
        """Removes a value and returns whether there was one. Raises `StorageFailed`."""
        if self.read(namespace, key) is None:
            return False
        files.remove(files.safe_path(self._root, path_of(namespace, key)))
        return True

    def everything(self) -> Iterator[Kept | Problem]:
        """Yields every value, and every file that is none with the reason."""
        base = files.safe_path(self._root, FOLDER)
        for folder in sorted(_listed(base), key=lambda one: one.name):
            place = f"{FOLDER}/{folder.name}"
            if folder.name.startswith("."):
                continue
            if not folder.is_dir(follow_symlinks=False):
                yield Problem(path=place, line=None, reason="stands outside of any namespace")
                continue
            for entry in sorted(_listed(Path(folder.path)), key=lambda one: one.name):
                if not entry.name.startswith("."):
                    yield self._one(f"{place}/{entry.name}", folder.name)

    def _one(self, relative: str, folder: str) -> Kept | Problem:
        found = self._look(relative, None)
        if isinstance(found, tuple):
            return found[1]
        return found or Problem(path=relative, line=None, reason=f"is gone from {folder}")

    def _named(self, namespace: str) -> Iterator[str]:
        """Yields the keys of a namespace by the names of the files, which are looked into only
        where the name alone does not tell.
        """
        place = f"{FOLDER}/{stem_of(namespace)}"
        for entry in _listed(self._folder(namespace)):
            stem = entry.name.removesuffix(SUFFIX)
            if stem == entry.name or entry.name.startswith("."):
                continue
            if stem_of(stem) == stem and "~" not in stem:
                yield stem
            elif isinstance(found := self._look(f"{place}/{entry.name}", namespace), tuple):
                yield found[0]

    def _look(self, relative: str, namespace: str | None) -> tuple[str, Kept] | Problem | None:
        """Returns the key and the value of a file, what is wrong with it, or None without one."""
        try:
            path = files.safe_path(self._root, relative)
            data, _ = files.look(path, limit=codec.MAX_FILE_BYTES)
            said, key, value = codec.parse(data)
            codec.packed(value)
            key = _checked(relative, said, key, namespace)
        except FileNotFoundError:
            return None
        except Unreadable as error:
            return Problem(path=relative, line=error.line, reason=error.reason)
        except MindError as error:
            return Problem(path=relative, line=None, reason=error.message)
        except OSError as error:
            return Problem(path=relative, line=None, reason=(error.strerror or str(error)).lower())
        return key, Kept(value=value, path=relative, digest=files.digest(data))

    def _folder(self, namespace: str) -> Path:
        return files.safe_path(self._root, f"{FOLDER}/{stem_of(namespace)}")


def path_of(namespace: str, key: str) -> str:
    """Returns the file of a value, relative to the project's root."""
    return f"{FOLDER}/{stem_of(namespace)}/{stem_of(key)}{SUFFIX}"


def _checked(relative: str, said: str | None, key: str | None, namespace: str | None) -> str:
    """Returns the key of a file. Raises `Unreadable` where it stands in the place of another.

    What a header says must not put a value where its folder would not.
    """
    folder, name = relative.split("/")[-2:]
    stem = name.removesuffix(SUFFIX)
    told_namespace = said or namespace or folder
    told_key = key or stem
    try:
        right = path_of(check_namespace(told_namespace), check_key(told_key))
    except Invalid as error:
        raise Unreadable(f"{error.message}; its header must say it", 1) from None
    if right != relative or (namespace and told_namespace != namespace):
        raise Unreadable(f"`{told_key}` of `{told_namespace}` belongs into `{right}`", 1)
    return told_key


def _listed(folder: Path) -> "list[os.DirEntry[str]]":
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise files.failure("list", folder, error) from error


def _broken(problem: Problem) -> StorageFailed:
    place = f"{problem.path}:{problem.line}" if problem.line else problem.path
    return StorageFailed(
        f"`{place}`: {problem.reason}",
        hint="the file was left as it is; mend it or move it away",
        details={"file": problem.path, "line": problem.line},
    )
