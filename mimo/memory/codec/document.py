"""A file taken apart: byte order mark, header and body; sections, title and links of the body."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any, Literal

from mimo.frozen import field, frozen
from mimo.memory.model import Section, Version
from mimo.memory.naming import VAULT, properties, without_vault
from mimo.text.clean import compiled
from mimo.text.phrases import plain_line

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

MAX_FILE_BYTES = 1024 * 1024
"""Largest file that is read as a memory."""

MAX_SOURCE_BYTES = 128 * 1024 * 1024
"""Largest file of a source; ingested files are far smaller, but chunks may overlap."""

_POINTERS = (b"version https://git-lfs.github.com/spec/", b"/annex/objects/")
_SOURCES = (".mind/sources/", ".mind/private/sources/")

MAX_HEADER_BYTES = 64 * 1024

CONFLICT = "a merge conflict of git that is not resolved begins on this line"
CONFLICT_START = r"(?m)<{7,}(?: .*)?\r?$"
"""The first marker of a conflict, by git or jj, which write longer ones around another conflict."""
"""The reason for which a file with both versions of a text is not read as a memory."""

DEEPEST = 100
"""The level of lists and quotes within each other that is read; a list has two for each item.

Below its deepest level, markdown-it skips the rest of a text.
"""

MOST_STEPS = 300_000
"""The most steps of reading Markdown; a megabyte of prose takes about a third of them."""

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
    """A file that can't be read as a memory; `line` is 1-based, or None for the whole file."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        """Keeps the reason and the line."""
        super().__init__(reason)
        self.reason = reason
        self.line = line


def limit_steps(parser: MarkdownIt, most: int = MOST_STEPS) -> MarkdownIt:
    """Returns the parser, which raises `Unreadable` for a text that takes more steps or tokens.

    A line takes a step at each level of lists and quotes around it, so that few bytes can take
    hours. An `env` that several texts share counts the steps of all of them.
    """

    def step(state: Any, *_: object) -> bool:
        steps = state.env.setdefault("steps", count())
        if next(steps) >= most or len(state.tokens) > most:
            raise Unreadable("its lists, quotes, tables and marks take too long to read")
        return False

    enclosing = ["paragraph", "reference", "blockquote", "list"]
    parser.block.ruler.before("table", "steps", step, {"alt": enclosing})
    parser.inline.ruler.before("text", "steps", step)
    return parser


def is_formatted_soon(text: str) -> bool:
    """Returns whether a library that parses Markdown itself takes less than a second for a text."""
    from markdown_it import MarkdownIt

    parser = limit_steps(MarkdownIt().enable(["strikethrough", "table"]), 60_000)
    with suppress(Unreadable):
        parser.parse(text)
        return True
    return False


@frozen
class Document:
    """The unchanged text of a file, and the places of its header and body."""

    text: str
    """Without the byte order mark."""
    bom: bool = False
    newline: str
    """The end of the file's lines: `\\r\\n` if the header or all lines end so, else `\\n`."""
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
        """Returns the text after the header."""
        return self.text[self.body_start :]

    @property
    def body_line(self) -> int:
        """Returns the 1-based line of the file on which the body begins."""
        return self.text.count("\n", 0, self.body_start) + 1

    @property
    def looks_like_header(self) -> bool:
        """Returns whether this was meant as a header, not as a rule with prose below it."""
        return _begins_with_key(self.header, "+++" if self.syntax == "toml" else "---")

    def without_header(self) -> Document:
        """Returns the same text as a body without a header."""
        return Document(text=self.text, bom=self.bom, newline=_newline(self.text))


def is_empty(data: bytes) -> bool:
    """Returns whether a file has no text: it is blank, or a pointer of git-lfs or git-annex."""
    return data.startswith(_POINTERS) or not data.removeprefix(b"\xef\xbb\xbf").strip()


def is_source(path: str) -> bool:
    """Returns whether a file is in a folder for sources."""
    return path.startswith(_SOURCES)


def decode(data: bytes, limit: int = MAX_FILE_BYTES) -> tuple[str, bool]:
    """Returns the text of a file and whether it began with a byte order mark.

    Raises `Unreadable` unless it is UTF-8 text within the limit.
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


def split(data: bytes, limit: int = MAX_FILE_BYTES, *, lenient: bool = False) -> Document:
    """Returns the parts of a file; if `lenient`, a header that is not closed is text.

    A header begins with `---` or `+++` on the first line and ends with the same (or `...`) on a
    line of its own. The text between may also be prose between two rules: the reader of the
    header decides. Raises `Unreadable`.
    """
    text, bom = decode(data, limit)
    opening = _OPENING.match(text)
    closing = _CLOSING[opening[1]].search(text, opening.end()) if opening else None
    if opening is None or closing is None:
        if opening and not lenient and _begins_with_key(text[opening.end() :], opening[1]):
            raise Unreadable(f"the header is not closed: no line `{opening[1]}` ends it", 1)
        return Document(text=text, bom=bom, newline=_newline(text))
    return Document(
        text=text,
        bom=bom,
        newline=opening[2],
        syntax="yaml" if opening[1] == "---" else "toml",
        header_start=opening.end(),
        header_end=closing.start(),
        body_start=closing.end(),
    )


def header_end(text: str) -> int:
    """Returns the start of the body of a Markdown text: 0 if it has no header."""
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


# The parts of a body: content, sections and competing versions.

_NAMES = "|".join(re.escape(section.value) for section in Section)
_COMPETING = r"Competing: (\S(?:.*\S)?)"
_SECTION_HEADING = re.compile(rf"## (?:({_NAMES})|{_COMPETING})[ \t\r]*")
_LOOKS_LIKE_SECTION = re.compile(rf"\\*## (?:{_NAMES}|{_COMPETING})[ \t\r]*")
_ESCAPED = re.compile(rf"\\+## (?:{_NAMES}|{_COMPETING})[ \t\r]*")
BLANK = " \t\r\n"


@frozen
class Part:
    """A stretch of lines: `start` to `end` without the blank lines around it."""

    start: int
    end: int
    text: str
    heading: int | None = None
    """The line of its heading; None for the content."""


@frozen
class Layout:
    """The lines of a body, without their ends, and the parts that they belong to."""

    lines: Sequence[str]
    content: Part
    sections: Mapping[Section, Part] = field(default_factory=dict)
    competing: Sequence[tuple[str, Part]] = ()
    """The field of each competing version, and its place."""

    @property
    def texts(self) -> dict[Section, str]:
        """Returns the text of each section that is not empty."""
        return {section: part.text for section, part in self.sections.items() if part.text}

    @property
    def versions(self) -> tuple[Version, ...]:
        """Returns the competing versions, each once."""
        versions = (Version(field=name, text=part.text) for name, part in self.competing)
        return tuple(dict.fromkeys(versions))


def layout_of(body: str, *, newline: str, sections: bool, competing: bool = True) -> Layout:
    """Returns the parts of a body.

    Without `sections`, headings of sections belong to the content; without `competing`, so do
    headings of competing versions.
    """
    lines = body.split(newline) if newline == "\n" else body.replace(newline, "\n").split("\n")
    starts: dict[Section, int] = {}
    versions: list[tuple[str, int]] = []
    for number, line in enumerate(lines):
        if not line.startswith("## ") or not (heading := _SECTION_HEADING.fullmatch(line)):
            continue
        if heading[1] is None and competing:
            versions.append((heading[2], number))
        elif heading[1] and sections:
            # A second heading of the same name is text, so that nothing is lost.
            starts.setdefault(Section(heading[1]), number)
    bounds = [*sorted([*starts.values(), *(number for _, number in versions)]), len(lines)]
    ends = dict(pairwise(bounds))
    return Layout(
        lines=lines,
        content=_part(lines, 0, bounds[0], escaped=sections),
        sections={s: _part(lines, n + 1, ends[n], heading=n) for s, n in starts.items()},
        competing=[(name, _part(lines, n + 1, ends[n], heading=n)) for name, n in versions],
    )


def render_body(
    content: str,
    sections: Mapping[Section, str],
    competing: Sequence[Version] = (),
    *,
    escaped: bool = True,
) -> str:
    """Returns the body of a new file: the content, then each section under its heading."""
    parts = [escape(content) if escaped else content] if content else []
    parts += [f"## {name}\n{escape(sections[name])}" for name in Section if sections.get(name, "")]
    for version in competing:
        heading = f"## Competing: {version.field}"
        parts.append(f"{heading}\n{escape(version.text)}" if version.text else heading)
    return "\n\n".join(parts) + "\n" if parts else ""


def trim(text: str) -> str:
    """Returns `text` without blank lines at its start and end."""
    lines = text.split("\n")
    start, end = _extent(lines, 0, len(lines))
    return "\n".join(lines[start:end])


def escape(text: str) -> str:
    """Returns `text` with a backslash before each line that would begin a section."""
    return "\n".join(
        f"\\{line}" if _LOOKS_LIKE_SECTION.fullmatch(line) else line for line in text.split("\n")
    )


def unescape(line: str) -> str:
    """Returns a line without the backslash of `escape`."""
    return line[1:] if line.startswith("\\") and _ESCAPED.fullmatch(line) else line


def _part(
    lines: Sequence[str], start: int, end: int, *, heading: int | None = None, escaped: bool = True
) -> Part:
    start, end = _extent(lines, start, end)
    inner = lines[start:end]
    text = "\n".join(map(unescape, inner) if escaped else inner)
    return Part(start=start, end=end, text=text, heading=heading)


def _extent(lines: Sequence[str], start: int, end: int) -> tuple[int, int]:
    """Returns `start` and `end` without blank lines; an empty part is at its `start`."""
    top, bottom = start, end
    while top < bottom and not lines[top].strip(BLANK):
        top += 1
    while bottom > top and not lines[bottom - 1].strip(BLANK):
        bottom -= 1
    return (top, bottom) if top < bottom else (start, start)


# Title and links of Markdown text.

_FENCE = re.compile(r"([ \t>]*)(`{3,}|~{3,})([^\r]*)")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]++([^\r]*))?\r?")
_SETEXT = re.compile(r" {0,3}(?:=+|-+)[ \t]*\r?")
_REFERENCE = re.compile(
    # In a table, the bar has a backslash before it.
    r"(?<!!)\[\[([^\s\[\]|#^][^\[\]|#^\r]*?)(?:[#^][^\[\]|]*)?"
    r"(?:\\?\|([^\[\]#^]*)[^\[\]]*)?\]\]"
)


def prose_lines(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yields the 0-based number and text of each line outside fenced code and HTML comments."""
    fence, quoted, comment = "", False, False
    for number, line in enumerate(lines):
        if comment:
            comment = "-->" not in line
            continue
        mark = _FENCE.match(line)
        if quoted and not line.lstrip(" \t").startswith(">"):
            fence, quoted = "", False  # The code ends with its quotation.
        if fence:
            is_same = mark and mark[2].startswith(fence) and (">" in mark[1]) == quoted
            if mark and is_same and not mark[3].strip():
                fence, quoted = "", False
        elif mark and not (mark[2][0] == "`" and "`" in mark[3]):
            fence, quoted = mark[2], ">" in mark[1]
        elif line.lstrip(" ").startswith("<!--"):
            comment = "-->" not in line
        else:
            yield number, line


def conflict_line(text: str) -> int | None:
    """Returns the 1-based line on which a conflict of git or jj begins that is not resolved.

    None if there is none: markers of the same length must follow each other, and the first one must
    be outside fenced code, since texts about git show them in a fence, or a single one.
    """
    if "<<<<<<<" not in text:
        return None
    lines = text.split("\n")
    starts = {
        number
        for number, line in prose_lines(lines)
        if line.startswith("<<<<<<<") and compiled(CONFLICT_START).fullmatch(line)
    }
    conflicts: list[int] = []
    opened: dict[int, tuple[int, bool]] = {}  # By length: the line, and whether a side follows.
    # A side may begin a fence, so that the other markers look like code.
    for number, line in enumerate(lines) if starts else ():
        mark = line.rstrip("\r").partition(" ")[0]
        size = len(mark)
        if number in starts:
            opened[size] = number + 1, False
        elif size in opened:
            start, has_side = opened[size]
            if mark == "<" * size:
                del opened[size]
            elif mark in (sign * size for sign in "=%+-"):
                # Git has `=`; jj has `%` for a change, and `+` and `-` for its sides.
                opened[size] = start, True
            elif has_side and mark == ">" * size:
                conflicts.append(start)
    return min(conflicts, default=None)


def without_comments(line: str) -> str:
    """Returns a line without the HTML comments that it closes."""
    closed, mark, tail = line.rpartition("-->")
    return re.sub(r"<!--.*?-->", "", closed + mark) + tail


def title(content: str) -> str | None:
    """Returns the text of the first heading of level 1, or else of a heading that opens `content`.

    A lower heading after other text is the title of a part, not of the whole. Logseq's property
    `title::` takes precedence.
    """
    if "::" in content and (title := properties(content).get("title")):
        return title
    lines = content.split("\n")
    opening = None
    for position, (number, line) in enumerate(prose_lines(lines)):
        level, text = heading(lines, number, line)
        text = plain_line(text) if level else ""
        if level == 1 and text:
            return text
        if position == 0 and text:
            opening = text
    return opening


def references(text: str, *, is_swapped: bool = False) -> tuple[str, ...]:
    """Returns the targets of all `[[target]]` and `[[target|label]]` outside code, each once.

    With `is_swapped`, as in Dendron, of all `[[label|target]]`.
    """
    if "[[" not in text:
        return ()
    targets: dict[str, None] = {}
    for _, line in prose_lines(text.split("\n")):
        for hit in _REFERENCE.finditer(_without_code(line)) if "[[" in line else ():
            target, label = hit[1].strip(), (hit[2] or "").strip()
            if label and (is_swapped or label.startswith(VAULT)):
                target = label
            targets[without_vault(target)] = None
    targets.pop("", None)
    return tuple(targets)


def heading(lines: Sequence[str], number: int, line: str) -> tuple[int, str]:
    """Returns the level and text of a heading; level 0 for another line."""
    if atx := _ATX.fullmatch(line):
        text = " ".join((atx[2] or "").split())
        bare = text.rstrip("#")
        return len(atx[1]), bare.rstrip() if not bare or bare[-1] in " \t" else text
    below = lines[number + 1] if number + 1 < len(lines) else ""
    starts = number == 0 or not lines[number - 1].strip()
    if line.strip() and starts and _SETEXT.fullmatch(below) and not line.startswith(("    ", "\t")):
        return (1 if "=" in below else 2), " ".join(line.split())
    return 0, ""


def _without_code(line: str) -> str:
    """Returns a line without code spans, which are enclosed in runs of equally many backticks."""
    runs = [(run.start(), run.end()) for run in re.finditer("`+", line)]
    by_length: dict[int, list[int]] = {}
    for start, end in runs:
        by_length.setdefault(end - start, []).append(start)
    pieces, position = [], 0
    for start, end in runs:
        if start < position:
            continue
        same = by_length[end - start]
        after = bisect_right(same, start)
        if after < len(same):
            pieces.append(line[position:start])
            position = same[after] + end - start
    return " ".join([*pieces, line[position:]])
