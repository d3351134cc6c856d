"""Checksums of the pages of a database, so that damage of any page is detected.

SQLite checks the structure of what it reads, not the bytes. A file beside the database, `-sums`,
has a checksum of the newest version of each page: of the database and of its log (`-wal`). A commit
adds those of the pages that it wrote, under a lock, and before that reads them from the log.

The head of the file also has the stamp of the database as mind left it. If that differs, all pages
are compared. If it doesn't, they are compared at times: see `_SMALL`, `_PERIOD_NS` and `_PORTION`.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import RLock
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from errno import EACCES, EMFILE, ENFILE, ENOMEM, EROFS
from itertools import count, zip_longest
from pathlib import Path
from zlib import adler32

from mimo import disk
from mimo.disk import Stamp
from mimo.frozen import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import ClassVar

_MAGIC = 0x736D_7573_646E_696D
_HEAD = 128
"""The number of bytes before the checksums, which have four each."""

_UNKNOWN = 0xFFFF_FFFF
"""The checksum of a page that was never written; no page has it."""

_LOG_HEAD, _FRAME_HEAD = 32, 24
_AT_ONCE = 256
"""The number of pages that are read at a time."""

_SMALL = 1_000_000
"""The size in bytes up to which each process compares a whole file once."""

_PERIOD_NS, _SOON_NS = 3_600_000_000_000, 60_000_000_000
"""After this time, a file is compared again, in portions of `_PORTION` bytes, each one `_SOON_NS`
after the last one."""

_PORTION = 64_000_000

_PAUSE_SECONDS = 0.001

SHORTAGES = (EMFILE, ENFILE, ENOMEM)
"""Errors that tell nothing about a file: the system lacks descriptors or memory for now."""


class _Head(NamedTuple):
    """The numbers at the beginning of the file."""

    page: int
    """The size of a page."""
    pages: int
    checked_ns: int
    """The time of the last comparison."""
    done: int
    """The number of pages that it has compared; 0 if it is complete."""
    salts: int
    """The name of the log; 0 if there was none."""
    frames: int
    """The number of its frames whose pages have checksums here."""
    copied: int
    """The number of these that are in the database, too."""
    chain: int
    """The checksum of the heads of the log and of these frames."""
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @property
    def stamp(self) -> Stamp:
        """Returns the stamp of the database as mind left it."""
        return Stamp(self.size, self.mtime_ns, self.ctime_ns, self.inode)

    def left(self, stamp: Stamp) -> _Head:
        """Returns the same with another stamp."""
        return self._replace(**stamp._asdict())


class Span(NamedTuple):
    """The pages or rows of a file that are compared with checksums now."""

    first: int
    """The number of those before them."""
    end: int
    checked_ns: int
    """The time of the comparison, which is recorded if they are sound."""
    done: int
    """The number of those compared then; 0 if the comparison is complete."""


def due(
    count: int, size: int, checked_ns: int, done: int, *, is_changed: bool, is_first: bool
) -> Span | None:
    """Returns which of the pages or rows must be compared now, None for none.

    Each has `size` bytes. `checked_ns` and `done` are of the last comparison; `is_changed` is true
    if the file has another stamp, `is_first` if this process has not compared it.
    """
    now = time.time_ns()
    if is_changed:
        return Span(0, count, now, 0)
    if 0 <= now - checked_ns < _PERIOD_NS:
        is_due = is_first and count * size <= _SMALL
        return Span(0, count, checked_ns, done) if is_due else None
    end = done + max(1, _PORTION // size)
    if end < count:
        return Span(done, end, now - _PERIOD_NS + _SOON_NS, end)
    return Span(done, count, now, 0)


class Held:
    """A database file that stays open until no part of this process needs it.

    If a process closes a file, it loses its locks of that file, also those of SQLite. So there is
    one descriptor of each file, which must live longer than the connections.
    """

    _all: ClassVar[dict[tuple[int, int], list[int]]] = {}
    """The number of uses of each file, and its descriptor; two if it was moved while it opened."""
    _turn = RLock()  # A use may end while `of` runs, by a garbage collection.

    def __init__(self, key: tuple[int, int], descriptor: int) -> None:
        """Takes the device and inode of a file, and its descriptor; `of` opens it."""
        self._key, self.descriptor = key, descriptor

    @classmethod
    def of(cls, path: Path) -> Held:
        """Returns a use of the open file. Raises `OSError`, also if it is not a regular file."""
        with cls._turn:
            status = path.lstat()
            key = status.st_dev, status.st_ino
            try:
                cls._all[key][0] += 1  # Without a call, at which garbage could be collected.
            except KeyError:
                descriptor = disk.opened(path)
                status = os.fstat(descriptor)
                key = status.st_dev, status.st_ino
                cls._all.setdefault(key, [0]).append(descriptor)
                cls._all[key][0] += 1
            return cls(key, cls._all[key][1])

    def __del__(self) -> None:
        with self._turn:
            file = self._all[self._key]
            file[0] -= 1
            if not file[0]:
                for descriptor in self._all.pop(self._key)[1:]:
                    os.close(descriptor)


class Pages:
    """The checksums of one database; threads and processes can use them at the same time."""

    def __init__(self, path: Path) -> None:
        """Takes the path of the database; nothing is opened yet."""
        self._path = path.with_name(path.name + "-sums")
        self._log = path.with_name(path.name + "-wal")
        self._sound: tuple[Stamp, Stamp | None] | None = None
        """The stamps of the database and of its log when they were compared last."""

    def create(self, held: Held) -> None:
        """Writes the checksums of all pages of a database without a log."""
        database = held.descriptor
        first = os.pread(database, 18, 0)
        page = int.from_bytes(first[16:18], "big")
        page = 65_536 if page == 1 else page
        stamp = stamp_of(database)
        sums = b"".join(
            _entry(adler32(os.pread(database, page, start))) for start in range(0, stamp.size, page)
        )
        head = _Head(page, stamp.size // page, time.time_ns(), 0, 0, 0, 0, 0, *stamp)
        disk.make_database(self._path)
        file = os.open(self._path, os.O_RDWR | os.O_TRUNC)
        try:
            disk.write_at(file, sums, _HEAD)
            _write(file, head)
        finally:
            os.close(file)

    def are_sound(self, database: int, *, again: bool = False) -> bool:
        """Returns whether no page of an open database is damaged.

        `again` compares also if no file has changed since the last time. Raises `OSError` if the
        system lacks what a comparison needs.
        """
        state = stamp_of(database), self._stamp_of_log()
        if state == self._sound and not again:
            return True
        try:
            with self._locked() as file:
                head = _read(file)
                logged = self._logged(file, head) if head else None
                if logged and logged.is_behind:
                    with self._locked(exclusive=True, file=file):
                        if head := _read(file):
                            head = self._fold(file, head)
                            logged = self._logged(file, head)
                if not (head and logged and logged.is_sound):
                    return False
                if not self._compare(database, file, head, logged.newer):
                    return False
        except BlockingIOError:
            return True  # A process that commits was stopped; the next command compares.
        except OSError as error:
            if error.errno in SHORTAGES:
                raise
            return False
        self._sound = state
        return True

    @contextmanager
    def recording(self, database: int, connection: sqlite3.Connection) -> Iterator[None]:
        """Adds the checksums of the pages that the block commits.

        If they can't be written, the next process adds them from the log.
        """
        with self._locked(exclusive=True) as file:
            before = stamp_of(database)
            yield
            with suppress(OSError):
                if head := _read(file):
                    head = self._fold(file, head)
                    if stamp_of(database) != before:
                        # SQLite has copied pages from the log, perhaps not all of them.
                        _, _, copied = connection.execute("PRAGMA wal_checkpoint").fetchone()
                        head = head._replace(copied=max(head.copied, min(copied, head.frames)))
                        if head.stamp == before:
                            head = head.left(stamp_of(database))
                        _write(file, head)
                    self._sound = stamp_of(database), self._stamp_of_log()

    def close(self, database: int, close: Callable[[], None]) -> None:
        """Calls `close`, which closes the connections of this process.

        If they are the last ones, SQLite copies the log into the database.
        """
        try:
            if not self._stamp_of_log():
                return
            with suppress(OSError), self._locked(exclusive=True) as file:
                if head := _read(file):
                    head, before = self._fold(file, head), stamp_of(database)
                    close()
                    if head.stamp == before and not self._stamp_of_log():
                        head = head._replace(salts=0, frames=0, copied=0)
                        _write(file, head.left(stamp_of(database)))
        finally:
            close()

    def _stamp_of_log(self) -> Stamp | None:
        """Returns the stamp of the log; None for no log, or an empty one."""
        try:
            status = self._log.stat()
        except OSError:
            return None
        return Stamp.of(status) if status.st_size else None

    @contextmanager
    def _locked(self, *, exclusive: bool = False, file: int | None = None) -> Iterator[int]:
        """Yields the file, locked against commits. Raises `OSError`."""
        import fcntl

        kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
        opened = _opened(self._path) if file is None else file
        try:
            patience = disk.current()
            deadline = time.monotonic() + patience.left
            while True:
                try:
                    fcntl.flock(opened, kind | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise
                    with patience.spent():
                        time.sleep(_PAUSE_SECONDS)
                except OSError:
                    break  # The file system has no locks.
            yield opened
        finally:
            if file is None:
                os.close(opened)

    # The log.

    def _fold(self, file: int, head: _Head) -> _Head:
        """Adds the checksums of the pages that were committed since, and returns the new head."""
        with self._opened_log() as log:
            if log is None:
                return head
            first = os.pread(log, _LOG_HEAD, 0)
            if _salts(first) != head.salts:
                chain = adler32(first)
                head = head._replace(salts=_salts(first), frames=0, copied=0, chain=chain)
            sums: dict[int, int] = {}
            waiting: dict[int, int] = {}
            number, chain, after = head.frames, head.chain, head
            for frame in _frames(log, head.page, number):
                if not _is_of(frame, head.salts):
                    break
                number, chain = number + 1, adler32(frame[:_FRAME_HEAD], chain)
                waiting[_number(frame[:4])] = adler32(frame[_FRAME_HEAD:])
                if pages := _number(frame[4:8]):  # It is the last one of a transaction.
                    sums.update(waiting)
                    waiting.clear()
                    after = head._replace(frames=number, chain=chain, pages=pages)
            for page in range(head.pages + 1, after.pages + 1):
                sums.setdefault(page, _UNKNOWN)
            for page, value in sums.items():
                disk.write_at(file, _entry(value), _HEAD + 4 * (page - 1))
            if after.frames != head.frames or not head.frames:
                _write(file, after)
            return after

    def _logged(self, file: int, head: _Head) -> _Logged:
        """Returns what the log has."""
        with self._opened_log() as log:
            if log is None:
                return _Logged(frozenset(), is_behind=False, is_sound=True)
            first = os.pread(log, _LOG_HEAD, 0)
            recorded = head.frames if _salts(first) == head.salts else 0
            sums: dict[int, int] = {}
            newer: set[int] = set()
            number, chain = 0, adler32(first)
            for number, frame in enumerate(_frames(log, head.page, 0, recorded), 1):
                chain, page = adler32(frame[:_FRAME_HEAD], chain), _number(frame[:4])
                sums[page] = adler32(frame[_FRAME_HEAD:])
                if number > head.copied:
                    newer.add(page)
            is_sound = not recorded or (number == recorded and chain == head.chain)
            for page, value in sums.items():
                at = _HEAD + 4 * (page - 1)
                is_sound = is_sound and os.pread(file, 4, at) == _entry(value)
            size, is_behind = _FRAME_HEAD + head.page, False
            for number in count(recorded):
                frame = memoryview(os.pread(log, _FRAME_HEAD, _LOG_HEAD + number * size))
                if is_behind or not _is_of(frame, _salts(first)):
                    break
                is_behind = bool(_number(frame[4:8]))
            return _Logged(newer, is_behind, is_sound)

    @contextmanager
    def _opened_log(self) -> Iterator[int | None]:
        """Yields the log, or None."""
        try:
            log = disk.opened(self._log)
        except FileNotFoundError:
            yield None
            return
        try:
            yield log if os.fstat(log).st_size >= _LOG_HEAD else None
        finally:
            os.close(log)

    # The pages.

    def _compare(self, database: int, file: int, head: _Head, newer: Collection[int]) -> bool:
        """Returns whether the pages of the database that must be compared now are as recorded.

        Those that are `newer` in the log may differ.
        """
        stamp = stamp_of(database)
        span = due(
            head.pages,
            head.page,
            head.checked_ns,
            head.done,
            is_changed=head.stamp != stamp,
            is_first=not self._sound,
        )
        if span is None:
            return True
        if not _are_alike(database, file, head.page, (span.first, span.end), newer):
            return False
        after = head._replace(checked_ns=span.checked_ns, done=span.done).left(stamp)
        if after != head:
            with suppress(OSError):
                _write(file, after)
        return True


class _Logged(NamedTuple):
    """The state of the log."""

    newer: Collection[int]
    """The pages whose newest version is only in the log."""
    is_behind: bool
    """True if pages were committed whose checksums were not added."""
    is_sound: bool
    """True if its pages are as recorded."""


def _frames(log: int, page: int, first: int, end: int = sys.maxsize) -> Iterator[memoryview]:
    """Yields the whole frames of a log from a number on, up to the end."""
    size = _FRAME_HEAD + page
    while first < end:
        some = min(_AT_ONCE, end - first)
        data = memoryview(os.pread(log, some * size, _LOG_HEAD + first * size))
        for at in range(0, len(data) - size + 1, size):
            yield data[at : at + size]
        if len(data) < some * size:
            return
        first += some


def _are_alike(
    database: int, file: int, size: int, span: tuple[int, int], newer: Collection[int]
) -> bool:
    """Returns whether pages have the recorded checksums, except those that are `newer` in the log.

    `span` has the number of pages before the first one, and before the end.
    """
    for start in range(*span, _AT_ONCE):
        some = min(_AT_ONCE, span[1] - start)
        data = memoryview(os.pread(database, some * size, start * size))
        whole = os.pread(file, 4 * some, _HEAD + 4 * start)
        stored = memoryview(whole[: len(whole) // 4 * 4]).cast("I").tolist()  # It may be cut.
        made = [adler32(data[at : at + size]) for at in range(0, len(data), size)]
        if made == stored:
            continue
        made += [0] * (some - len(made))
        pairs = zip_longest(made, stored, fillvalue=0)
        for page, (value, expected) in enumerate(pairs, start + 1):
            if value != expected and expected != _UNKNOWN and page not in newer:
                return False
    return True


def _opened(path: Path) -> int:
    try:
        return disk.opened(path, os.O_RDWR)
    except OSError as error:
        if error.errno not in (EACCES, EROFS):
            raise
        return disk.opened(path)


def _entry(value: int) -> bytes:
    return value.to_bytes(4, sys.byteorder)


def _number(data: bytes | memoryview) -> int:
    return int.from_bytes(data, "big")


def _salts(head: bytes) -> int:
    """Returns the name of a log from its head."""
    return _number(head[16:24])


def _is_of(frame: memoryview, salts: int) -> bool:
    """Returns whether a frame is of the log with that name."""
    return len(frame) >= _FRAME_HEAD and _number(frame[8:16]) == salts


def stamp_of(file: int) -> Stamp:
    """Returns the stamp of an open file."""
    return Stamp.of(os.fstat(file))


def _read(file: int) -> _Head | None:
    """Returns the head; None if it is damaged."""
    data = os.pread(file, _HEAD, 0)
    numbers = [int.from_bytes(data[at : at + 8], "little") for at in range(0, _HEAD, 8)]
    magic, *values = numbers[: 1 + len(_Head._fields)]
    if magic != _MAGIC or adler32(data[:-8]) != numbers[-1]:
        return None
    return _Head(*values)


def _write(file: int, head: _Head) -> None:
    data = b"".join(value.to_bytes(8, "little") for value in (_MAGIC, *head))
    data = data.ljust(_HEAD - 8, b"\0")
    disk.write_at(file, data + adler32(data).to_bytes(8, "little"), 0)
