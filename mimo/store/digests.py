"""Lists of digests on the disk, of which a short command reads only what it looks up.

A list has SHA-256 digests in hex, one on each line. There are two kinds:

- A sorted list is replaced as a whole. A long one is searched by bisection on the disk. After so
  many lookups that reading all of it would have taken less, all of it is read.
- A log grows by appended lines, so that an approval costs one write. If it becomes long, its lines
  are merged into a sorted list beside it. The log then begins with a line that names this list by
  32 random digits, which are also in the name of the list's file, `approved-…`.

Replacing the log is therefore the only step that changes which digests are listed. A process that
is killed before it leaves a sorted list that no log names, and one that is killed after it leaves
the earlier list; the next merge removes both. A reader reads the log first, then the list that it
names. If that list is missing, the log was replaced in between, and is read again.

A later version of mind that writes another kind begins it with a line such as `format 2`.

Without the log, no list is used: if an earlier version of mind, which knows the log alone, removes
it to end all approvals, those in the sorted list end, too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from mimo import disk
from mimo.errors import LaterFormat, StorageFailed
from mimo.store import append_log, files

_LINE = 65
"""The length of a line, a digest and the end of the line."""
_HEX = b"0123456789abcdef"
NAMES_LIST = f"{'0' * 24}{b'list'.hex()}"
"""The start of a log's first line if a sorted list belongs to the log.

It has the form of a digest, since earlier versions take other lines for damage, and sorts first,
since they may sort the lines.
"""
_LONG = 1000
"""A log with more lines is merged; a sorted list with fewer is read at once."""
_LOOKUPS = 50
"""So many lines are read and checked in the time of one lookup on the disk."""
_MOST_BYTES = 10_000_000 * _LINE


class Digests:
    """An immutable set of digests: those of a sorted list on the disk, and others in memory.

    A list that is replaced meanwhile stays readable. Lookups and iterations raise `StorageFailed`
    if they read a damaged line, and all later ones do.
    """

    __slots__ = ("_newer", "_sorted")

    def __init__(self, newer: frozenset[str] = frozenset(), listed: _Sorted | None = None) -> None:
        """Takes digests, and a sorted list that has none of them."""
        self._newer, self._sorted = newer, listed

    def __contains__(self, digest: str) -> bool:
        if digest in self._newer:
            return True
        return self._sorted is not None and self._sorted.has(digest)

    def __iter__(self) -> Iterator[str]:
        yield from self._newer
        if self._sorted is not None:
            yield from self._sorted.whole()

    def __len__(self) -> int:
        # An earlier version of mind may have added digests of the sorted list to the log again.
        # They are counted twice until it is merged: looking each up would take too long.
        return len(self._newer) + (self._sorted.count if self._sorted else 0)

    @property
    def damage(self) -> StorageFailed | None:
        """The error of an earlier lookup."""
        return self._sorted.damage if self._sorted else None

    def check(self) -> None:
        """Checks every line. Raises `StorageFailed` if one is damaged."""
        if self._sorted:
            self._sorted.whole()

    def with_more(self, digests: Iterable[str]) -> Digests:
        """Returns this and more digests; this very object if it has them all."""
        more = frozenset(digest for digest in digests if digest not in self)
        return Digests(self._newer | more, self._sorted) if more else self


class _Sorted:
    """A sorted list on the disk, open for reading."""

    def __init__(self, path: Path, descriptor: int, size: int) -> None:
        """Takes an open file and its size."""
        self.path, self.count = path, size // _LINE
        self.damage: StorageFailed | None = None
        self._descriptor = descriptor
        self._left = self.count // _LOOKUPS
        self._whole: frozenset[str] | None = None

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        # Not earlier, as another thread may be reading.
        close(self._descriptor)

    def has(self, digest: str) -> bool:
        """Returns whether a digest is listed. Raises `StorageFailed`."""
        self._left -= 1
        if self._whole is not None or self._left < 0 or self.damage:
            return digest in self.whole()
        line = f"{digest}\n".encode()
        place = _place(self._line, self.count, line)
        return place < self.count and self._line(place) == line

    def whole(self) -> frozenset[str]:
        """Returns all digests. Raises `StorageFailed`."""
        if self.damage:
            raise self.damage
        if self._whole is None:
            data = self._read(self.count * _LINE, 0)
            if not _is_whole(data):
                raise self._damaged()
            self._whole = frozenset(data.decode("ascii").split())
        return self._whole

    def _line(self, number: int) -> bytes:
        line = self._read(_LINE, number * _LINE)
        if line[-1:] != b"\n" or line[:-1].translate(None, _HEX):
            raise self._damaged()
        return line

    def _read(self, size: int, start: int) -> bytes:
        try:
            data = os.pread(self._descriptor, size, start)
        except OSError as error:
            self.damage = files.failure("read", self.path, error)
            raise self.damage from error
        if len(data) != size:
            raise self._damaged()
        return data

    def _damaged(self) -> StorageFailed:
        self.damage = damaged(self.path)
        return self.damage


def read_sorted(path: Path) -> Digests:
    """Returns the digests of a sorted list; none if it is missing. Raises `StorageFailed`."""
    try:
        return _digests(_opened(path), frozenset())
    except FileNotFoundError:
        return Digests()


def _opened(path: Path) -> _Sorted:
    """Opens a sorted list. Raises `FileNotFoundError` and `StorageFailed`."""
    try:
        descriptor = disk.opened(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise files.failure("read", path, error) from error
    size = os.fstat(descriptor).st_size
    listed = _Sorted(path, descriptor, size)
    if size % _LINE:
        raise damaged(path)
    return listed


def _digests(listed: _Sorted, newer: frozenset[str]) -> Digests:
    """Returns the digests of a sorted list, of which a short one is read at once, and newer ones.

    Raises `StorageFailed`.
    """
    return Digests(newer, listed) if listed.count > _LONG else Digests(newer | listed.whole())


def write_sorted(path: Path, digests: Iterable[str]) -> None:
    """Replaces a sorted list. Raises `StorageFailed`."""
    data = "".join(f"{digest}\n" for digest in sorted(digests)).encode()
    files.replace(path, data, mode=0o600)


def read_log(path: Path) -> tuple[Digests, bool]:
    """Returns the digests of a log, and whether it ends in a torn line, which is skipped.

    Raises `StorageFailed` if the log or its sorted list is damaged.
    """
    before = None
    while True:
        name, data, torn = _log(path)
        newer = frozenset(data.decode("ascii").split())
        if name is None:
            return Digests(newer), torn
        with suppress(FileNotFoundError):
            listed = _opened(path.with_name(name))
            if not listed.count:
                raise damaged(listed.path)
            return _digests(listed, newer), torn
        if name == before:
            raise damaged(path.with_name(name))
        before = name


def append(path: Path, digests: Iterable[str]) -> None:
    """Adds digests to a log, and merges it if it is long. Hold the lock. Raises `StorageFailed`."""
    append_log.append(path, "".join(f"{digest}\n" for digest in digests).encode())
    if path.lstat().st_size > _LONG * _LINE:
        name, data, _ = _log(path)
        lines = _sorted_lines(path, name)
        # A failure to write them loses nothing: the next approval merges the log.
        with suppress(StorageFailed):
            _replace(path, _merged(lines, data))


def remove(path: Path, digests: Iterable[str]) -> None:
    """Removes digests from a log and its sorted list. Hold the lock. Raises `StorageFailed`."""
    name, data, _ = _log(path)
    lines = _merged(_sorted_lines(path, name), data)
    removed = frozenset(f"{digest}\n".encode() for digest in digests)
    kept = [line for line in lines.splitlines(keepends=True) if line not in removed]
    _replace(path, b"".join(kept))


def parts(path: Path) -> list[Path]:
    """Returns the files of a log: those that it names, and those that interrupted merges left."""
    beside = path.parent.glob(f"{path.name}-{'[0-9a-f]' * 32}")
    return [path, *beside] if os.path.lexists(path) else [*beside]


def damaged(path: Path) -> StorageFailed:
    """Returns the error for a list that can't be used, or that a later version of mind wrote."""
    try:
        with suppress(OSError):
            LaterFormat.check_line(f"`{path}`", disk.read(path, limit=_MOST_BYTES))
    except LaterFormat as error:
        return error
    return StorageFailed(
        f"`{path}` is damaged, so no text is trusted", hint="run `mind trust` to approve again"
    )


def _replace(path: Path, lines: bytes) -> None:
    """Replaces a log and its sorted list by these sorted lines. Raises `StorageFailed`."""
    earlier = [part for part in parts(path) if part != path]
    if len(lines) <= _LONG * _LINE:
        files.replace(path, lines, mode=0o600)
    else:
        nonce = os.urandom(16).hex()
        files.replace(path.with_name(f"{path.name}-{nonce}"), lines, mode=0o600)
        files.replace(path, f"{NAMES_LIST}{nonce}\n".encode(), mode=0o600)
    with suppress(StorageFailed):  # The next merge tries again.
        for part in earlier:
            files.remove(part)


def _log(path: Path) -> tuple[str | None, bytes, bool]:
    """Returns the name of a log's sorted list, the log's other lines, and whether it is torn."""
    log = append_log.split(_content(path))
    if not _is_whole(log.whole):
        raise damaged(path)
    if not log.whole.startswith(NAMES_LIST.encode()):
        return None, log.whole, bool(log.torn)
    nonce = log.whole[len(NAMES_LIST) : _LINE - 1].decode("ascii")
    return f"{path.name}-{nonce}", log.whole[_LINE:], bool(log.torn)


def _sorted_lines(path: Path, name: str | None) -> bytes:
    """Returns the sorted lines that belong to a log."""
    if name is None:
        return b""
    data = _content(path.with_name(name))
    if not data or not _is_whole(data):
        raise damaged(path.with_name(name))
    return data


def _content(path: Path) -> bytes:
    """Returns the content of a list; nothing if it is missing. Raises `StorageFailed`."""
    try:
        return disk.read(path, limit=_MOST_BYTES)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise files.failure("read", path, error) from error


def _is_whole(data: bytes) -> bool:
    """Returns whether data consists of lines with one digest each."""
    # Matching a pattern would take twice as long as reading the list.
    lines, rest = divmod(len(data), _LINE)
    ends = data.translate(None, _HEX), data[_LINE - 1 :: _LINE]
    return not rest and all(end == b"\n" * lines for end in ends)


def _merged(lines: bytes, more: bytes) -> bytes:
    """Returns sorted lines together with more lines, which may be among them."""

    def line_at(number: int) -> bytes:
        return lines[number * _LINE : (number + 1) * _LINE]

    count, start = len(lines) // _LINE, 0
    view, joined = memoryview(lines), list[bytes | memoryview]()
    for line in sorted(set(more.splitlines(keepends=True))):
        place = _LINE * _place(line_at, count, line)
        if lines[place : place + _LINE] != line:
            joined += (view[start:place], line)
            start = place
    return b"".join([*joined, view[start:]])


def _place(line_at: Callable[[int], bytes], count: int, line: bytes) -> int:
    """Returns the number of the lines before `line` in a sorted list."""
    from bisect import bisect_left  # Most commands look nothing up in a long list.

    return bisect_left(range(count), line, key=line_at)
