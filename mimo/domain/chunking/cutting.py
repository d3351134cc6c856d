"""Parts of a text made smaller or larger, up to a size; and the overlap of neighbours."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from unicodedata import combining

from mimo.domain.chunking.model import Cut, Layout, Part, Stretch, trimmed


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
