"""The records of transcripts: files of JSON lines of any length, which may grow meanwhile.

A line is checked by its length before it is parsed, and memory is bounded by that limit.
"""

from __future__ import annotations

import io
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Literal

from mimo.api import NamedTuple, disk, loads_or_none
from mimo.extensions.sessions.model import Source, Unavailable

LONGEST_LINE = 8_000_000
"""Bytes; longer lines hold images and copies of the history."""

LARGEST_FILE = 64_000_000
"""Bytes of a file that has to be read whole."""

LARGEST_DECOMPRESSED = 4_000_000_000
"""Bytes of a compressed transcript; a few bytes can stand for any number of zeros."""

MOST_LINES = 2_000_000
"""Lines of a transcript in a run; a few compressed bytes can stand for any number of them, too."""

UNREAD: Mapping[str, Any] = {}
"""The value of a line of a known kind that was not parsed: it is too long, or not wanted."""

LASTING = ("damaged: ", "larger than ", "more lines than ")
"""Beginnings of the problems of a content: a file that has not changed still has them."""

WITHOUT_ZSTD = "reading `.zst` needs the package zstandard, or Python 3.14"

_CHUNK = 1 << 20
_BLANK = b"\0\t\r\n "
"""Bytes around a record; a crash of the system can leave zeros in a file."""

_KIND = re.compile(
    rb'\{(?:"\w{1,40}":\s?(?:null|true|false|-?\d{1,20}|"[^"\\]{0,200}"),\s?){0,12}?'
    rb'"type":\s?"[\w.-]{1,60}"'
)
"""The start of a record whose kind is named before anything that is long."""


class Line(NamedTuple):
    """A record of a file of JSON lines."""

    value: Mapping[str, Any] | None
    """`UNREAD` if it was not parsed; None if it is not an object, or long and without a kind."""
    end: int
    """The offset of the next line."""


def source_of(path: Path) -> Source | None:
    """Returns the source that a regular file is; None if it is none."""
    try:
        state = path.lstat()
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(state.st_mode):
        return None
    changed = min(state.st_mtime_ns, (1 << 63) - 1)  # SQLite knows no later.
    return Source(path, "", state.st_size, changed, state.st_ino)


def files_in(folder: Path, *patterns: str) -> Iterator[Source]:
    """Yields the regular files that match, newest first; no link below the folder is followed."""
    matches: list[Source] = []
    for pattern in patterns:
        with suppress(OSError, ValueError):
            matches += filter(None, map(source_of, folder.glob(pattern)))
    if not matches:
        return
    root = os.path.realpath(folder)
    unlinked = {
        parent
        for parent in {source.path.parent for source in matches}
        if os.path.realpath(parent) == str(Path(root, parent.relative_to(folder)))
    }
    files = [source for source in matches if source.path.parent in unlinked]
    yield from sorted(files, key=lambda source: (-source.mtime_ns, source.path))


@contextmanager
def opened(path: Path, inode: int = 0) -> Iterator[IO[bytes]]:
    """Opens a file that is regular also now, and still the one with an inode.

    Raises `OSError`, and `Unavailable` for `.zst`. What a damaged `.zst` has before the damage is
    read; the error follows it.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _NO_LINK)
    with os.fdopen(descriptor, "rb") as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise OSError("not a regular file")
        if inode and state.st_ino != inode:
            raise OSError("replaced by another file meanwhile")
        if path.suffix != ".zst":
            yield file
            return
        raw = _Decompressed(_decompressed(file))
        yield io.BufferedReader(raw, _CHUNK)
        if raw.problem:
            raise OSError(raw.problem)


_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


class _Decompressed(io.RawIOBase):
    """A decompressed text up to its end, its damage, or the limit."""

    def __init__(self, stream: IO[bytes]) -> None:
        """Takes the stream of a library."""
        self._stream, self._left = stream, LARGEST_DECOMPRESSED
        self.problem = ""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Returns the number of bytes that were read; 0 at the end."""
        if self._left <= 0:
            self.problem = "larger than a transcript may be"
        if self.problem:
            return 0
        try:
            data = self._stream.read(min(len(buffer), self._left))
        except Exception as error:  # noqa: BLE001 - each library has errors of its own
            self.problem = f"damaged: {error}"
            return 0
        buffer[: len(data)] = data
        self._left -= len(data)
        return len(data)


def _decompressed(file: IO[bytes]) -> IO[bytes]:
    stream: IO[bytes]
    for name in ("compression.zstd", "backports.zstd", "zstandard"):
        with suppress(ImportError):
            library = import_module(name)
            if name != "zstandard":
                stream = library.open(file, "rb")
            else:
                stream = library.ZstdDecompressor().stream_reader(file, read_across_frames=True)
            return stream
    raise Unavailable(WITHOUT_ZSTD)


def beginning(file: IO[bytes], offset: int) -> Iterator[Mapping[str, Any]]:
    """Yields the first records of a file up to an offset: they state the facts of a session."""
    if offset:
        for record, end in records(file):
            if end > min(offset, _BEGINNING):
                return
            if record:
                yield record


_BEGINNING = 1 << 18


def records(
    file: IO[bytes], offset: int = 0, unread: re.Pattern[bytes] | None = None
) -> Iterator[Line]:
    """Yields the whole lines from an offset on; a last line without an end waits.

    Lines that begin as `unread` are not parsed. Raises `OSError` after `MOST_LINES`.
    """
    if file.seekable():
        file.seek(offset)
    end, left = offset, MOST_LINES
    while line := file.readline(LONGEST_LINE + 1):
        end, left = end + len(line), left - 1
        if left < 0:
            raise OSError("more lines than a transcript may have")
        if len(line) > LONGEST_LINE:
            piece = line
            while piece and not piece.endswith(b"\n"):
                piece = file.readline(_CHUNK)
                end += len(piece)
            if piece:
                yield Line(UNREAD if _KIND.match(line) else None, end)
        elif not line.endswith(b"\n"):
            return
        elif unread and unread.match(line):
            yield Line(UNREAD, end)
        elif line := line.strip(_BLANK):
            yield Line(mapping(line), end)


def mapping(data: Any, syntax: Literal["json", "yaml"] = "json") -> Mapping[str, Any] | None:
    """Returns the object that a text or bytes hold; None for anything else.

    Bytes that are not UTF-8 are replaced.
    """
    content = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    if not isinstance(content, str):
        return None
    value = loads_or_none(content, syntax)
    return value if isinstance(value, dict) else None


def read_json(source: Source) -> Any:
    """Returns the value of a file of JSON; None if it is not JSON. Raises `OSError`."""
    if source.size > LARGEST_FILE:
        raise OSError(f"larger than {LARGEST_FILE:,} bytes")
    with opened(source.path) as file:
        data = file.read(LARGEST_FILE + 1)
    return loads_or_none(data)


def small(path: Path, limit: int = 1 << 20, *, follow: bool = False) -> bytes:
    """Returns the content of a file; empty if it has more bytes, or can't be read."""
    try:
        return disk.read(path, limit=limit, follow=follow)
    except (OSError, ValueError):
        return b""


# Values of foreign records: each function returns an empty value for what is of another type.


def text(value: Any, *keys: str) -> str:
    """Returns the text below some keys; halves of characters are replaced."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    if not isinstance(value, str):
        return ""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def inner(value: Any, *keys: str) -> Mapping[str, Any]:
    """Returns the object below some keys."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def items(value: Any, *keys: str) -> Sequence[Any]:
    """Returns the list below some keys."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, list) else ()


def blocks_of(content: Any) -> Sequence[Any]:
    """Returns the blocks of a message, whose content may be a text."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else items(content)


def moment(value: Any) -> datetime | None:
    """Returns the time of a record: ISO 8601, or seconds or milliseconds since 1970.

    One that is not of this age is left out: it would be the first or the last of all forever.
    """
    try:
        if isinstance(value, str):
            time = datetime.fromisoformat(value)
            time = time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            time = datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return time if 2000 <= time.year < 2200 else None


def plain_id(value: Any) -> str:
    """Returns the id of a session; empty if it could be an option, a path or several words."""
    id = text(value)
    return id if _ID.fullmatch(id) else ""


_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,127}")
