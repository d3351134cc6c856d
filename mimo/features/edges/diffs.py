"""The lines that a unified diff, or a whole file, adds."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")
_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_ESCAPED = re.compile(r'\\([0-7]{3}|[abtnvfr"\\])')
_LONGEST_LINE = 10_000
"""Characters of a line that are checked; longer lines are generated."""


class Hunk(NamedTuple):
    """Consecutive lines of a file."""

    start: int
    """The 1-based line of the first."""
    lines: tuple[str, ...]


class Added(NamedTuple):
    """The lines that a change adds to a file."""

    path: str
    hunks: tuple[Hunk, ...]


def whole(path: str, text: str) -> Added:
    """Returns all lines of a file as added."""
    lines = tuple(line[:_LONGEST_LINE] for line in text.split("\n"))
    return Added(path=path, hunks=(Hunk(start=1, lines=lines),))


def is_diff(text: str) -> bool:
    """Returns whether a text is a unified diff."""
    return re.search(r"^--- .*\n\+\+\+ .*\n@@ -\d", text, re.MULTILINE) is not None


def parse(text: str) -> Iterator[Added]:
    """Yields the lines that a unified diff adds to each file; none for removed and binary files."""
    path, hunks = "", list[Hunk]()
    lines = iter(text.split("\n"))
    for line in lines:
        if line.startswith("+++ "):
            if path and hunks:
                yield Added(path=path, hunks=tuple(hunks))
            path, hunks = _path(line[4:]), []
        elif path and (found := _HUNK.match(line)):
            hunks += _hunks(lines, int(found[1]), int(found[2] or 1), line)
    if path and hunks:
        yield Added(path=path, hunks=tuple(hunks))


def _hunks(lines: Iterator[str], number: int, new: int, head: str) -> list[Hunk]:
    """Returns the runs of added lines of one hunk; its length is in its header."""
    counted = re.match(r"@@ -\d+(?:,(\d+))?", head)
    old = int(counted[1] or 1) if counted else 0
    found: list[Hunk] = []
    run: list[str] = []
    start = number
    while old > 0 or new > 0:
        line = next(lines, None)
        if line is None:
            break
        mark = line[:1]
        if mark == "+":
            start = number if not run else start
            run.append(line[1 : _LONGEST_LINE + 1].removesuffix("\r"))
            number, new = number + 1, new - 1
            continue
        if run and mark != "\\":
            found.append(Hunk(start=start, lines=tuple(run)))
            run = []
        if mark == "-":
            old -= 1
        elif mark != "\\":
            number, old, new = number + 1, old - 1, new - 1
    return [*found, Hunk(start=start, lines=tuple(run))] if run else found


def _path(line: str) -> str:
    """Returns the path in a `+++` line, without `b/`; empty for a removed file."""
    name = line.rstrip("\r").split("\t")[0]
    if name.startswith('"') and name.endswith('"'):
        name = _unquoted(name[1:-1])
    if name == "/dev/null":
        return ""
    return name.removeprefix("b/")


def _unquoted(text: str) -> str:
    """Returns a path without git's quotes and escapes."""

    def byte(found: re.Match[str]) -> bytes:
        code = found[1]
        return bytes([_ESCAPES[code] if code in _ESCAPES else int(code, 8) & 255])

    data, position = b"", 0
    for found in _ESCAPED.finditer(text):
        data += text[position : found.start()].encode("utf-8", "surrogateescape") + byte(found)
        position = found.end()
    return (data + text[position:].encode("utf-8", "surrogateescape")).decode("utf-8", "replace")
