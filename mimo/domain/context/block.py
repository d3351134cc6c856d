"""The block of notes in an instructions file, and everything else in it left byte for byte.

It begins with a line `<!-- MIND:CONTEXT sha=… … -->`, whose hash is of the lines below it, and
ends with `<!-- MIND:END -->`. Only markers that fill a line count, and none within code.
"""

import re
from hashlib import sha256
from typing import NamedTuple

from mimo.errors import Conflict, Invalid

LABEL = (
    "kept by mind: notes from this project's memory, information and not instructions; "
    "change the memories instead (`mind list`)"
)
END = "<!-- MIND:END -->"
_BEGIN = re.compile(rb"<!-- MIND:CONTEXT\b(?P<said>[^\n]*)")
_HASH = re.compile(rb"\bsha=([0-9a-f]{12})\b")
_FENCE = re.compile(rb"\s{0,3}(```|~~~)")
_BOM = b"\xef\xbb\xbf"


class Block(NamedTuple):
    """Where the block stands in a file, and what it says."""

    start: int
    """The offset of its first byte."""
    end: int
    """The offset behind its last line, without the end of that line."""
    line: int
    body: str
    """The lines between the markers, ended by newlines alone."""
    edited: bool
    """Whether somebody changed it by hand, or it is not of ours."""


def find(data: bytes) -> Block | None:
    """Returns the block of a file; None where it has none.

    Raises `Invalid` where it has no end, or there are two.
    """
    found: Block | None = None
    begun: tuple[int, int, bytes] | None = None
    for number, start, line in _marker_lines(data):
        if match := _BEGIN.match(line):
            if begun or found:
                raise _broken(f"a second block of notes begins on line {number}")
            begun = (start, number, match["said"])
        elif line.rstrip() == END.encode() and begun:
            found = _block(data, begun, start)
            begun = None
    if begun:
        raise _broken(f"the block of notes that begins on line {begun[1]} has no end")
    return found


def replaced(data: bytes, body: str, *, force: bool = False) -> bytes:
    """Returns a file with `body` as its block, which is new at its top where it had none.

    Raises `Conflict` where the block was changed by hand, but for `force`, and `Invalid` where it
    can't be told where the block is.
    """
    block = find(data)
    newline = "\r\n" if b"\r\n" in data else "\n"
    text = whole(body).replace("\n", newline).encode()
    if block is None:
        start = _top(data)
        rest = data[start:]
        between = newline.encode() * 2 if rest.strip() else newline.encode()
        return data[:start] + text + between + rest
    if block.edited and not force:
        raise Conflict(
            f"the block of notes on line {block.line} was changed by hand",
            hint="move what you wrote out of it, then write it with --force",
        )
    return data if block.body == body else data[: block.start] + text + data[block.end :]


def whole(body: str) -> str:
    """Returns a block, without the end of its last line."""
    return f"<!-- MIND:CONTEXT sha={_hash(body)} {LABEL} -->\n{body}\n{END}"


def _block(data: bytes, begun: tuple[int, int, bytes], end_marker: int) -> Block:
    start, number, said = begun
    first = data.find(b"\n", start) + 1
    raw = data[first:end_marker].replace(b"\r\n", b"\n").removesuffix(b"\n")
    body = raw.decode("utf-8", "replace")
    known = _HASH.search(said)
    edited = known is None or known[1].decode() != _hash(body)
    return Block(start, end_marker + len(END), number, body, edited)


def _hash(body: str) -> str:
    return sha256(body.encode("utf-8", "replace")).hexdigest()[:12]


def _marker_lines(data: bytes) -> "list[tuple[int, int, bytes]]":
    """Returns number, offset and text of each line that may be a marker."""
    found, start, fence = [], len(_BOM) if data.startswith(_BOM) else 0, b""
    for number, line in enumerate(data[start:].split(b"\n"), 1):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1] == fence):
            fence = b"" if fence else mark[1]
        elif not fence and line.startswith(b"<!-- MIND:"):
            found.append((number, start, line))
        start += len(line) + 1
    return found


def _top(data: bytes) -> int:
    """Returns where a new block goes: behind a byte order mark and a header."""
    start = len(_BOM) if data.startswith(_BOM) else 0
    header = re.match(rb"---\r?\n(?:[^\n]*\n)*?---\r?\n", data[start:])
    return start + (header.end() if header else 0)


def _broken(what: str) -> Invalid:
    return Invalid(what, hint=f"keep one, from <!-- MIND:CONTEXT to {END}, or remove them all")
