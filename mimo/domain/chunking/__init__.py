"""A text -> chunks that are remembered one by one: exact stretches of it, with their lines."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from mimo.domain.chunking.code import code
from mimo.domain.chunking.cutting import by_lines, by_words, fitting, overlapping, sized
from mimo.domain.chunking.kinds import REFUSED, detected, has_triple_quotes, is_code, suffix
from mimo.domain.chunking.markdown import markdown
from mimo.domain.chunking.model import (
    LEAST,
    LINES,
    Chunk,
    Chunking,
    Layout,
    Part,
    Strategy,
    Stretch,
    checked,
    trimmed,
)
from mimo.domain.chunking.prose import paragraphs, sentences

__all__ = [
    "LINES",
    "REFUSED",
    "Chunk",
    "Chunking",
    "Strategy",
    "checked",
    "chunks",
    "resolved",
    "suffix",
]


def chunks(text: str, chunking: Chunking, name: str) -> list[Chunk]:
    """Returns the chunks of a text from a file of that name, in their order.

    The strategy is not `auto`; `resolved` sees to that. Each chunk is a stretch of `text`,
    unchanged. Those with fewer than ten characters are left out.
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
    """Returns `chunking` with the strategy for a file of that name where it is `auto`."""
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
    """Returns as many lines at a time, blank ones counted."""
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
    """Returns where the line feeds are."""
    ends = []
    place = text.find("\n")
    while place >= 0:
        ends.append(place)
        place = text.find("\n", place + 1)
    return ends
