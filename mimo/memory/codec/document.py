"""A file's bytes taken apart: byte order mark, header, body."""

import re
from typing import Literal

from mimo.frozen import frozen

MAX_FILE_BYTES = 1024 * 1024
"""Largest file that is read as a memory."""

MAX_SOURCE_BYTES = 128 * 1024 * 1024
"""Largest file of a source; what was ingested has far fewer, but chunks may overlap."""

_SOURCES = (".mind/sources/", ".mind/private/sources/")

MAX_HEADER_BYTES = 64 * 1024

_OPENING = re.compile(r"(---|\+\+\+)[ \t]*(\r?\n)")
_CLOSING = {
    "---": re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.MULTILINE),
    "+++": re.compile(r"^\+\+\+[ \t]*(?:\r?\n|\Z)", re.MULTILINE),
}
_COMMENT = re.compile(r"[ \t]*(?:#.*)?\r?\n?")
_KEY = {
    "---": re.compile(r"[ \t]*(?:\{|[\"']?[^\W\d_][\w .-]{0,60}[\"']?[ \t]*:(?:\s|$))"),
    "+++": re.compile(r"[ \t]*(?:\[|[\w.\"-]+[ \t]*=)"),
}

Syntax = Literal["yaml", "toml"]


class Unreadable(Exception):
    """A file that is no memory; `line` is 1-based in the file, or None for the whole of it."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        """Keep the reason and the line."""
        super().__init__(reason)
        self.reason = reason
        self.line = line


@frozen
class Document:
    """The text of a file and where its header and body are; nothing of it is lost or changed."""

    text: str
    """Without the byte order mark."""
    bom: bool = False
    newline: str
    """What ends the file's lines: `\\n`, or `\\r\\n` where the header or all lines end so."""
    syntax: Syntax | None = None
    header_start: int = 0
    header_end: int = 0
    body_start: int = 0

    @property
    def header(self) -> str:
        """Returns the text between the two fences."""
        return self.text[self.header_start : self.header_end]

    @property
    def body(self) -> str:
        """Returns all that follows the header."""
        return self.text[self.body_start :]

    @property
    def body_line(self) -> int:
        """Returns the 1-based line of the file on which the body begins."""
        return self.text.count("\n", 0, self.body_start) + 1

    @property
    def looks_like_header(self) -> bool:
        """Returns whether a person who wrote this meant a header, rather than a rule and prose."""
        return _begins_with_key(self.header, "+++" if self.syntax == "toml" else "---")

    def without_header(self) -> "Document":
        """Returns the same text, all of it body."""
        return Document(text=self.text, bom=self.bom, newline=_newline(self.text))


def is_source(path: str) -> bool:
    """Returns whether a file lies where sources are kept."""
    return path.startswith(_SOURCES)


def decode(data: bytes, limit: int = MAX_FILE_BYTES) -> tuple[str, bool]:
    """Returns the text of a file and whether it began with a byte order mark.

    Raises `Unreadable` for what is no text in UTF-8 of a sensible size.
    """
    if len(data) > limit:
        raise Unreadable(f"too large: {len(data):,} bytes, and a memory has {limit:,}")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Unreadable("not UTF-8 but UTF-16", 1)
    if (nul := data.find(b"\0")) >= 0:
        raise Unreadable("binary: it holds a NUL byte", data.count(b"\n", 0, nul) + 1)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"not UTF-8: byte 0x{data[error.start]:02x}", line) from None
    bom = text.startswith("\ufeff")
    return text[bom:], bom


def split(data: bytes, limit: int = MAX_FILE_BYTES) -> Document:
    """Returns the parts of a file.

    A header begins with `---` or `+++` on the first line and ends with the same (or `...`) on a
    line of its own. Whether what stands between is a header, or prose between two rules, is for
    the reader of the header to say. Raises `Unreadable`.
    """
    text, bom = decode(data, limit)
    opening = _OPENING.match(text)
    if opening is None:
        return Document(text=text, bom=bom, newline=_newline(text))
    fence = opening[1]
    closing = _CLOSING[fence].search(text, opening.end())
    if closing is None:
        if _begins_with_key(text[opening.end() :], fence):
            raise Unreadable(f"the header is not closed: no line `{fence}` ends it", 1)
        return Document(text=text, bom=bom, newline=_newline(text))
    return Document(
        text=text,
        bom=bom,
        newline=opening[2],
        syntax="yaml" if fence == "---" else "toml",
        header_start=opening.end(),
        header_end=closing.start(),
        body_start=closing.end(),
    )


def header_end(text: str) -> int:
    """Returns where the body of somebody's Markdown begins: 0 where it has no header."""
    opening = _OPENING.match(text)
    closing = _CLOSING[opening[1]].search(text, opening.end()) if opening else None
    if opening is None or closing is None:
        return 0
    return closing.end() if _begins_with_key(text[opening.end() :], opening[1]) else 0


def _begins_with_key(text: str, fence: str) -> bool:
    position = 0
    while position < len(text):
        comment = _COMMENT.match(text, position)
        if comment is None or not comment[0].strip() or not comment[0].endswith("\n"):
            break
        position = comment.end()
    return _KEY[fence].match(text, position) is not None


def _newline(text: str) -> str:
    crlf = text.count("\r\n")
    return "\r\n" if crlf and crlf == text.count("\n") else "\n"
