"""Chunking: a text -> exact stretches of it, with their lines, that become memories."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from mimo.memory.chunking.model import (
    LEAST,
    Chunk,
    Chunking,
    Layout,
    Part,
    Strategy,
    Stretch,
    by_lines,
    by_words,
    detected,
    fitting,
    has_triple_quotes,
    is_code,
    overlapping,
    sized,
    trimmed,
)
from mimo.memory.codec.document import header_end

if TYPE_CHECKING:
    from markdown_it import MarkdownIt


# Paragraphs and sentences of plain text.

_CLOSING = "\"')\\]}*_`\u00bb\u201d\u2019\u300d\u300f\uff09\u3011\u3009\u300b"
_OPENING = "\"'([{*_`\u00ab\u201c\u2018\u300c\u300e\uff08"

_ALWAYS_SHORT = frozenset(
    "e.g i.e eg ie cf viz vs al approx ca dr mr mrs ms prof st mt sr rev hon gen col capt lt sgt "
    "dept est incl excl resp z.b d.h u.a bzw usw ggf evtl vgl nr bspw p.ej ph.d".split()
)
"""Abbreviations, without their last full stop, that do not end a sentence."""

_SHORT_BEFORE_NUMBERS = frozenset(
    "no nos fig figs eq eqs sec ch vol p pp art par ver v tab table ex approx rev".split()
)
"""Abbreviations that do not end a sentence before a number."""


def paragraphs(text: str) -> Layout:
    """Returns the paragraphs of a text, which blank lines separate."""
    parts = [Part(*stretch) for stretch in by_paragraphs(text, 0, len(text), 0)]
    return Layout(parts, cut=cut_prose, packs=True)


def sentences(text: str) -> Layout:
    """Returns the sentences of a text."""
    parts = [Part(*stretch) for stretch in _by_paragraphs_and_sentences(text)]
    return Layout(parts, cut=cut_prose, packs=True)


def cut_prose(text: str, start: int, end: int, size: int) -> list[Stretch]:
    """Returns a stretch of prose in sentences, and too long sentences in words."""
    return list(fitting(text, start, end, size, (by_paragraphs, by_sentences, by_words)))


def by_paragraphs(text: str, start: int, end: int, _: int) -> list[Stretch]:
    """Returns the stretches between blank lines."""
    parts = []
    for blank in _blank_lines().finditer(text, start, end):
        parts.append(trimmed(text, start, blank.start()))
        start = blank.end()
    return [part for part in (*parts, trimmed(text, start, end)) if part[0] < part[1]]


def by_sentences(text: str, start: int, end: int, _: int) -> list[Stretch]:
    """Returns the sentences of a paragraph; each item of a list begins one."""
    pieces = []
    for stop in (*_sentence_ends(text, start, end), end):
        first, last = trimmed(text, start, stop)
        while first < last and text[first].isspace():
            first += 1
        if first < last:
            pieces.append((first, last))
        start = stop
    return pieces


def _by_paragraphs_and_sentences(text: str) -> Iterator[Stretch]:
    for start, end in by_paragraphs(text, 0, len(text), 0):
        yield from by_sentences(text, start, end, 0)


def _sentence_ends(text: str, start: int, end: int) -> Iterator[int]:
    for match in _stops().finditer(text, start, end):
        if match["stop"] is None or _ends_sentence(text, match, start):
            start = match.end()
            yield start


def _ends_sentence(text: str, match: re.Match[str], start: int) -> bool:
    """Returns whether a full stop (or the like) followed by a space ends a sentence."""
    following = _next(text, match.end())
    if following.islower():
        return False
    if match["stop"] != ".":
        return True
    before = _last_word().search(text, max(start, match.start() - 30), match.start())
    word = before[0].lower() if before else ""
    at_start = before is not None and not text[start : before.start()].strip()
    if word in _ALWAYS_SHORT or (following.isdigit() and word in _SHORT_BEFORE_NUMBERS):
        return False
    # An initial (J. Smith), U.S., and the number of an item.
    return not (_initials().fullmatch(word) or (at_start and word.isdigit()))


def _next(text: str, position: int) -> str:
    """Returns the first character from `position` on, except spaces, quotes and brackets."""
    for character in text[position : position + 80]:
        if not character.isspace() and character not in _OPENING:
            return character
    return ""


@cache
def _blank_lines() -> re.Pattern[str]:
    return re.compile(r"\r?\n(?:[ \t]*\r?\n)+")


@cache
def _stops() -> re.Pattern[str]:
    return re.compile(
        rf"(?P<stop>[.!?…]+)[{_CLOSING}]*(?=\s)"
        rf"|[\u3002\uff01\uff1f\uff61\u0964]+[{_CLOSING}]*"
        r"|\n(?=[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t])"
    )


@cache
def _last_word() -> re.Pattern[str]:
    return re.compile(r"[^\W_](?:[\w.]*[^\W_])?$")


@cache
def _initials() -> re.Pattern[str]:
    return re.compile(r"[^\W\d_](?:\.[^\W\d_])*")


# Source code, cut at blank lines outside functions.

_TAB = 4


class _Above(NamedTuple):
    """A line with a smaller indentation than the lines below it."""

    indent: int
    opens: bool
    """True if it opens a container such as a class, whose members are separate blocks."""


def code(text: str, *, triple_quotes: bool) -> Layout:
    """Returns functions and other blocks that blank lines separate.

    With `triple_quotes`, blank lines within triple quotes do not count.
    """
    blocks: list[Part] = []
    above: list[_Above] = []
    fresh = True
    for start, end, quoted in _code_lines(text, triple_quotes=triple_quotes):
        line = text[start:end]
        if not line.strip():
            fresh = fresh or not quoted
            continue
        if not quoted:
            joins = _step_into(above, line)
            if fresh and not joins:
                blocks.append(Part(start, end))
            fresh = False
        blocks = blocks or [Part(start, end)]
        blocks[-1] = blocks[-1]._replace(end=end)
    parts = [Part(*trimmed(text, part.start, part.end)) for part in blocks]
    return Layout(parts, cut=_smaller, packs=True)


def _smaller(text: str, start: int, end: int, size: int) -> list[Stretch]:
    return list(fitting(text, start, end, size, (by_paragraphs, by_lines, by_words)))


def _code_lines(text: str, *, triple_quotes: bool) -> Iterator[tuple[int, int, bool]]:
    """Yields start and end of each line, and whether it begins within triple quotes."""
    start, open_quote = 0, ""
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield start, end, bool(open_quote)
        if triple_quotes:
            open_quote = _quote_after(text, start, end, open_quote)
        start = end + 1


def _quote_after(text: str, start: int, end: int, open_quote: str) -> str:
    """Returns the triple quotes that are open at the end of a line."""
    for match in _triple().finditer(text, start, end):
        if not open_quote:
            open_quote = match[0]
        elif open_quote == match[0]:
            open_quote = ""
    return open_quote


def _step_into(above: list[_Above], line: str) -> bool:
    """Returns whether a line belongs to a line above it, and adds it to those."""
    bare = line.strip()
    indent = len(line.expandtabs(_TAB)) - len(line.expandtabs(_TAB).lstrip())
    opens = _container().match(bare) is not None
    while above and above[-1].indent >= indent:
        # A brace on its own line opens the container of the previous line.
        opens = opens or (bare == "{" and above[-1].indent == indent and above[-1].opens)
        above.pop()
    joins = not all(line_above.opens for line_above in above) or _joining().match(bare) is not None
    above.append(_Above(indent, opens))
    return joins


@cache
def _triple() -> re.Pattern[str]:
    return re.compile(r"\"\"\"|'''")


@cache
def _container() -> re.Pattern[str]:
    modifiers = (
        "export|default|public|private|protected|internal|abstract|final|sealed|static|partial|"
        "pub|open|data|unsafe|declare"
    )
    words = (
        "class|interface|trait|impl|struct|enum|module|defmodule|namespace|object|extension|mod|"
        "protocol|record"
    )
    return re.compile(rf"(?:(?:{modifiers})(?:\([^)]*\))?\s+)*(?:{words})\b")


@cache
def _joining() -> re.Pattern[str]:
    """Returns the pattern of the start of a line that continues the previous block."""
    return re.compile(r"[{})\]]|(?:end|else|elif|elsif|except|finally|catch|rescue|then)\b")


# Markdown, cut at the headings that a Markdown parser finds, never in a fence or a list.

_PROSE = ("paragraph_open", "heading_open")


class _Block(NamedTuple):
    """A block of the outermost level, up to the start of the next one."""

    start: int
    end: int
    own_end: int
    """Its own end; blank lines and link definitions may follow."""
    level: int
    """Of a heading; 0 for any other block."""
    title: str
    is_prose: bool


def markdown(text: str) -> Layout:
    """Returns the sections of a Markdown text: a heading and the text below it.

    A heading without text is part of the first section below it.
    """
    blocks = _blocks(text)
    head = header_end(text)
    title = _header_title(text[:head])
    parts: list[Part] = []
    start, path, has_text = 0, [(0, title)] if title else [], False
    for block in blocks:
        if block.level:
            deeper = not path or path[-1][0] < block.level
            if has_text or not deeper:
                parts.append(Part(start, block.start, _titles(path)))
                start = block.start
            path = [entry for entry in path if entry[0] < block.level] + [
                (block.level, block.title)
            ]
        has_text = not block.level
    parts.append(Part(start, len(text), _titles(path)))
    sections = [part._replace(start=s, end=e) for part, s, e in _bounds(text, parts) if s < e]
    solid = [(block.start, block.own_end) for block in blocks if not block.is_prose]
    return Layout(sections, cut=_Sections(blocks), solid=solid)


class _Sections:
    """Cuts a section between its blocks, and its paragraphs between their sentences."""

    def __init__(self, blocks: Sequence[_Block]) -> None:
        """Keep the blocks of the whole text."""
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
                # A heading stays with its text.
                smaller[0] = (headings[0][0], smaller[0][1])
            headings = []
            pieces += smaller
        return pieces + ([(headings[0][0], headings[-1][1])] if headings else [])


def _bounds(text: str, parts: Sequence[Part]) -> list[tuple[Part, int, int]]:
    return [(part, *trimmed(text, part.start, part.end)) for part in parts]


def _titles(path: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(title for _, title in path if title))


def _header_title(header: str) -> str:
    match = _title().search(header)
    return " ".join(match[1].strip().strip("\"'").split()) if match else ""


def _blocks(text: str) -> list[_Block]:
    """Returns the blocks of the outermost level, from the parser's source map."""
    head = header_end(text)
    # The parser would read a lone carriage return as a line end.
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
    """Returns the start of each line, then the end of the text twice for lines beyond it."""
    starts = [start]
    while (place := text.find("\n", starts[-1])) >= 0:
        starts.append(place + 1)
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


def chunks(text: str, chunking: Chunking, name: str) -> list[Chunk]:
    """Returns the chunks of a text from a file of that name, in their order.

    The strategy is not `auto` (see `resolved`). Each chunk is an unchanged stretch of `text`;
    chunks with fewer than ten characters are left out.
    """
    layout = _layout(text, chunking, name)
    parts = list(layout.parts)
    if chunking.strategy is not Strategy.WHOLE:
        if chunking.chunk_size is not None:
            parts = sized(text, layout, chunking.chunk_size - chunking.overlap)
        parts = [part for part in parts if len(text[part.start : part.end].strip()) >= LEAST]
        if chunking.overlap:
            parts = overlapping(text, parts, chunking.overlap, layout.solid)
    elif len(text.strip()) < LEAST:
        parts = []
    return _with_lines(text, parts)


def resolved(chunking: Chunking, name: str) -> Chunking:
    """Returns `chunking` with the strategy for a file of that name instead of `auto`."""
    if chunking.strategy is not Strategy.AUTO:
        return chunking
    return replace(chunking, strategy=detected(name))


def _layout(text: str, chunking: Chunking, name: str) -> Layout:
    match chunking.strategy:
        case Strategy.MARKDOWN:
            return markdown(text)
        case Strategy.SENTENCES:
            return sentences(text)
        case Strategy.LINES:
            return _lines(text, chunking.lines_per_chunk)
        case Strategy.WHOLE:
            return Layout([Part(0, len(text))])
        case _ if is_code(name):
            return code(text, triple_quotes=has_triple_quotes(name))
        case _:
            return paragraphs(text)


def _lines(text: str, number: int) -> Layout:
    """Returns parts of a number of lines, including blank ones."""
    ends = [place + 1 for place in _line_ends(text)]
    starts = [0, *ends][::number]
    parts = [
        Part(*trimmed(text, start, end))
        for start, end in zip(starts, [*starts[1:], len(text)], strict=True)
    ]
    return Layout(parts, cut=_cut_lines)


def _cut_lines(text: str, start: int, end: int, size: int) -> list[Stretch]:
    return list(fitting(text, start, end, size, (by_lines, by_words)))


def _with_lines(text: str, parts: Sequence[Part]) -> list[Chunk]:
    ends = _line_ends(text)
    return [
        Chunk(
            text=text[part.start : part.end],
            first_line=bisect_right(ends, part.start - 1) + 1,
            last_line=bisect_right(ends, part.end - 2) + 1,
            path=part.path,
        )
        for part in parts
    ]


def _line_ends(text: str) -> list[int]:
    """Returns the places of the line feeds."""
    ends = []
    place = text.find("\n")
    while place >= 0:
        ends.append(place)
        place = text.find("\n", place + 1)
    return ends
