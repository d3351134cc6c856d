"""What a look at a file costs nothing to compare: size, times and inode."""

from typing import NamedTuple


class Stamp(NamedTuple):
    """A file's size (bytes), times (nanoseconds) and inode, as `stat` tells them."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
