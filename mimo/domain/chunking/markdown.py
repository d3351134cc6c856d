"""Markdown, cut at its headings as a Markdown parser finds them: never in a fence or a list."""

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from mimo.domain.chunking.model import Layout, Part, Stretch, trimmed
from mimo.domain.chunking.prose import cut_prose
from mimo.domain.codec.document import header_end

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_PROSE = ("paragraph_open", "heading_open")


class _Block(NamedTuple):
    """A block of the outermost level, up to where the next one begins."""

    start: int
    end: int
    own_end: int
    """Where it ends itself; blank lines and link definitions may follow."""
    level: int
    """Of a heading; 0 for any other block."""
    title: str
    is_prose: bool


def markdown(text: str) -> Layout:
    """Returns the sections of a Markdown text; a section is a heading and what follows it.

    A heading without text of its own goes with the first section below it.
    """
    blocks = _blocks(text)
    head = header_end(text)
    title = _header_title(text[:head])
    parts: list[Part] = []
    start, path, said = 0, [(0, title)] if title else [], False
    for block in blocks:
        if block.level:
            deeper = not path or path[-1][0] < block.level
            if said or not deeper:
                parts.append(Part(start, block.start, _titles(path)))
                start = block.start
            path = [one for one in path if one[0] < block.level] + [(block.level, block.title)]
        said = not block.level
    parts.append(Part(start, len(text), _titles(path)))
    found = [part._replace(start=s, end=e) for part, s, e in _bounds(text, parts) if s < e]
    solid = [(block.start, block.own_end) for block in blocks if not block.is_prose]
    return Layout(found, cut=_Sections(blocks), solid=solid)


class _Sections:
    """Cuts a section between its blocks, and its paragraphs between their sentences."""

    def __init__(self, blocks: Sequence[_Block]) -> None:
        """Take the blocks of the whole text."""
        self._blocks = blocks

    def __call__(self, text: str, start: int, end: int, size: int) -> list[Stretch]:
        """Returns the pieces of one section."""
        inside = [block for block in self._blocks if start <= block.start < end]
        first = inside[0].start if inside else end
        pieces = [] if not text[start:first].strip() else [trimmed(text, start, first)]
        headings: list[Stretch] = []
        for block in inside:
            stretch = trimmed(text, block.start, min(block.end, end))
            if block.level:
                headings.append(stretch)
                continue
            fits = not block.is_prose or stretch[1] - stretch[0] <= size
            smaller = [stretch] if fits else cut_prose(text, *stretch, size)
            if headings and smaller:
                # A heading stays with the text that it is of.
                smaller[0] = (headings[0][0], smaller[0][1])
            headings = []
            pieces += smaller
        return pieces + ([(headings[0][0], headings[-1][1])] if headings else [])


def _bounds(text: str, parts: Sequence[Part]) -> list[tuple[Part, int, int]]:
    return [(part, *trimmed(text, part.start, part.end)) for part in parts]


def _titles(path: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(title for _, title in path if title))


def _header_title(header: str) -> str:
    found = _title().search(header)
    return " ".join(found[1].strip().strip("\"'").split()) if found else ""


def _blocks(text: str) -> list[_Block]:
    """Returns the blocks of the outermost level, as the parser's source map has them."""
    head = header_end(text)
    # The parser would take a carriage return alone for the end of a line.
    tokens = _parser().parse(_lone_return().sub(" ", text[head:]))
    starts = _line_starts(text, head)
    marks = []
    for number, token in enumerate(tokens):
        if token.level == 0 and token.map and token.nesting >= 0:
            level = int(token.tag[1]) if token.type == "heading_open" else 0
            title = " ".join(tokens[number + 1].content.split()) if level else ""
            marks.append((token.map, level, title, token.type in _PROSE))
    ends = [starts[lines[0]] for lines, *_ in marks[1:]] + [len(text)] * bool(marks)
    return [
        _Block(starts[lines[0]], end, starts[lines[1]], level, title, is_prose)
        for (lines, level, title, is_prose), end in zip(marks, ends, strict=True)
    ]


def _line_starts(text: str, start: int) -> list[int]:
    """Returns where each line begins, and the end of the text as if there were some more."""
    starts = [start]
    while (found := text.find("\n", starts[-1])) >= 0:
        starts.append(found + 1)
    return [*starts, len(text), len(text)]


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


@cache
def _lone_return() -> re.Pattern[str]:
    return re.compile(r"\r(?!\n)")


@cache
def _title() -> re.Pattern[str]:
    return re.compile(r"^title[ \t]*[:=][ \t]*(\S.*)$", re.MULTILINE)
