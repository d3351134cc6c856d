"""The points: one damage at one place of one file of the index."""

import os
import random
import re
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

RANGE, PAGE = 64, 4096

CLOSED, OPEN, LIVE, CACHED = "closed", "left open", "in use", "in the cache"
"""The states of the index: no process has it; a process ended without closing it, so that the log
has its last changes; a process has it open while it is damaged; it is in the user's cache, and no
process has it."""

RANGES = ("a bit of 64 bytes", "64 bytes zeroed")
STALE = "page of an earlier version"
PAGES = ("a bit of the page", "page zeroed", "pages swapped", STALE)
LENGTHS = ("cut at a page", "cut at an odd length")
OTHERS = (
    "another project's file",
    "removed",
    "empty",
    "a folder",
    "a fifo",
    "a link",
    "a link to nothing",
)
KINDS = (*RANGES, *PAGES, *LENGTHS, *OTHERS)

Files = Mapping[str, bytes]
"""The contents of files by their paths, relative to the tree."""


class Point(NamedTuple):
    """One damage."""

    state: str
    file: str
    kind: str
    at: int
    """The number of the range or page."""

    @property
    def page(self) -> int:
        """Returns the number of the damaged page."""
        return self.at * RANGE // PAGE if self.kind in RANGES else self.at

    @property
    def name(self) -> str:
        """Returns the name of the file, without its random part."""
        return named(self.file)


def named(file: str) -> str:
    """Returns the name of a file, with `*` for its random part and for the name of a past state."""
    name = re.sub(r"-[0-9a-f]{16}\.rows$", "-*.rows", Path(file).name)
    return f"past/*/{name}" if "past" in Path(file).parts else name


def points(states: Mapping[str, Files], earlier: Files) -> Iterator[Point]:
    """Yields every point."""
    for state, files in states.items():
        for file, data in files.items():
            for kind in KINDS:
                if _is_tried(state, file, kind):
                    for at in _places(kind, data, earlier.get(file, b"")):
                        yield Point(state, file, kind, at)


def _is_tried(state: str, file: str, kind: str) -> bool:
    """Returns whether a kind of damage to a file is tried in a state."""
    same = {OPEN: ("edges.json", ".rows"), CACHED: ("edges.json",)}
    if file.endswith(same.get(state, ())):
        return False  # It is the same as in the other states.
    if state == CACHED:
        return kind not in RANGES  # Only the folder differs.
    # SQLite maps this file, and the system kills a process that reads a map beyond the file's end.
    return not (state == LIVE and file.endswith("-shm") and kind in LENGTHS)


def _places(kind: str, data: bytes, old: bytes) -> Collection[int]:
    """Returns the places of a file where a kind of damage is possible."""
    pages, ranges = range(-(-len(data) // PAGE)), range(-(-len(data) // RANGE))
    if kind == "64 bytes zeroed":
        return [at for at in ranges if any(data[at * RANGE : (at + 1) * RANGE])]
    if kind in RANGES:
        return ranges
    if kind == "page zeroed":
        return [at for at in pages if any(page_of(data, at))]
    if kind == STALE:
        return [at for at in pages if page_of(old, at) not in (b"", page_of(data, at))]
    if kind == "pages swapped":
        return [at for at in pages if _others(data, at)]
    if kind in PAGES:
        return pages
    return pages if kind in LENGTHS else (0,)


def _others(data: bytes, at: int) -> Sequence[int]:
    """Returns the pages that have other content than a page, of the same length."""
    own, pages = page_of(data, at), range(-(-len(data) // PAGE))
    theirs = {other: page_of(data, other) for other in pages}
    return [other for other, page in theirs.items() if len(page) == len(own) and page != own]


def page_of(data: bytes, at: int) -> bytes:
    """Returns a page of a file."""
    return data[at * PAGE : (at + 1) * PAGE]


def damaged(point: Point, data: bytes, earlier: Files) -> bytes:
    """Returns the damaged content of a file."""
    chance = random.Random(repr(point))
    changed = bytearray(data)
    size = RANGE if point.kind in RANGES else PAGE
    start, end = point.at * size, min((point.at + 1) * size, len(data))
    if point.kind in ("a bit of 64 bytes", "a bit of the page"):
        changed[chance.randrange(start, end)] ^= 1 << chance.randrange(8)
    elif point.kind in ("64 bytes zeroed", "page zeroed"):
        changed[start:end] = bytes(end - start)
    elif point.kind == "pages swapped":
        other = chance.choice(_others(data, point.at))
        own, theirs = page_of(data, point.at), page_of(data, other)
        changed[start:end], changed[other * PAGE : (other + 1) * PAGE] = theirs, own
    elif point.kind == STALE:
        old = page_of(earlier[point.file], point.at)
        changed[start : start + len(old)] = old
    elif point.kind == "cut at a page":
        del changed[start:]
    elif point.kind == "cut at an odd length":
        del changed[start + chance.randrange(1, max(2, end - start)) :]
    return bytes(changed)


def damage(point: Point, path: Path, data: bytes, earlier: Files, other: Path) -> None:
    """Damages a file; `other` is the folder of another project's files."""
    if point.kind not in OTHERS:
        bad = damaged(point, data, earlier)
        with path.open("r+b") as file:  # It stays the same file, as for a process that has it.
            file.write(bad)
            file.truncate()
        return
    path.unlink()
    if point.kind == "another project's file":
        theirs = [file for file in other.rglob("*") if named(file.as_posix()) == point.name]
        if theirs:
            shutil.copy(theirs[0], path)
    elif point.kind == "empty":
        path.touch()
    elif point.kind == "a folder":
        path.mkdir()
    elif point.kind == "a fifo":
        os.mkfifo(path)
    elif point.kind == "a link":
        place = path.with_name(f"{path.name}.moved")
        place.write_bytes(data)
        path.symlink_to(place)
    elif point.kind == "a link to nothing":
        path.symlink_to(path.with_name("nothing"))
