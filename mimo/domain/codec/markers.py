r"""The lines that part the chunks of a source's file: `<!-- chunk 3 lines 120-148 -->`.

Markdown doesn't show them. The headings above a chunk stand in a second comment on the same line.
A line of the text itself that reads so gets a backslash before it, one that has backslashes
already gets one more, and reading takes one away: an exact inverse.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from mimo.domain.chunking.model import Chunk
from mimo.domain.codec.document import Unreadable

_LOOKS_LIKE_MARKER = r"\\*[ \t]*<!--[ \t]*chunk\b"
_ARROW = "\u203a"
BETWEEN = f" {_ARROW} "


class Section(NamedTuple):
    """The place of a chunk in the body."""

    number: int
    lines: tuple[int, int]
    path: tuple[str, ...]
    start: int
    """Where its marker begins."""
    text: int
    """Where its text begins."""
    end: int


def escape(text: str) -> str:
    """Returns `text` with a backslash before each line that reads as the marker of a chunk."""
    return _to_escape().sub(r"\\", text)


def unescape(text: str) -> str:
    """Returns what `escape` was given."""
    return _escaped().sub("", text)


def marker(number: int, chunk: Chunk) -> str:
    """Returns the line that stands before a chunk."""
    line = f"<!-- chunk {number} lines {chunk.first_line}-{chunk.last_line} -->"
    headings = BETWEEN.join(_commented(title) for title in chunk.path)
    return f"{line} <!-- {headings} -->" if headings else line


def _commented(title: str) -> str:
    """Returns a heading as it may stand in a comment: `--` would end it."""
    return re.sub(rf"[\\{_ARROW}]|(?<=-)-", r"\\\g<0>", title)


def _uncommented(headings: str) -> tuple[str, ...]:
    """Returns the headings that a comment holds."""
    parts = re.findall(rf"(?:\\.|[^\\{_ARROW}])+", headings)
    return tuple(re.sub(r"\\(.)", r"\1", part.strip()) for part in parts if part.strip())


def sections(text: str, start: int, line: int) -> Iterator[Section]:
    """Yields the chunks of a body that begins on a line of the file. Raises `Unreadable`."""
    markers = [found for found in _markers().finditer(text, start) if found[1] == ""]
    first = markers[0].start() if markers else len(text)
    if markers and text[start:first].strip():
        raise Unreadable("there is text before the first chunk, which belongs to none", line)
    ends = [*(found.start() for found in markers[1:]), len(text)]
    numbers: set[int] = set()
    for here, end in zip(markers, ends, strict=False):
        line += text.count("\n", start, here.start())
        start = here.start()
        section = _section(text, here, end, line)
        if section.number in numbers:
            raise Unreadable(f"there are two chunks {section.number}", line)
        numbers.add(section.number)
        yield section


def _section(text: str, marker: re.Match[str], end: int, line: int) -> Section:
    found = _marker_line().fullmatch(marker[0])
    if found is None:
        raise Unreadable("the marker of a chunk can't be read", line)
    number, first, last = (int(found[part]) for part in (1, 2, 3))
    if first > last:
        raise Unreadable("the lines of a chunk end before they begin", line)
    return Section(
        number=number,
        lines=(first, last),
        path=_uncommented(found[4] or ""),
        start=marker.start(),
        text=min(marker.end() + 1, len(text)),
        end=end,
    )


@cache
def _markers() -> re.Pattern[str]:
    return re.compile(rf"^(?=(\\*)){_LOOKS_LIKE_MARKER}.*$", re.MULTILINE | re.IGNORECASE)


@cache
def _marker_line() -> re.Pattern[str]:
    number = r"([1-9]\d{0,8})"
    return re.compile(
        rf"<!-- chunk {number} lines {number}-{number} -->(?:[ \t]*<!-- (.+) -->)?[ \t\r]*",
        re.ASCII,
    )


@cache
def _to_escape() -> re.Pattern[str]:
    return re.compile(rf"^(?={_LOOKS_LIKE_MARKER})", re.MULTILINE | re.IGNORECASE)


@cache
def _escaped() -> re.Pattern[str]:
    return re.compile(rf"^\\(?={_LOOKS_LIKE_MARKER})", re.MULTILINE | re.IGNORECASE)
