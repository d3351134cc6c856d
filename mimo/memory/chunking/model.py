"""The options and results of chunking, and cutting, packing and overlapping parts of a text."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cache
from itertools import pairwise
from typing import NamedTuple
from unicodedata import combining

from mimo.errors import Invalid
from mimo.frozen import frozen

LINES = 50
"""Default number of lines in a chunk."""

LEAST = 10
"""Chunks with fewer characters, without surrounding white space, are left out."""

Stretch = tuple[int, int]
"""The start and the end of a part of a text, in characters."""

Cut = Callable[[str, int, int, int], list[Stretch]]
"""Cuts a stretch of a text into smaller ones, which may still exceed the limit."""


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


class Part(NamedTuple):
    """A natural part of a text: a paragraph, a section, some lines."""

    start: int
    end: int
    path: tuple[str, ...] = ()
    """The headings above it, outermost first."""


class Layout(NamedTuple):
    """The parts of a text, and the ways to make them smaller or larger."""

    parts: Sequence[Part]
    cut: Cut | None = None
    """Cuts a part that is too large; None if parts must not be cut."""
    packs: bool = False
    """True if neighbouring parts may share a chunk."""
    solid: Sequence[Stretch] = ()
    """Stretches that no chunk may begin within; sorted."""


class Chunk(NamedTuple):
    """A chunk, exactly as in the text."""

    text: str
    first_line: int
    """1-based, in the text."""
    last_line: int
    path: tuple[str, ...] = ()
    """The headings above it, outermost first."""


def checked(chunking: Chunking) -> Chunking:
    """Returns `chunking`; raises `Invalid` if its numbers contradict each other."""
    size, overlap = chunking.chunk_size, chunking.overlap
    if size is not None and overlap >= size:
        raise Invalid(
            f"overlap must be less than chunk_size: {overlap:,} is not less than {size:,}",
            hint="a tenth of the chunk size is a good overlap",
            details={"field": "overlap"},
        )
    return chunking


def trimmed(text: str, start: int, end: int) -> Stretch:
    """Returns a stretch without the blank lines before it and the white space after it."""
    while end > start and text[end - 1].isspace():
        end -= 1
    first = start
    while first < end and text[first].isspace():
        if text[first] == "\n":
            start = first + 1
        first += 1
    return start, end


# Strategies by the ending of a file's name.

_MARKDOWN = frozenset("md markdown mdown mkd mdc mdx".split())
_WHOLE = frozenset("json yaml yml toml xml html htm".split())
_LINES = frozenset("csv tsv log jsonl ndjson".split())
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


def detected(name: str) -> Strategy:
    """Returns the strategy for a file of that name."""
    ending = suffix(name)
    if ending in _MARKDOWN:
        return Strategy.MARKDOWN
    if ending in _WHOLE:
        return Strategy.WHOLE
    return Strategy.LINES if ending in _LINES else Strategy.PARAGRAPHS


def is_code(name: str) -> bool:
    """Returns whether a file of that name holds source code."""
    return suffix(name) in _CODE


def has_triple_quotes(name: str) -> bool:
    """Returns whether a file of that name may have blank lines within triple quotes."""
    return suffix(name) in _TRIPLE_QUOTES


def sized(text: str, layout: Layout, size: int) -> list[Part]:
    """Returns the parts, cut if larger than `size` and packed if allowed."""
    parts: list[Part] = []
    for part in layout.parts:
        if layout.cut is None or part.end - part.start <= size:
            parts.append(part)
            continue
        cut = layout.cut(text, part.start, part.end, size)
        pieces = [Part(start, end, part.path) for start, end in cut]
        parts.extend(pieces if layout.packs else packed(pieces, size))
    return packed(parts, size) if layout.packs else parts


def packed(parts: Iterable[Part], size: int) -> list[Part]:
    """Returns the parts with as many neighbours as fit joined into one."""
    joined: list[Part] = []
    for part in parts:
        if joined and part.end - joined[-1].start <= size:
            joined[-1] = joined[-1]._replace(end=part.end)
        else:
            joined.append(part)
    return joined


def fitting(text: str, start: int, end: int, size: int, cuts: Sequence[Cut]) -> Iterator[Stretch]:
    """Yields a stretch in pieces of at most `size`, each by the first sufficient cut."""
    if end - start <= size or not cuts:
        yield start, end
        return
    for piece in cuts[0](text, start, end, size):
        yield from fitting(text, *piece, size, cuts[1:])


def by_lines(text: str, start: int, end: int, _: int) -> list[Stretch]:
    """Returns the lines of a stretch, except blank ones."""
    lines = []
    while start < end:
        stop = text.find("\n", start, end)
        stop = end if stop < 0 else stop
        first, last = trimmed(text, start, stop)
        if first < last:
            lines.append((first, last))
        start = stop + 1
    return lines


def by_words(text: str, start: int, end: int, size: int) -> list[Stretch]:
    """Returns runs of words of at most `size`; a longer word is cut between characters."""
    runs: list[Stretch] = []
    for word in _words().finditer(text, start, end):
        if runs and word.end() - runs[-1][0] <= size:
            runs[-1] = (runs[-1][0], word.end())
        else:
            runs.extend(_by_characters(text, word.start(), word.end(), size))
    return runs


def _by_characters(text: str, start: int, end: int, size: int) -> Iterator[Stretch]:
    while end - start > size:
        stop = start + size
        while stop > start + 1 and combining(text[stop]):
            stop -= 1
        yield start, stop
        start = stop
    yield start, end


def overlapping(
    text: str, parts: Sequence[Part], overlap: int, solid: Sequence[Stretch]
) -> list[Part]:
    """Returns the parts, each with up to `overlap` characters of the previous one.

    The overlap begins with a whole word if possible, and never within a solid stretch.
    """
    result = list(parts[:1])
    waiting = list(reversed(solid))
    for before, part in pairwise(parts):
        start = _word_start(text, max(part.start - overlap, before.start), part.start)
        while waiting and waiting[-1][1] <= start:
            waiting.pop()
        if waiting and waiting[-1][0] < start:
            start = min(waiting[-1][1], part.start)
        while start < part.start and text[start].isspace():
            start += 1
        result.append(part._replace(start=start if start < part.start else part.start))
    return result


def _word_start(text: str, start: int, end: int) -> int:
    """Returns the first start of a word from `start` on, or `start` if there is none."""
    if start == 0 or text[start - 1].isspace():
        return start
    space = _space().search(text, start, end)
    return space.end() if space and space.end() < end else start


@cache
def _words() -> re.Pattern[str]:
    return re.compile(r"\S+")


@cache
def _space() -> re.Pattern[str]:
    return re.compile(r"\s+")
