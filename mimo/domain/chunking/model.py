"""What a text is cut into, and how that is asked for."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple

from mimo.errors import Invalid
from mimo.frozen import frozen

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
