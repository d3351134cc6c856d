"""The shim in C, which counts writing calls and lets them fail."""

from __future__ import annotations

import errno
import mmap
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).with_suffix(".c")
KINDS = (
    "write", "pwrite", "writev", "ftruncate", "rename", "unlink",
    "link", "mkdir", "create", "fsync", "chmod",
)  # fmt: skip
_KILL, _TORN, _SHORT, _FAIL, RECORD = range(1, 6)
"""Ways to treat calls, as in shim.c. `RECORD` lets none fail."""
_HEADER = struct.Struct("=8i4q1024s")
STATE_BYTES = _HEADER.size + (1 << 16)


_WRITES = ("write", "pwrite")
_GROWS = (*_WRITES, "writev", "create", "mkdir", "link", "rename", "fsync")


class Fault(NamedTuple):
    """One way in which a call fails."""

    name: str
    how: int
    kinds: Sequence[str]
    error: int = 0
    lasting: bool = False
    """True if all later calls of these kinds fail, too."""

    @property
    def kills(self) -> bool:
        """Returns whether it kills all processes."""
        return self.how in (_KILL, _TORN)

    @property
    def mask(self) -> int:
        """Returns the kinds as bits."""
        return sum(1 << KINDS.index(kind) for kind in self.kinds)


FAULTS = (
    Fault("killed before the call", _KILL, KINDS),
    Fault("killed in the middle of the write, or after the call", _TORN, KINDS),
    Fault("short write", _SHORT, _WRITES),
    Fault("disk full (ENOSPC) from here on", _FAIL, _GROWS, errno.ENOSPC, lasting=True),
    Fault("quota used up (EDQUOT) from here on", _FAIL, _GROWS, errno.EDQUOT, lasting=True),
    Fault("read-only (EROFS) from here on", _FAIL, KINDS, errno.EROFS, lasting=True),
    Fault("input/output error (EIO), once", _FAIL, KINDS, errno.EIO),
    Fault("too many open files (EMFILE), once", _FAIL, ("create",), errno.EMFILE),
    Fault(
        "interrupted (EINTR), once", _FAIL, (*_WRITES, "create", "fsync", "ftruncate"), errno.EINTR
    ),
)


class Shim:
    """The shared state of the shim."""

    def __init__(self, path: Path, record: Path, root: Path) -> None:
        """Maps the state file; nothing is counted yet. Events go to the file `record`."""
        self._file = path.open("r+b")
        self._map = mmap.mmap(self._file.fileno(), STATE_BYTES)
        self._root = os.fsencode(root)
        self.record = record

    def arm(self, fault: Fault | None, at: int, now: int) -> None:
        """Counts from now on, and lets the call with number `at` fail. The time of day is `now`."""
        words = (fault.how, fault.error, fault.lasting, fault.mask) if fault else (0, 0, 0, 0)
        _HEADER.pack_into(self._map, 0, 1, *words, 0, 0, 0, at, 0, now, 0, self._root)
        self.record.write_bytes(b"")

    def disarm(self) -> tuple[bool, list[int]]:
        """Stops counting; returns whether a call failed, and the kinds of all calls."""
        _, _, _, _, _, acted, _, _, _, count, *_ = _HEADER.unpack_from(self._map, 0)
        self._map[0:4] = b"\0" * 4
        return bool(acted), list(self._map[_HEADER.size + 1 : _HEADER.size + 1 + count])
