"""Finding memory files by their names, and comparing their stamps without opening them."""

from __future__ import annotations

import os
import re
import stat
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain
from operator import attrgetter
from pathlib import Path

from mimo.data.disk import STORE, Stamp, blake2b
from mimo.data.files import PRIVATE
from mimo.frozen import field, record
from mimo.memory.model import LOG as LOG
from mimo.memory.model import SUFFIXES as SUFFIXES
from mimo.memory.model import Problem

_APART = frozenset(("values", "procedures"))
COMMITS = ".git/commits"
"""The path of memories in commit messages, which is not a real file."""
_CONFIG = ".mind/config.toml"
_MOST_DEEP = 2
"""Maximum number of `**` in one glob, since each multiplies the folders to read."""
_NEVER = frozenset(("node_modules", "__pycache__"))
_MAGIC = frozenset("*?[")
_LARGEST = 2**63 - 1
"""The largest number that SQLite holds; as a time in nanoseconds, it is in the year 2262."""
_BITS = 2**64 - 1
"""The bits of an inode."""

Numbers = tuple[int, int, int, int]
"""The values of a `Stamp`."""

Add = Callable[[str, Numbers], None]

_numbers: Callable[[os.stat_result], Numbers] = attrgetter(
    "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino"
)


class Files:
    """The paths and stamps of files, in a few bytes each: a project may have a million."""

    def __init__(self) -> None:
        """There are none yet."""
        self._paths = bytearray()
        self._numbers = array("q")
        """Four for each file. An inode may have 64 bits, so the larger ones are negative here."""

    def add(self, path: str, numbers: Numbers) -> None:
        """Adds a file that is not among them; the path is relative to the root, with `/`."""
        self._add_numbers((numbers,))
        self._paths += f"{path}\0".encode()

    def add_all(self, folder: str, names: Sequence[str], numbers: Sequence[Numbers]) -> None:
        """Adds files of a folder, which takes less time than adding each."""
        if names:
            self._add_numbers(numbers)
            self._paths += f"{folder}/".encode() + f"\0{folder}/".join(names).encode() + b"\0"

    def _add_numbers(self, numbers: Sequence[Numbers]) -> None:
        try:
            self._numbers.extend(array("q", chain.from_iterable(numbers)))
        except OverflowError:
            for *head, inode in map(_stamp, numbers):
                self._numbers.extend((*head, inode - _BITS - 1 if inode > _LARGEST else inode))

    def __len__(self) -> int:
        return len(self._numbers) // 4

    def __iter__(self) -> Iterator[str]:
        return (path for path, _ in self.items())

    def items(self) -> Iterator[tuple[str, Stamp]]:
        """Yields each path and its stamp."""
        paths, numbers, start = self._paths, self._numbers, 0
        for place in range(len(self)):
            end = paths.find(0, start)
            size, modified, changed, inode = numbers[4 * place : 4 * place + 4]
            yield paths[start:end].decode(), Stamp(size, modified, changed, inode & _BITS)
            start = end + 1

    @property
    def digest(self) -> bytes:
        """The digest of all names and stamps.

        Most commands compare nothing else, so this makes no `Stamp`, which would take longer.
        """
        return blake2b(self._paths, self._numbers)


@record
class Walk:
    """The result of a walk through a project."""

    files: Files = field(default_factory=Files)
    problems: list[Problem] = field(default_factory=list)
    """Links, special files and folders that can't be listed."""
    others: list[str] = field(default_factory=list)
    """Files under `.mind/` that are not Markdown."""


def walk(root: Path, include: Sequence[str] = (), comments: Sequence[str] = ()) -> Walk:
    """Returns the stamps of all memory files of the project at `root`.

    Memory files are the Markdown files under `.mind/`, those that match a glob of `include`, and
    the files of code that match a glob of `comments`. Globs are relative to `root`. Symbolic links
    are never followed.
    """
    result = Walk()
    base = os.fspath(root)
    _folder(result, base, STORE, _APART)
    matched = _globs(result, base, "include", include, is_markdown) if include else {}
    if comments:
        code = Walk()
        matched |= _globs(code, base, "comments", comments, lambda name: not is_markdown(name))
        # Links among code are common, so only wrong globs are reported.
        result.problems += [problem for problem in code.problems if problem.path == _CONFIG]
    # A glob may match the name of the store by wildcards.
    if any(path.startswith(f"{STORE}/") for path in matched):
        for path in result.files:
            matched.pop(path, None)
    for path, numbers in matched.items():
        result.files.add(path, numbers)
    return result


def _globs(
    result: Walk, base: str, setting: str, patterns: Sequence[str], accepts: Callable[[str], bool]
) -> dict[str, Numbers]:
    """Returns the stamps of the files that the globs of a setting match, by path."""
    matched: dict[str, Numbers] = {}
    for pattern in patterns:
        segments = segments_of(pattern)
        if fault := fault_of(pattern, segments):
            reason = f"{setting}: {fault}"
            result.problems.append(Problem(path=_CONFIG, line=None, reason=reason))
        else:
            _glob(result, matched.__setitem__, base, tuple(segments), accepts)
    return matched


def segments_of(pattern: str) -> list[str]:
    """Returns the parts of a glob of memory files."""
    parts = pattern.removeprefix("./").split("/")
    # `**/**` matches the same as `**`, and is much slower.
    pairs = zip([None, *parts], parts, strict=False)
    return [part for previous, part in pairs if part != "**" or previous != "**"]


def stamps_of(root: Path, paths: Iterable[str]) -> dict[str, Stamp | None] | None:
    """Returns the stamps of those of some changed paths that are memory files under `.mind/`.

    The stamp of a missing file is None. Returns None if only a walk can tell what has changed: a
    folder or a link, or a path elsewhere.
    """
    base, stamps = f"{os.fspath(root)}/", dict[str, Stamp | None]()
    for name in paths:
        path = name.removeprefix(base)
        head, *parts = path.split("/")
        if path == name or head != STORE or not parts:
            return None
        inner = parts[1:] if f"{STORE}/{parts[0]}/".casefold() == PRIVATE else parts
        if any(part.startswith(".") for part in parts) or (len(inner) > 1 and inner[0] in _APART):
            continue
        try:
            for end in range(len(parts)):
                above = os.lstat("/".join((base + STORE, *parts[:end])))
                if not stat.S_ISDIR(above.st_mode):
                    return None
            status = os.lstat(name)
            path.encode()
        except (FileNotFoundError, NotADirectoryError):
            stamps[path] = None
            continue
        except (OSError, UnicodeEncodeError):
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        if is_markdown(path):
            stamps[path] = stamp_of(status)
    return stamps


def stamp_of(status: os.stat_result) -> Stamp:
    """Returns the stamp from a file's status."""
    return _stamp(_numbers(status))


def _stamp(numbers: Numbers) -> Stamp:
    """Returns a stamp whose times SQLite can hold: all times after 2262 are the same one."""
    size, modified, changed, inode = numbers
    modified = max(-_LARGEST - 1, min(modified, _LARGEST))
    return Stamp(size, modified, max(-_LARGEST - 1, min(changed, _LARGEST)), inode)


def fixed_part(pattern: str) -> str:
    """Returns the folders at the start of a glob, before the first one with a wildcard."""
    folders = pattern.removeprefix("./").split("/")[:-1]
    wild = next((n for n, part in enumerate(folders) if set(part) & set("*?[")), len(folders))
    return "/".join(folders[:wild])


def is_markdown(name: str) -> bool:
    """Returns whether a file is Markdown, by its name."""
    return name.lower().endswith(SUFFIXES)


def files_below(folder: Path, enters: Callable[[str], bool]) -> Iterator[Path]:
    """Yields the files in a folder and its subfolders, sorted; symbolic links count as files.

    Only subfolders whose name `enters` accepts are walked. Deep folders need no recursion, unlike
    `os.walk` before Python 3.12.
    """
    waiting = [(folder, True)]
    while waiting:
        path, is_folder = waiting.pop()
        if not is_folder:
            yield path
            continue
        with suppress(OSError), os.scandir(path) as entries:
            below = [(path / entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
            below = [item for item in below if not item[1] or enters(item[0].name)]
            waiting += sorted(below, key=lambda item: (item[1], item[0].name), reverse=True)


def newest_folder(root: Path) -> float:
    """Returns the last time at which a file was added to or removed from a folder of `.mind/`."""
    base, newest = root / STORE, 0.0
    for folder in (base, base / "private"):
        with suppress(OSError), os.scandir(folder) as entries:
            newest = max(newest, folder.stat().st_mtime)
            for entry in entries:
                if entry.name[0] != "." and entry.is_dir(follow_symlinks=False):
                    newest = max(newest, entry.stat(follow_symlinks=False).st_mtime)
    return newest


def _folder(result: Walk, base: str, folder: str, apart: frozenset[str] = frozenset()) -> None:
    """Walks a folder of `.mind/` and its subfolders, except `apart` and hidden names."""
    waiting, files = [(folder, apart)], result.files
    while waiting:
        folder, apart = waiting.pop()
        for entry in _without_plain(files, folder, _listed(result, base, folder)):
            name, path = entry.name, f"{folder}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                if problem := misnamed(path):
                    result.problems.append(problem)
                elif name not in apart:
                    private = f"{path}/".casefold() == PRIVATE
                    waiting.append((path, _APART if private else frozenset()))
            elif is_markdown(name) or entry.is_symlink():
                _file(result, files.add, entry, path)
            elif folder != STORE:
                result.others.append(path)


def _without_plain(
    files: Files, folder: str, entries: Iterable[os.DirEntry[str]]
) -> Iterator[os.DirEntry[str]]:
    """Adds the plain files of a folder, which nearly all are, and yields its other entries."""
    names: list[str] = []
    numbers: list[Numbers] = []
    for entry in entries:
        name = entry.name
        if name[0] == ".":
            continue
        if name.endswith(".md") and name.isascii() and entry.is_file(follow_symlinks=False):
            try:  # `suppress` would take longer.
                numbers.append(_numbers(entry.stat(follow_symlinks=False)))
            except OSError:
                yield entry
                continue
            names.append(name)
        else:
            yield entry
    files.add_all(folder, names, numbers)


def _file(result: Walk, add: Add, entry: os.DirEntry[str], path: str) -> None:
    if problem := misnamed(path):
        result.problems.append(problem)
        return
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError as error:
        if not isinstance(error, FileNotFoundError):
            result.problems.append(Problem(path=path, line=None, reason=_reason(error)))
        return
    if stat.S_ISREG(status.st_mode):
        add(path, _numbers(status))
        return
    is_link = stat.S_ISLNK(status.st_mode)
    reason = "a symbolic link, which is never followed" if is_link else "not a regular file"
    result.problems.append(Problem(path=path, line=None, reason=reason))


def misnamed(path: str) -> Problem | None:
    """Returns the problem of a file or folder whose name is not UTF-8; None for other names."""
    try:
        path.encode()
    except UnicodeEncodeError:
        label = os.fsencode(path).decode("utf-8", "replace")
        return Problem(path=label, line=None, reason="its name is not UTF-8")
    return None


def _glob(
    result: Walk, add: Add, base: str, segments: tuple[str, ...], accepts: Callable[[str], bool]
) -> None:
    """Walks the files that the `segments` of a glob match."""
    waiting = [("", segments)]
    while waiting:
        folder, (segment, *tail) = waiting.pop()
        if segment == "**":
            waiting.append((folder, tuple(tail) or ("*",)))
        for entry in _candidates(result, base, folder, segment):
            path = f"{folder}/{entry.name}" if folder else entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if segment == "**":
                if is_folder:
                    waiting.append((path, (segment, *tail)))
            elif tail:
                if is_folder:
                    waiting.append((path, tuple(tail)))
                elif entry.is_symlink():
                    _file(result, add, entry, path)
            elif not is_folder and accepts(entry.name):
                _file(result, add, entry, path)


def _candidates(result: Walk, base: str, folder: str, segment: str) -> Iterator[os.DirEntry[str]]:
    """Yields the entries that match one segment of a glob.

    Names that start with a dot match only if the segment does, too.
    """
    matches = _matcher(segment)
    for entry in _listed(result, base, folder, missing_ok=True):
        hidden = entry.name[0] == "." and segment[0] != "."
        if not hidden and entry.name not in _NEVER and matches.fullmatch(entry.name):
            yield entry


def _listed(
    result: Walk, base: str, folder: str, *, missing_ok: bool = False
) -> Iterator[os.DirEntry[str]]:
    """Yields the entries of a folder, which may be too many to keep."""
    path = f"{base}/{folder}"
    try:
        # By a descriptor, the statuses of the entries are found without the whole paths.
        by_descriptor = os.scandir in os.supports_fd and hasattr(os, "O_DIRECTORY")
        place = os.open(path, os.O_RDONLY | os.O_DIRECTORY) if by_descriptor else path
        try:
            with os.scandir(place) as entries:
                yield from entries
                return
        finally:
            if isinstance(place, int):
                os.close(place)
    except FileNotFoundError:
        if missing_ok:
            return
        reason = "the folder does not exist"
    except OSError as error:
        reason = f"can't be listed: {_reason(error)}"
    result.problems.append(Problem(path=folder or ".", line=None, reason=reason))


@cache
def _matcher(segment: str) -> re.Pattern[str]:
    if segment == "**":
        return re.compile(r".*", re.DOTALL)
    from fnmatch import translate

    return re.compile(re.escape(segment) if _MAGIC.isdisjoint(segment) else translate(segment))


def fault_of(pattern: str, segments: Sequence[str]) -> str | None:
    """Returns the error in a glob, for which no file is read; None without one."""
    if not pattern or "\0" in pattern or "" in segments:
        return f"`{pattern}` is not a relative path"
    if ".." in segments or "\\" in pattern or ":" in segments[0]:
        return f"`{pattern}` may leave the project"
    if segments.count("**") > _MOST_DEEP:
        return f"`{pattern}` has more than {_MOST_DEEP} `**`"
    if segments[0] in (STORE, ".git") or "." in segments:
        return f"`{pattern}` names a folder that is never included"
    return None


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
