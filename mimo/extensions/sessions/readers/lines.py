"""The records of transcripts: files of JSON lines of any length, which may grow meanwhile.

A line is checked by its length before it is parsed, and memory is bounded by that limit.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from mimo.api import DataError, NamedTuple, loads
from mimo.extensions.sessions.model import Source, Unavailable

LONGEST_LINE = 8_000_000
"""Bytes; longer lines hold images and copies of the history."""

LARGEST_FILE = 64_000_000
"""Bytes of a file that has to be read whole."""

_CHUNK = 1 << 20


class Line(NamedTuple):
    """A record of a file of JSON lines."""

    value: Mapping[str, Any] | None
    """None if it is too long, or no object of JSON."""
    end: int
    """The offset of the next line."""


def source_of(path: Path, key: str = "") -> Source | None:
    """Returns the source that a regular file is; None if it is none."""
    with suppress(OSError, ValueError):
        state = path.lstat()
        if stat.S_ISREG(state.st_mode):
            return Source(path, key, state.st_size, state.st_mtime_ns, state.st_ino)
    return None


def files_in(folder: Path, *patterns: str) -> Iterator[Source]:
    """Yields the regular files that match, newest first; a link is not followed."""
    found: list[Source] = []
    for pattern in patterns:
        with suppress(OSError):
            found += filter(None, map(source_of, folder.glob(pattern)))
    yield from sorted(found, key=lambda source: (-source.mtime_ns, source.path))


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Opens a file that is regular also now. Raises `OSError`, and `Unavailable` for `.zst`."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _NO_LINK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("not a regular file")
        if path.suffix == ".zst":
            with _decompressed(file) as text:
                yield text
        else:
            yield file


_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def _decompressed(file: IO[bytes]) -> IO[bytes]:
    for name in ("compression.zstd", "backports.zstd"):
        with suppress(ImportError):
            reader: IO[bytes] = import_module(name).open(file, "rb")
            return reader
    with suppress(ImportError):
        stream: IO[bytes] = (
            import_module("zstandard")
            .ZstdDecompressor()
            .stream_reader(file, read_across_frames=True)
        )
        return stream
    raise Unavailable("reading `.zst` needs the package zstandard, or Python 3.14")


def records(file: IO[bytes], offset: int = 0) -> Iterator[Line]:
    """Yields the whole lines from an offset on; a last line without an end waits."""
    if offset:
        file.seek(offset)
    start, parts, size = offset, [], 0
    while chunk := file.read(_CHUNK):
        while chunk:
            piece, end, chunk = chunk.partition(b"\n")
            size += len(piece)
            if size <= LONGEST_LINE:
                parts.append(piece)
            if not end:
                break
            start += size + 1
            line = b"".join(parts) if size <= LONGEST_LINE else b""
            parts, size = [], 0
            yield Line(mapping(line) if line.strip() else None, start)


def mapping(data: bytes | str) -> Mapping[str, Any] | None:
    """Returns an object of JSON; None for anything else."""
    try:
        value = loads(data)
    except (DataError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def whole(source: Source) -> Any:
    """Returns the value of a small file of JSON; None if it is large or not JSON."""
    if source.size > LARGEST_FILE:
        return None
    with opened(source.path) as file, suppress(DataError, ValueError):
        return loads(file.read(LARGEST_FILE + 1))
    return None


# Values of foreign records: each function returns an empty value for what is of another type.


def text(value: Any, *keys: str) -> str:
    """Returns the text below some keys."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else ""


def inner(value: Any, *keys: str) -> Mapping[str, Any]:
    """Returns the object below some keys."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def items(value: Any, *keys: str) -> Sequence[Any]:
    """Returns the list below some keys."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, list) else ()


def moment(value: Any) -> datetime | None:
    """Returns the time of a record: ISO 8601, or seconds or milliseconds since 1970."""
    with suppress(ValueError, OverflowError, OSError):
        if isinstance(value, str):
            time = datetime.fromisoformat(value.replace("Z", "+00:00"))
            return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
    return None
