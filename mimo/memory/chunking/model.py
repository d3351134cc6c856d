"""Parts of a text made smaller or larger, up to a size; and the overlap of neighbours."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cache
from itertools import pairwise
from typing import NamedTuple
from unicodedata import combining

from mimo.errors import Invalid
from mimo.frozen import frozen

# What a text is cut into, and how that is asked for.


LINES = 50
"""Lines of a chunk where nothing else is said."""

LEAST = 10
"""A chunk of fewer characters, not counting the white space around it, is left out."""

Stretch = tuple[int, int]
"""The start and the end of a part of a text, in characters."""

Cut = Callable[[str, int, int, int], list[Stretch]]
"""Cuts a stretch of a text into smaller ones, which need not be as small as the limit."""


class Strategy(StrEnum):
    """Where a text is cut."""

    AUTO = "auto"
    PARAGRAPHS = "paragraphs"
    LINES = "lines"
    SENTENCES = "sentences"
    MARKDOWN = "markdown"
    WHOLE = "whole"


@frozen
class Chunking:
    """How a text is to be cut."""

    strategy: Strategy = Strategy.AUTO
    chunk_size: int | None = None
    """The size to aim at, in characters; None leaves the parts as the text has them."""
    overlap: int = 0
    """How many characters of the chunk before each one begins with, at most."""
    lines_per_chunk: int = LINES

    @property
    def is_auto(self) -> bool:
        """Returns whether nothing was asked for in particular."""
        return self == Chunking()


class Part(NamedTuple):
    """A stretch that the text itself marks as one: a paragraph, a section, some lines."""

    start: int
    end: int
    path: tuple[str, ...] = ()
    """The headings above it, outermost first."""


class Layout(NamedTuple):
    """How a text falls apart, and how its parts may be made smaller or larger."""

    parts: Sequence[Part]
    cut: Cut | None = None
    """Cuts a part that is too large; None where none may be cut."""
    packs: bool = False
    """Whether neighbouring parts may make one chunk."""
    solid: Sequence[Stretch] = ()
    """Stretches that no chunk may begin within; sorted."""


class Chunk(NamedTuple):
    """One chunk, exactly as the text has it."""

    text: str
    first_line: int
    """1-based, in the text."""
    last_line: int
    path: tuple[str, ...] = ()
    """The headings above it, outermost first."""


def checked(chunking: Chunking) -> Chunking:
    """Returns `chunking`; raises `Invalid` where its numbers contradict each other."""
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


# What a file's name says about how to cut it.


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
"""Endings of documents that are no plain text, and what they are."""


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
    """Returns whether three quotes may hold blank lines in a file of that name."""
    return suffix(name) in _TRIPLE_QUOTES


def sized(text: str, layout: Layout, size: int) -> list[Part]:
    """Returns the parts cut where they are larger than `size`, and packed where they may be."""
    found: list[Part] = []
    for part in layout.parts:
        if layout.cut is None or part.end - part.start <= size:
            found.append(part)
            continue
        cut = layout.cut(text, part.start, part.end, size)
        pieces = [Part(start, end, part.path) for start, end in cut]
        found.extend(pieces if layout.packs else packed(pieces, size))
    return packed(found, size) if layout.packs else found


def packed(parts: Iterable[Part], size: int) -> list[Part]:
    """Returns runs of neighbouring parts as one, as many of them as fit."""
    found: list[Part] = []
    for part in parts:
        if found and part.end - found[-1].start <= size:
            found[-1] = found[-1]._replace(end=part.end)
        else:
            found.append(part)
    return found


def fitting(text: str, start: int, end: int, size: int, cuts: Sequence[Cut]) -> Iterator[Stretch]:
    """Yields a stretch in pieces of at most `size`, each made by the first cut that suffices."""
    if end - start <= size or not cuts:
        yield start, end
        return
    for piece in cuts[0](text, start, end, size):
        yield from fitting(text, *piece, size, cuts[1:])


def by_lines(text: str, start: int, end: int, _: int) -> list[Stretch]:
    """Returns the lines of a stretch, without those that are blank."""
    found = []
    while start < end:
        stop = text.find("\n", start, end)
        stop = end if stop < 0 else stop
        first, last = trimmed(text, start, stop)
        if first < last:
            found.append((first, last))
        start = stop + 1
    return found


def by_words(text: str, start: int, end: int, size: int) -> list[Stretch]:
    """Returns runs of words of at most `size`; a longer word is cut between characters."""
    found: list[Stretch] = []
    for word in _words().finditer(text, start, end):
        if found and word.end() - found[-1][0] <= size:
            found[-1] = (found[-1][0], word.end())
        else:
            found.extend(_by_characters(text, word.start(), word.end(), size))
    return found


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
    """Returns the parts, each with the last `overlap` characters of what is before it, or fewer.

    It begins with a whole word where it can, and never within a solid stretch.
    """
    found = list(parts[:1])
    waiting = list(reversed(solid))
    for before, part in pairwise(parts):
        start = _word_start(text, max(part.start - overlap, before.start), part.start)
        while waiting and waiting[-1][1] <= start:
            waiting.pop()
        if waiting and waiting[-1][0] < start:
            start = min(waiting[-1][1], part.start)
        while start < part.start and text[start].isspace():
            start += 1
        found.append(part._replace(start=start if start < part.start else part.start))
    return found


def _word_start(text: str, start: int, end: int) -> int:
    """Returns the first start of a word from `start` on, or `start` where there is none."""
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
