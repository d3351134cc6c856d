"""Chunking: a text -> exact stretches of it, with their lines, that become memories."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING
from unicodedata import combining, east_asian_width

from mimo.errors import Invalid
from mimo.frozen import NamedTuple, frozen, replace
from mimo.memory.codec.document import DEEPEST, Unreadable, header_end, limit_steps
from mimo.text.clean import compiled

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

LINES = 50
"""Default number of lines in a chunk."""

SMALLEST = 20
"""The smallest size of chunks that a caller may ask for."""

_LEAST = 10
"""Chunks with fewer characters, without surrounding white space, are left out."""
_WIDE = 4
"""The characters of English that one of Chinese, Japanese or Korean counts as there."""


class Strategy(StrEnum):
    """Strategies of cutting a text."""

    AUTO = "auto"
    PARAGRAPHS = "paragraphs"
    LINES = "lines"
    SENTENCES = "sentences"
    MARKDOWN = "markdown"
    WHOLE = "whole"


@frozen
class Chunking:
    """Options of cutting a text."""

    strategy: Strategy = Strategy.AUTO
    chunk_size: int | None = None
    """The target size in characters; None keeps the parts of the text."""
    overlap: int = 0
    """Most characters that a chunk repeats from the previous one."""
    lines_per_chunk: int = LINES

    @property
    def is_auto(self) -> bool:
        """Returns whether all options have their defaults."""
        return self == Chunking()


class Chunk(NamedTuple):
    """A chunk, exactly as in the text."""

    text: str
    first_line: int
    """1-based, in the text."""
    last_line: int
    path: tuple[str, ...] = ()
    """The headings above it, outermost first."""


def checked(chunking: Chunking) -> Chunking:
    """Returns `chunking`; raises `Invalid` for a small size, or an overlap of a whole chunk."""
    size, overlap = chunking.chunk_size, chunking.overlap
    if size is None:
        return chunking
    if overlap >= size:
        raise Invalid(
            f"`overlap` must be less than `chunk_size`: {overlap:,} is not less than {size:,}",
            hint="a tenth of the chunk size is a good overlap",
            details={"field": "overlap"},
        )
    if size < SMALLEST:
        raise Invalid(
            f"`chunk_size` must be at least {SMALLEST}, not {size:,}",
            hint="500 to 2,000 characters are a good size",
            details={"field": "chunk_size"},
        )
    return chunking


# Strategies by the ending of a file's name.

_BY_ENDING = {
    **dict.fromkeys("md markdown mdown mkd mdc mdx".split(), Strategy.MARKDOWN),
    **dict.fromkeys("json yaml yml toml xml html htm".split(), Strategy.WHOLE),
    **dict.fromkeys("csv tsv log jsonl ndjson".split(), Strategy.LINES),
}
_TRIPLE_QUOTES = frozenset("py pyi ex exs".split())
_CODE = _TRIPLE_QUOTES | frozenset(
    "js mjs cjs jsx ts tsx rb go rs java kt kts scala swift c cc cpp cxx h hh hpp cs m mm php pl "
    "pm lua r jl dart groovy clj erl hrl hs ml fs elm nim zig v sh bash zsh fish ps1 sql proto "
    "graphql tf vue svelte".split()
)

REFUSED = {
    "pdf": "a PDF",
    "doc": "a Word document",
    "docx": "a Word document",
    "odt": "an OpenDocument text",
    "rtf": "a rich text",
    "xls": "a spreadsheet",
    "xlsx": "a spreadsheet",
    "ods": "a spreadsheet",
    "ppt": "a presentation",
    "pptx": "a presentation",
    "odp": "a presentation",
    "epub": "an e-book",
    "ipynb": "a notebook",
}
"""Endings of documents that are not plain text, with names for them."""


def suffix(name: str) -> str:
    """Returns the ending of a file's name in lower case, without the dot."""
    return name.rpartition(".")[2].lower() if "." in name else ""


def resolved(chunking: Chunking, name: str) -> Chunking:
    """Returns `chunking` with the strategy for a file of that name instead of `auto`."""
    if chunking.strategy is not Strategy.AUTO:
        return chunking
    return replace(chunking, strategy=_BY_ENDING.get(suffix(name), Strategy.PARAGRAPHS))


# Cutting: each strategy finds the parts of a text, which a size makes smaller or larger.

Stretch = tuple[int, int]
"""The start and the end of a part of a text, in characters."""

Cut = Callable[[str, int, int, int], Sequence[Stretch]]
"""Cuts a stretch of a text into smaller ones, which may still exceed the size."""


class Part(NamedTuple):
    """A natural part of a text: a paragraph, a section, some lines."""

    start: int
    end: int
    path: tuple[str, ...] = ()
    """The headings above it, outermost first."""


class Layout(NamedTuple):
    """The parts of a text, and the ways to make them smaller or larger."""

    parts: Sequence[Part]
    cuts: Sequence[Cut] = ()
    """Cut a part that is too large, each one the pieces of the previous one."""
    packs: bool = False
    """True if neighbouring parts may share a chunk."""
    solid: Sequence[Stretch] = ()
    """Stretches that no chunk may begin within; sorted."""


def chunks(text: str, chunking: Chunking, name: str) -> list[Chunk]:
    """Returns the chunks of a text from a file of that name, in their order.

    The strategy is not `auto` (see `resolved`). Each chunk is an unchanged stretch of `text`.
    Parts of the text with fewer than ten characters are left out, unless a size combines them.
    """
    layout = layout_of(text, chunking, name)
    is_single = chunking.strategy is Strategy.WHOLE
    parts = list(layout.parts)
    if chunking.chunk_size is not None and not is_single:
        parts = _sized(text, layout, max(chunking.chunk_size - chunking.overlap, _LEAST))
    parts = [part for part in parts if not _is_short(text, part)]
    if chunking.overlap and not is_single:
        parts = _overlapping(text, parts, chunking.overlap, layout.solid)
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


def layout_of(text: str, chunking: Chunking, name: str) -> Layout:
    """Returns the parts of a text before their size is considered."""
    match chunking.strategy:
        case Strategy.MARKDOWN:
            return _markdown(text)
        case Strategy.LINES:
            starts = [0, *(place + 1 for place in _line_ends(text))][:: chunking.lines_per_chunk]
            bounds = pairwise([*starts, len(text)])
            parts = [Part(*_trimmed(text, start, end)) for start, end in bounds]
            return Layout(parts, cuts=(_by_lines, _by_words))
        case Strategy.WHOLE:
            return Layout([Part(0, len(text))])
        case Strategy.PARAGRAPHS if suffix(name) in _CODE:
            return _code(text, triple_quotes=suffix(name) in _TRIPLE_QUOTES)
    stretches = _by_paragraphs(text, 0, len(text), 0)
    if chunking.strategy is Strategy.SENTENCES:
        stretches = [inner for outer in stretches for inner in _by_sentences(text, *outer, 0)]
    return Layout([Part(*stretch) for stretch in stretches], cuts=_PROSE, packs=True)


def _sized(text: str, layout: Layout, size: int) -> list[Part]:
    """Returns the parts, cut if larger than `size` and packed if allowed.

    A cut leaves no piece that is too short for a chunk, so a chunk may exceed the size a little.
    """
    parts: list[Part] = []
    for part in layout.parts:
        cut = _fitting(text, part.start, part.end, size, layout.cuts)
        pieces = [Part(start, end, part.path) for start, end in cut]
        parts += pieces if layout.packs else _without_short(text, _packed(pieces, size))
    return _without_short(text, _packed(parts, size)) if layout.packs else parts


def _fitting(text: str, start: int, end: int, size: int, cuts: Sequence[Cut]) -> Iterator[Stretch]:
    """Yields a stretch in pieces of at most `size`, each by the first sufficient cut."""
    if end - start <= size or not cuts:
        yield start, end
        return
    for piece in cuts[0](text, start, end, size):
        yield from _fitting(text, *piece, size, cuts[1:])


def _packed(parts: Iterable[Part], size: int) -> list[Part]:
    """Returns the parts with as many neighbours as fit joined into one."""
    joined: list[Part] = []
    for part in parts:
        if joined and part.end - joined[-1].start <= size:
            joined[-1] = joined[-1]._replace(end=part.end)
        else:
            joined.append(part)
    return joined


def _without_short(text: str, parts: Iterable[Part]) -> list[Part]:
    """Returns the parts, each short one joined with the next, or the last one with the previous."""
    joined: list[Part] = []
    for part in parts:
        if joined and _is_short(text, joined[-1]):
            joined[-1] = joined[-1]._replace(end=part.end)
        else:
            joined.append(part)
    if joined[1:] and _is_short(text, joined[-1]):
        tail = joined.pop()
        joined[-1] = joined[-1]._replace(end=tail.end)
    return joined


def _is_short(text: str, part: Part) -> bool:
    """Returns whether a part has too few characters for a chunk."""
    content = text[part.start : part.end].strip()
    return len(content) < _LEAST and _length(content) < _LEAST


def _length(text: str) -> int:
    """Returns the number of characters, of which a wide one has as much to say as several."""
    return sum(_WIDE if east_asian_width(character) in "WF" else 1 for character in text)


def _overlapping(
    text: str, parts: Sequence[Part], overlap: int, solid: Sequence[Stretch]
) -> list[Part]:
    """Returns the parts, each with up to `overlap` characters of the previous one.

    The overlap begins with a whole word if possible, and never within a solid stretch.
    """
    result = list(parts[:1])
    waiting = list(reversed(solid))
    for previous, part in pairwise(parts):
        start = _word_start(text, max(part.start - overlap, previous.start), part.start)
        while waiting and waiting[-1][1] <= start:
            waiting.pop()
        if waiting and waiting[-1][0] < start:
            start = min(waiting[-1][1], part.start)
        while start < part.start and text[start].isspace():
            start += 1
        result.append(part._replace(start=start))
    return result


def _word_start(text: str, start: int, end: int) -> int:
    """Returns the first start of a word from `start` on, or `start` if there is none."""
    if start == 0 or text[start - 1].isspace():
        return start
    space = compiled(r"\s+").search(text, start, end)
    return space.end() if space and space.end() < end else start


def _trimmed(text: str, start: int, end: int) -> Stretch:
    """Returns a stretch without the blank lines before it and the white space after it."""
    while end > start and text[end - 1].isspace():
        end -= 1
    position = start
    while position < end and text[position].isspace():
        if text[position] == "\n":
            start = position + 1
        position += 1
    return start, end


def _line_ends(text: str, start: int = 0) -> list[int]:
    """Returns the places of the line feeds."""
    return [match.start() for match in compiled("\n").finditer(text, start)]


def _between(pattern: str, text: str, start: int, end: int) -> list[Stretch]:
    """Returns the stretches between the matches of a pattern, except blank ones."""
    parts = []
    for match in compiled(pattern).finditer(text, start, end):
        parts.append(_trimmed(text, start, match.start()))
        start = match.end()
    return [part for part in (*parts, _trimmed(text, start, end)) if part[0] < part[1]]


def _by_paragraphs(text: str, start: int, end: int, _: int) -> list[Stretch]:
    return _between(r"\r?\n(?:[ \t]*\r?\n)+", text, start, end)


def _by_lines(text: str, start: int, end: int, _: int) -> list[Stretch]:
    return _between("\n", text, start, end)


def _by_words(text: str, start: int, end: int, size: int) -> list[Stretch]:
    """Returns runs of words of at most `size`; a longer word is cut between characters."""
    size = max(size, 1)
    runs: list[Stretch] = []
    for word in compiled(r"\S+").finditer(text, start, end):
        left, right = word.span()
        if runs and right - runs[-1][0] <= size:
            runs[-1] = (runs[-1][0], right)
            continue
        while right - left > size:
            stop = left + size
            while stop > left + 1 and combining(text[stop]):
                stop -= 1
            if combining(text[stop]):
                stop = left + size
            runs.append((left, stop))
            left = stop
        runs.append((left, right))
    return runs


# Sentences.

_CLOSING = "\"')\\]}*_`\u00bb\u201d\u2019\u300d\u300f\uff09\u3011\u3009\u300b"
_OPENING = "\"'([{*_`\u00ab\u201c\u2018\u300c\u300e\uff08"
_STOP = (
    rf"(?<![.!?…])(?P<stop>[.!?…]+)[{_CLOSING}]*(?=\s)"
    rf"|[\u3002\uff01\uff1f\uff61\u0964]+[{_CLOSING}]*"
    r"|\n(?=[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t])"
)
_LAST_WORD = r"[^\W_](?:[\w.]*[^\W_])?$"
_INITIALS = r"[^\W\d_](?:\.[^\W\d_])*"

_ALWAYS_SHORT = frozenset(
    "e.g i.e eg ie cf viz vs al approx ca dr mr mrs ms prof st mt sr rev hon gen col capt lt sgt "
    "dept est incl excl resp z.b d.h u.a bzw usw ggf evtl vgl nr bspw p.ej ph.d".split()
)
"""Abbreviations, without their last full stop, that do not end a sentence."""

_SHORT_BEFORE_NUMBERS = frozenset(
    "no nos fig figs eq eqs sec ch vol p pp art par ver v tab table ex approx rev".split()
)
"""Abbreviations that do not end a sentence before a number."""


def _by_sentences(text: str, start: int, end: int, _: int) -> list[Stretch]:
    """Returns the sentences of a paragraph; each item of a list begins one."""
    ends = []
    since = start
    for match in compiled(_STOP).finditer(text, start, end):
        if match["stop"] is None or _ends_sentence(text, match, since):
            since = match.end()
            ends.append(since)
    pieces = []
    for stop in (*ends, end):
        left, right = _trimmed(text, start, stop)
        while left < right and text[left].isspace():
            left += 1
        if left < right:
            pieces.append((left, right))
        start = stop
    return pieces


def _ends_sentence(text: str, match: re.Match[str], start: int) -> bool:
    """Returns whether a full stop (or the like) followed by a space ends a sentence."""
    ahead = text[match.end() : match.end() + 80]
    following = next((c for c in ahead if not c.isspace() and c not in _OPENING), "")
    if following.islower():
        return False
    if match["stop"] != ".":
        return True
    last_word = compiled(_LAST_WORD).search(text, max(start, match.start() - 30), match.start())
    if last_word is None:
        return True
    word = last_word[0].lower()
    if word in _ALWAYS_SHORT or (following.isdigit() and word in _SHORT_BEFORE_NUMBERS):
        return False
    # An initial (J. Smith), U.S., and the number of an item.
    is_item = word.isdigit() and not text[start : last_word.start()].strip()
    return not (is_item or compiled(_INITIALS).fullmatch(word))


_PROSE = (_by_paragraphs, _by_sentences, _by_words)


# Source code, cut at blank lines outside functions.

_TAB = 4
_MODIFIERS = (
    "export|default|public|private|protected|internal|abstract|final|sealed|static|partial|"
    "pub|open|data|unsafe|declare"
)
_CONTAINERS = (
    "class|interface|trait|impl|struct|enum|module|defmodule|namespace|object|extension|mod|"
    "protocol|record"
)
_CONTAINER = rf"(?:(?:{_MODIFIERS})(?:\([^)]*\))?\s+)*(?:{_CONTAINERS})\b"
_JOINING = r"[{})\]]|(?:end|else|elif|elsif|except|finally|catch|rescue|then)\b"
"""The start of a line that continues the previous block."""


class _Above(NamedTuple):
    """A line with a smaller indentation than the lines below it."""

    indent: int
    opens: bool
    """True if it opens a container such as a class, whose members are separate blocks."""


def _code(text: str, *, triple_quotes: bool) -> Layout:
    """Returns functions and other blocks that blank lines separate.

    With `triple_quotes`, blank lines within triple quotes do not count.
    """
    blocks: list[Part] = []
    above: list[_Above] = []
    start, quotes, fresh = 0, "", True
    for end in (*_line_ends(text), len(text)):
        line = text[start:end]
        if not line.strip():
            fresh = fresh or not quotes
        else:
            if not quotes:
                joins = _step_into(above, line)
                if fresh and not joins:
                    blocks.append(Part(start, end))
                fresh = False
            blocks = blocks or [Part(start, end)]
            blocks[-1] = blocks[-1]._replace(end=end)
        for mark in compiled("\"\"\"|'''").findall(line) if triple_quotes else ():
            quotes = "" if quotes == mark else quotes or mark
        start = end + 1
    parts = [Part(*_trimmed(text, part.start, part.end)) for part in blocks]
    return Layout(parts, cuts=(_by_paragraphs, _by_lines, _by_words), packs=True)


def _step_into(above: list[_Above], line: str) -> bool:
    """Returns whether a line belongs to a line above it, and adds it to those."""
    bare = line.strip()
    indent = len(line.expandtabs(_TAB)) - len(line.expandtabs(_TAB).lstrip())
    opens = compiled(_CONTAINER).match(bare) is not None
    while above and above[-1].indent >= indent:
        # A brace on its own line opens the container of the previous line.
        opens = opens or (bare == "{" and above[-1].indent == indent and above[-1].opens)
        above.pop()
    joins = not all(line_above.opens for line_above in above)
    above.append(_Above(indent, opens))
    return joins or compiled(_JOINING).match(bare) is not None


# Markdown, cut at the headings that a Markdown parser finds, never in a fence or a list.


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


def _markdown(text: str) -> Layout:
    """Returns the sections of a Markdown text: a heading and the text below it.

    A heading without text is part of the first section below it.
    """
    head = header_end(text)
    blocks = _blocks(text, head)
    named = compiled(r"(?m)^title[ \t]*[:=][ \t]*(\S.*)$").search(text, 0, head)
    path = [(0, " ".join(named[1].strip().strip("\"'").split()))] if named else []
    parts: list[Part] = []
    start, has_text = 0, False

    def end_section(end: int) -> None:
        nonlocal start
        titles = tuple(dict.fromkeys(title for _, title in path if title))
        parts.append(Part(*_trimmed(text, start, end), titles))
        start = end

    for block in blocks:
        if block.level:
            if has_text or (path and path[-1][0] >= block.level):
                end_section(block.start)
            path = [entry for entry in path if entry[0] < block.level]
            path.append((block.level, block.title))
        has_text = not block.level
    end_section(len(text))
    sections = [part for part in parts if part.start < part.end]
    solid = [(block.start, block.own_end) for block in blocks if not block.is_prose]
    return Layout(sections, cuts=(_between_blocks(blocks),), solid=solid)


def _between_blocks(blocks: Sequence[_Block]) -> Cut:
    """Returns the cut of a section between its blocks, and of its prose between sentences."""
    starts = [block.start for block in blocks]

    def cut(text: str, start: int, end: int, size: int) -> list[Stretch]:
        inside = blocks[bisect_left(starts, start) : bisect_left(starts, end)]
        lead_end = inside[0].start if inside else end
        pieces = [_trimmed(text, start, lead_end)] if text[start:lead_end].strip() else []
        headings: list[Stretch] = []
        for block in inside:
            stretch = _trimmed(text, block.start, min(block.end, end))
            if block.level:
                headings.append(stretch)
                continue
            smaller = [*_fitting(text, *stretch, size, _PROSE if block.is_prose else ())]
            if headings and smaller:
                # A heading stays with its text.
                smaller[0] = (headings[0][0], smaller[0][1])
            headings = []
            pieces += smaller
        return pieces + ([(headings[0][0], headings[-1][1])] if headings else [])

    return cut


def _blocks(text: str, head: int) -> list[_Block]:
    """Returns the blocks of the outermost level after the header, from the parser's source map.

    A text that takes too long to read is one paragraph.
    """
    try:
        # The parser would read a lone carriage return as a line end.
        tokens = _parser().parse(compiled(r"\r(?!\n)").sub(" ", text[head:]))
    except Unreadable:
        return [_Block(head, len(text), len(text), 0, "", is_prose=True)]
    # The source map may name a line beyond the last one.
    starts = [head, *(place + 1 for place in _line_ends(text, head)), len(text), len(text)]
    blocks: list[_Block] = []
    for number, token in enumerate(tokens):
        if token.level == 0 and token.map and token.nesting >= 0:
            start, own_end = (starts[line] for line in token.map)
            level = int(token.tag[1]) if token.type == "heading_open" else 0
            title = " ".join(tokens[number + 1].content.split()) if level else ""
            is_prose = token.type in ("paragraph_open", "heading_open")
            if blocks:
                blocks[-1] = blocks[-1]._replace(end=start)
            blocks.append(_Block(start, len(text), own_end, level, title, is_prose))
    return blocks


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": DEEPEST}).enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return limit_steps(parser)
