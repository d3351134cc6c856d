"""Whether anything changed below some folders since it was last settled: for long-lived processes.

The system notes changes as they happen (inotify, FSEvents); asking costs a millisecond or two and
nothing runs in between. Some file systems, network ones above all, tell nothing, so silence is
taken for peace for a short time only.
"""

import os
import re
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from mimo.disk import STORE as STORE
from mimo.disk import Stamp
from mimo.memory.model import Problem
from mimo.store.files import PRIVATE

# Which files are memories: a look at names and stamps, without opening any.


SUFFIXES = (".md", ".markdown", ".mdown", ".mkd", ".mdc", ".mdx")
"""Endings of the names of Markdown files, in lower case."""

_APART = frozenset(("values", "procedures"))
LOG = ".mind/MEMORY.md"
"""People's own log: many memories, line by line, that are read and never written."""
COMMITS = ".git/commits"
"""Stands for the messages of commits among the paths; there is no such file."""
_CONFIG = ".mind/config.toml"
_MOST_DEEP = 2
"""`**` in one glob: each multiplies the looks."""
_NEVER = frozenset(("node_modules", "__pycache__"))
_MAGIC = frozenset("*?[")


@dataclass(slots=True, kw_only=True)
class Walk:
    """What a look at a project found."""

    stamps: dict[str, Stamp] = field(default_factory=dict)
    """By path relative to the project's root, with `/`."""
    problems: list[Problem] = field(default_factory=list)
    """Links, special files and folders that can't be listed."""
    others: list[str] = field(default_factory=list)
    """Files under `.mind/` that are no Markdown."""


def walk(root: Path, include: Sequence[str] = (), comments: Sequence[str] = ()) -> Walk:
    """Returns the stamps of all memory files of the project at `root`.

    They are the Markdown files under `.mind/` and those that the globs of `include` name, which
    are relative to `root`; and the files of code whose comments may hold memories, which the globs
    of `comments` name. Links are never followed.
    """
    found = Walk()
    base = os.fspath(root)
    _folder(found, base, STORE, _APART)
    _named(found, base, "include", include, is_markdown)
    if comments:
        code = Walk()
        _named(code, base, "comments", comments, lambda name: not is_markdown(name))
        found.stamps.update(code.stamps)
        # A link among code is nothing that anybody needs to be told of.
        found.problems += [told for told in code.problems if told.path == _CONFIG]
    return found


def _named(
    found: Walk, base: str, setting: str, patterns: Sequence[str], wanted: Callable[[str], bool]
) -> None:
    """Looks at the files that the globs of a setting name."""
    for pattern in patterns:
        segments = _without_repeats(pattern.removeprefix("./").split("/"))
        if fault := _fault(pattern, segments):
            reason = f"{setting}: {fault}"
            found.problems.append(Problem(path=_CONFIG, line=None, reason=reason))
        else:
            _glob(found, base, "", tuple(segments), wanted)


def stamp_of(status: os.stat_result) -> Stamp:
    """Returns what is kept of a file's status."""
    return Stamp(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def fixed_part(pattern: str) -> str:
    """Returns the folders that begin a glob, up to the first that holds a wildcard."""
    folders = pattern.removeprefix("./").split("/")[:-1]
    wild = next((n for n, part in enumerate(folders) if set(part) & set("*?[")), len(folders))
    return "/".join(folders[:wild])


def is_markdown(name: str) -> bool:
    """Returns whether a file's name ends as those of Markdown files do."""
    return name.lower().endswith(SUFFIXES)


def files_below(folder: Path, enters: Callable[[str], bool]) -> Iterator[Path]:
    """Yields the names in a folder and its subfolders that are not folders themselves, sorted.

    Subfolders are walked if `enters` holds for their name; symbolic links are not followed.
    However deep they are, no recursion is needed: `os.walk` recurses before Python 3.12.
    """
    waiting = [(folder, True)]
    while waiting:
        path, is_folder = waiting.pop()
        if not is_folder:
            yield path
            continue
        with suppress(OSError), os.scandir(path) as entries:
            below = [(path / one.name, one.is_dir(follow_symlinks=False)) for one in entries]
            below = [one for one in below if not one[1] or enters(one[0].name)]
            waiting += sorted(below, key=lambda one: (one[1], one[0].name), reverse=True)


def newest_folder(root: Path) -> float:
    """Returns the time at which `.mind/` or a folder in it last got or lost a file."""
    base, newest = root / STORE, 0.0
    for folder in (base, base / "private"):
        with suppress(OSError), os.scandir(folder) as entries:
            newest = max(newest, folder.stat().st_mtime)
            for entry in entries:
                if entry.name[0] != "." and entry.is_dir(follow_symlinks=False):
                    newest = max(newest, entry.stat(follow_symlinks=False).st_mtime)
    return newest


def _folder(found: Walk, base: str, folder: str, apart: frozenset[str] = frozenset()) -> None:
    """Walks a folder of `.mind/` and its subfolders, except `apart` and names with a dot."""
    waiting = [(folder, apart)]
    while waiting:
        folder, apart = waiting.pop()
        for entry in _listed(found, base, folder):
            name = entry.name
            path = f"{folder}/{name}"
            if name[0] == ".":
                continue
            if entry.is_dir(follow_symlinks=False):
                if name not in apart:
                    private = f"{path}/".casefold() == PRIVATE
                    waiting.append((path, _APART if private else frozenset()))
            elif is_markdown(name) or entry.is_symlink():
                _file(found, entry, path)
            elif folder != STORE:
                found.others.append(path)


def _file(found: Walk, entry: "os.DirEntry[str]", path: str) -> None:
    try:
        path.encode()
        status = entry.stat(follow_symlinks=False)
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode("utf-8", "replace")
        found.problems.append(Problem(path=shown, line=None, reason="its name is not UTF-8"))
        return
    except OSError as error:
        if not isinstance(error, FileNotFoundError):
            found.problems.append(Problem(path=path, line=None, reason=_reason(error)))
        return
    if stat.S_ISREG(status.st_mode):
        found.stamps[path] = stamp_of(status)
        return
    is_link = stat.S_ISLNK(status.st_mode)
    reason = "a symbolic link, which is never followed" if is_link else "not a regular file"
    found.problems.append(Problem(path=path, line=None, reason=reason))


def _glob(
    found: Walk, base: str, folder: str, segments: tuple[str, ...], wanted: Callable[[str], bool]
) -> None:
    """Walks the files that the `segments` of a glob match below `folder`."""
    waiting = [(folder, segments)]
    while waiting:
        folder, (segment, *rest) = waiting.pop()
        if segment == "**":
            waiting.append((folder, tuple(rest) or ("*",)))
        for entry in _candidates(found, base, folder, segment):
            path = f"{folder}/{entry.name}" if folder else entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if segment == "**":
                if is_folder:
                    waiting.append((path, (segment, *rest)))
            elif rest:
                if is_folder:
                    waiting.append((path, tuple(rest)))
                elif entry.is_symlink():
                    _file(found, entry, path)
            elif not is_folder and wanted(entry.name):
                _file(found, entry, path)


def _candidates(found: Walk, base: str, folder: str, segment: str) -> Iterator["os.DirEntry[str]"]:
    """Yields what one segment of a glob matches; a name with a dot only where it is spelt out."""
    matches = _matcher(segment)
    for entry in _listed(found, base, folder, missing_ok=True):
        hidden = entry.name[0] == "." and segment[0] != "."
        if not hidden and entry.name not in _NEVER and matches.fullmatch(entry.name):
            yield entry


def _listed(
    found: Walk, base: str, folder: str, *, missing_ok: bool = False
) -> "list[os.DirEntry[str]]":
    try:
        with os.scandir(f"{base}/{folder}") as entries:
            return list(entries)
    except FileNotFoundError:
        if missing_ok:
            return []
        reason = "there is no such folder"
    except OSError as error:
        reason = f"can't be listed: {_reason(error)}"
    found.problems.append(Problem(path=folder or ".", line=None, reason=reason))
    return []


@cache
def _matcher(segment: str) -> re.Pattern[str]:
    if segment == "**":
        return re.compile(r".*", re.DOTALL)
    from fnmatch import translate

    return re.compile(re.escape(segment) if _MAGIC.isdisjoint(segment) else translate(segment))


def _without_repeats(segments: Sequence[str]) -> list[str]:
    """Returns the segments with `**/**` as `**`, which is the same and takes far fewer looks."""
    pairs = zip([None, *segments], segments, strict=False)
    return [segment for before, segment in pairs if segment != "**" or before != "**"]


def _fault(pattern: str, segments: Sequence[str]) -> str | None:
    """Returns why a glob can't be used, if it can't."""
    if not pattern or "\0" in pattern or "" in segments:
        return f"`{pattern}` is no relative path"
    if ".." in segments or "\\" in pattern or ":" in segments[0]:
        return f"`{pattern}` may leave the project"
    if segments.count("**") > _MOST_DEEP:
        return f"`{pattern}` has more than {_MOST_DEEP} `**`"
    if segments[0] in (STORE, ".git") or "." in segments:
        return f"`{pattern}` names a folder that is never included"
    return None


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


_OWN = frozenset({".index", ".local"})
"""Folders of `.mind/` in which mind itself works all the time."""

_TRUSTED_SECONDS = 5.0

_LONGEST_SLEEP_MS = 5_000
"""A thread that waits for changes looks up so often whether it shall stop."""


def changes(
    folders: Sequence[Path], *, stop: threading.Event, recursive: bool
) -> Iterator[frozenset[Path]]:
    """Yields the paths that changed below the folders, gathered over a tenth of a second or so.

    Sleeps in between and ends soon after `stop` is set. Raises `OSError` where the system can't
    watch so much, and `RuntimeError` where it can't watch at all.
    """
    from watchfiles import watch

    for found in watch(
        *folders,
        watch_filter=lambda _, path: _counts(path),
        debounce=100,
        step=50,
        rust_timeout=_LONGEST_SLEEP_MS,
        stop_event=stop,
        recursive=recursive,
        ignore_permission_denied=True,
        raise_interrupt=False,
    ):
        yield frozenset(Path(path) for _, path in found)


class Watch:
    """Notes changes below folders; may be used by several threads."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """Take the folders; watching begins with the first question."""
        self._folders = tuple(folders)
        self._lock = threading.Lock()
        self._changes: Iterator[Any] | None = None
        self._dirty = True
        self._settled_at = 0.0

    def changed(self) -> bool:
        """Returns whether something may have changed since it was last settled."""
        with self._lock:
            try:
                told = self._next()
                self._dirty = any(_counts(path) for _, path in told) or self._dirty
            except (OSError, RuntimeError, StopIteration):
                self._changes, self._dirty = None, True
            return self._dirty or time.monotonic() - self._settled_at >= _TRUSTED_SECONDS

    def settle(self) -> None:
        """Takes note that whatever was told of has been looked at."""
        self._dirty, self._settled_at = False, time.monotonic()

    def unsettle(self) -> None:
        """Lets the next question be answered with yes."""
        self._dirty = True

    def close(self) -> None:
        """Stops watching."""
        with self._lock, suppress(AttributeError):
            self._changes.close()  # type: ignore[union-attr]
            self._changes = None

    def _next(self) -> Any:
        from watchfiles import watch

        if self._changes is None:
            self._changes = watch(
                *self._folders,
                # Told of nothing but our own writes, it would wait once more for another change.
                watch_filter=None,
                debounce=1,
                step=1,
                rust_timeout=1,
                yield_on_timeout=True,
                raise_interrupt=False,
            )
        return next(self._changes)


def _counts(path: str) -> bool:
    """Returns whether a change there is of memory, and not what we keep for ourselves."""
    return _OWN.isdisjoint(Path(path).parts)
