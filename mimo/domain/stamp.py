"""What a look at a file costs nothing to compare: size, times and inode."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """A file's size (bytes), times (nanoseconds) and inode, as `stat` tells them."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
