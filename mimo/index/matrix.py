"""The rows of vectors: a file that grows at its end, which numpy reads where the system maps it.

A row has the name of a vector, a checksum and the vector. Rows are never changed, so that one
process can read while another appends. Which of them count is in the database of `Vectors`, with a
checksum of them all: numpy compares vectors without reading the checksum of each.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import adler32, crc32

from mimo import disk
from mimo.disk import Stamp

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAME = 16
"""The length of a name, in bytes."""

MARK = 8
"""The length of the mark of a file, in bytes; its name has it in hexadecimal digits."""

MAGIC = b"MINDROW1"
"""The first bytes of a file of rows, whose last is its version; the file's own mark follows."""

_START = 16
"""The place of the first row."""

_LEAD = NAME + 4
"""The length of the name and the checksum before a vector."""

_BLOCK = 1024
"""Rows at a time: 1 MB of float32 fits the cache, and is too little for BLAS to use threads."""

_OFTEN = 3
"""The number of reads of several rows from which the file is mapped."""

_READ_ROWS = 4096
"""Rows that are read at a time, 1 MB."""


_NO_FILE = (errno.ENOENT, errno.EINVAL, errno.ELOOP, errno.EISDIR, errno.ENXIO)
"""The errors for a missing file, and for something else in its place."""

NO_ROWS = 1
"""The checksum of no rows: Adler-32, which has nothing in common with those in the rows."""


class RowsDamaged(sqlite3.DatabaseError):
    """A file of rows is missing, too short, or not the one that the database names."""


class Rows:
    """The rows of one file, or in memory; threads can read at the same time."""

    def __init__(self, folder: Path | None, name: str, mark: str, width: int) -> None:
        """Takes the file's name without its mark, 16 hexadecimal digits; nothing is opened yet."""
        self.mark = mark
        self.width = width
        self.size = _LEAD + width
        self.path = None if folder is None else folder / f"{name}-{mark}.rows"
        self._start = MAGIC + bytes.fromhex(mark)
        self._memory = self._start
        self._descriptor: int | None = None
        self._mapped: tuple[int, bytes | mmap] = (0, b"")
        self.places: dict[bytes, int] = {}
        """The places of some names, which the owner of the rows keeps."""
        self._reads = 0
        self.is_read_often = False
        """True if keeping what was read pays."""
        self._sorted: Sorted | None = None
        self.is_compared = False
        """True if this process has compared the rows with the checksum of them all."""

    def create(self) -> None:
        """Creates the file. Raises `OSError`."""
        if self.path:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
            self._descriptor = disk.opened(self.path, flags, disk.mode_for(self.path, 0o666))
            disk.write_at(self._descriptor, self._start, 0)

    def append(
        self, count: int, checksum: int, vectors: Iterable[tuple[bytes, bytes]]
    ) -> tuple[int, int]:
        """Writes named vectors after the first `count` rows, whose checksum is `checksum`.

        Returns the number and the checksum of all rows. Raises `OSError`, `RowsDamaged` unless
        there are that many rows, and `ValueError` for a vector of another length.
        """
        self._check(count)
        parts: list[bytes] = []
        for name, vector in vectors:
            if len(name) != NAME or len(vector) != self.width:
                raise ValueError(f"a vector of {len(vector)} bytes among those of {self.width}")
            parts += (name, _sum(name, vector), vector)
        place, data = _START + count * self.size, b"".join(parts)
        if self.path:
            disk.write_at(self._check(0), data, place)
        else:
            self._memory = self._memory[:place] + data
        return count + len(parts) // 3, adler32(data, checksum)

    def stamp(self) -> str:
        """Returns the stamp of the file as text; empty in memory."""
        return " ".join(map(str, stamp_of(self._check(0)))) if self.path else ""

    def checksum(self, first: int, end: int, before: int) -> int:
        """Returns the checksum of the rows up to `end`; those up to `first` have that `before`."""
        for data in self._chunks(first, end):
            before = adler32(data, before)
        return before

    def get(self, places: Sequence[int], count: int) -> list[tuple[bytes, bytes] | None]:
        """Returns the name and vector in each place, None for a row whose checksum does not match.

        It is also None for a place beyond them. Raises `RowsDamaged` unless the file has `count`
        rows.
        """
        size, opened = self.size, self._check(count)
        rows: list[tuple[bytes, bytes] | None] = []
        self._reads += len(places) > 1
        self.is_read_often = self._reads > _OFTEN
        whole = self._bytes(opened, count) if self.path is None or self.is_read_often else None
        for place in places:
            at = _START + place * size
            if not 0 <= place < count:  # The database is damaged.
                rows.append(None)
            elif whole is None:
                rows.append(self.row(os.pread(opened, size, at)))
            else:
                rows.append(self.row(whole[at : at + size]))
        return rows

    def all(self, count: int) -> Iterator[tuple[bytes, bytes] | None]:
        """Yields the same for the first `count` rows, in their order."""
        for data in self._chunks(0, count):
            for at in range(0, len(data), self.size):
                yield self.row(data, at)

    def _chunks(self, first: int, end: int) -> Iterator[bytes]:
        """Yields the bytes of rows, some at a time. Raises `RowsDamaged` if the file is shorter."""
        size, opened = self.size, self._check(end)
        for start in range(first, end, _READ_ROWS):
            length, place = min(_READ_ROWS, end - start) * size, _START + start * size
            if self.path is None:
                yield self._memory[place : place + length]
            else:
                yield os.pread(opened, length, place)

    def row(self, data: bytes, at: int = 0) -> tuple[bytes, bytes] | None:
        """Returns the name and vector in the bytes of a row; None if its checksum is wrong."""
        name, vector = data[at : at + NAME], data[at + _LEAD : at + self.size]
        if len(vector) == self.width and data[at + NAME : at + _LEAD] == _sum(name, vector):
            return name, vector
        return None

    def matrix(self, count: int) -> Matrix:
        """Returns the first `count` rows for numpy, read from the file when they are used."""
        import numpy as np

        data = self._bytes(self._check(count), count)
        rows = np.frombuffer(data, np.uint8, count * self.size, _START).reshape(count, self.size)
        return Matrix(self, rows)

    def _bytes(self, opened: int, count: int) -> bytes | mmap:
        """Returns the beginning of the file with the first `count` rows, at least."""
        if self.path is None:
            return self._memory
        length = _START + count * self.size
        mapped, data = self._mapped
        if mapped < length:
            data = mmap(opened, length, access=ACCESS_READ)
            self._mapped = (length, data)
        return data

    def order(self, names: NDArray[np.uint8]) -> Sorted:
        """Returns the order of the names of the first rows; most of it is kept between calls."""
        before = self._sorted  # Another thread may replace it.
        if before and len(before.places) == len(names):
            return before
        if before and len(before.places) > len(names):
            before = None
        self._sorted = order = Sorted(names, before)
        return order

    def remove(self) -> None:
        """Removes the file, as far as possible; processes that have it open can read on."""
        if self.path:
            with suppress(OSError):
                self.path.unlink()

    def close(self) -> None:
        """Closes the file; a matrix can still be used."""
        self._mapped = (0, b"")
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __del__(self) -> None:
        """Closes the file of rows that others have replaced."""
        self.close()

    def _check(self, count: int) -> int:
        """Opens the file and returns its descriptor, which is not used in memory.

        Raises `RowsDamaged` if the file is too short: reading a map beyond its end is fatal.
        """
        if self.path is None:
            return -1
        if self._descriptor is None:
            try:
                descriptor = disk.opened(self.path, os.O_RDWR)
            except OSError as error:
                if error.errno not in _NO_FILE:
                    raise
                raise RowsDamaged(f"{self.path}: {error.strerror}") from error
            if os.pread(descriptor, _START, 0) != self._start:
                os.close(descriptor)
                raise RowsDamaged(f"{self.path} has another beginning")
            self._descriptor = descriptor
        if os.fstat(self._descriptor).st_size < _START + count * self.size:
            raise RowsDamaged(f"{self.path} is cut short")
        return self._descriptor


def is_mark(text: str) -> bool:
    """Returns whether a text is the mark of a file."""
    return len(text) == 2 * MARK and set(text) <= set("0123456789abcdef")


def _sum(name: bytes, vector: bytes) -> bytes:
    return crc32(vector, crc32(name)).to_bytes(4, "little")


class Sorted:
    """The rows in the order of the beginnings of their names, to find them by name."""

    def __init__(self, names: NDArray[np.uint8], before: Sorted | None = None) -> None:
        """Takes the names of all rows, and the order of those before."""
        import numpy as np

        count = len(before.places) if before else 0
        new = _beginnings(names[count:])
        order = np.argsort(new, kind="stable")
        self.keys: NDArray[np.uint64] = new[order]
        self.places: NDArray[np.intp] = order + count
        if before:
            at = np.searchsorted(before.keys, self.keys, side="right")
            self.keys = np.insert(before.keys, at, self.keys)
            self.places = np.insert(before.places, at, self.places)


class Matrix:
    """The rows of a file at one time, as arrays."""

    def __init__(self, rows: Rows, data: NDArray[np.uint8]) -> None:
        """Takes the bytes of each row."""
        import numpy as np

        self._rows = rows
        self._data = data
        self.names = data[:, :NAME]
        self.vectors = data[:, _LEAD:].view(np.int8)

    def places(self, names: NDArray[np.uint8]) -> NDArray[np.intp]:
        """Returns the row of each name, -1 for one that is missing."""
        import numpy as np

        places = np.full(len(names), -1, np.intp)
        if not (len(names) and len(self.names)):
            return places
        order, keys = self._rows.order(self.names), _beginnings(names)
        at = np.searchsorted(order.keys, keys)
        open_ = np.arange(len(names))
        while len(open_):  # Nearly always once: two names rarely have the same beginning.
            inside = at[open_] < len(order.keys)
            open_ = open_[inside]
            open_ = open_[order.keys[at[open_]] == keys[open_]]
            rows = order.places[at[open_]]
            same = (self.names[rows] == names[open_]).all(axis=1)
            places[open_[same]] = rows[same]
            open_ = open_[~same]
            at[open_] += 1
        return places

    def is_sound(self, place: int) -> bool:
        """Returns whether the checksum of a row matches."""
        return self._rows.row(self._data[place].tobytes()) is not None

    def nearest(
        self, query: bytes, k: int, places: NDArray[np.intp] | None = None
    ) -> list[tuple[int, bytes, int]]:
        """Returns the place, name and dot product of the `k` rows nearest to `query`.

        Only the rows in `places` count, if given, each once. The nearest comes first; equally near
        ones are in the order of their names.
        """
        import numpy as np

        values = products(query, self.vectors if places is None else self.vectors[places])
        k = min(k, len(values))
        if k < 1:
            return []
        best = np.flatnonzero(values >= np.partition(values, -k)[-k])
        rows = best if places is None else places[best]
        near = [
            (place, self.names[place].tobytes(), int(value))
            for place, value in zip(rows.tolist(), values[best].tolist(), strict=True)
        ]
        return sorted(near, key=lambda row: (-row[2], row[1]))[:k]


def products(query: bytes, rows: NDArray[np.int8]) -> NDArray[np.float32]:
    """Returns the dot product of each row; float32 holds them exactly: they are below 2**24."""
    import numpy as np

    numbers = np.frombuffer(query, dtype=np.int8).astype(np.float32)
    values = np.empty(len(rows), dtype=np.float32)
    for start in range(0, len(rows), _BLOCK):
        end = start + _BLOCK
        values[start:end] = rows[start:end].astype(np.float32) @ numbers
    return values


def rows_of(parts: Sequence[bytes]) -> NDArray[np.uint8]:
    """Returns parts of one length as the rows of an array."""
    import numpy as np

    width = len(parts[0]) if parts else 0
    return np.frombuffer(b"".join(parts), np.uint8).reshape(len(parts), width)


def _beginnings(names: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Returns the first half of each name as a number."""
    import numpy as np

    return np.ascontiguousarray(names[:, : NAME // 2]).view(np.uint64)[:, 0]


def stamp_of(file: int) -> Stamp:
    """Returns the stamp of an open file."""
    return Stamp.of(os.fstat(file))
