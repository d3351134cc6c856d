"""Three-way merging of texts, line by line."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

_MANY = 4_000
"""Lines beyond which popular ones are not compared: the time would grow with their square."""


class Hunk(NamedTuple):
    """A stretch of a merge: what each side makes of it, alike where they agree."""

    ours: Sequence[str]
    theirs: Sequence[str]


def merged(base: str, ours: str, theirs: str) -> tuple[str, ...]:
    """Returns the text that holds the changes of both sides, or two where they contradict.

    Each of the two has all the changes that don't contradict.
    """
    if ours == theirs or theirs == base:
        return (ours,)
    if ours == base:
        return (theirs,)
    hunks = list(_hunks(base.split("\n"), ours.split("\n"), theirs.split("\n")))
    first = "\n".join(line for hunk in hunks for line in hunk.ours)
    second = "\n".join(line for hunk in hunks for line in hunk.theirs)
    return (first,) if first == second else (first, second)


def _hunks(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> Iterator[Hunk]:
    at_base = at_ours = at_theirs = 0
    for start, left, right, length in _common(base, ours, theirs):
        yield _decided(base[at_base:start], ours[at_ours:left], theirs[at_theirs:right])
        same = base[start : start + length]
        yield Hunk(same, same)
        at_base, at_ours, at_theirs = start + length, left + length, right + length


def _decided(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> Hunk:
    """Returns a stretch with what one side alone changed taken for both."""
    if theirs == base:
        return Hunk(ours, ours)
    if ours == base:
        return Hunk(theirs, theirs)
    return Hunk(ours, theirs)


def _common(
    base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]
) -> list[tuple[int, int, int, int]]:
    """Returns (in base, in ours, in theirs, length) of what all three share, and their ends."""
    left, right = _matches(base, ours), _matches(base, theirs)
    found, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        (a, b, n), (c, d, m) = left[i], right[j]
        start, end = max(a, c), min(a + n, c + m)
        if start < end:
            found.append((start, b + start - a, d + start - c, end - start))
        if a + n < c + m:
            i += 1
        else:
            j += 1
    return [*found, (len(base), len(ours), len(theirs), 0)]


def _matches(base: Sequence[str], side: Sequence[str]) -> list[tuple[int, int, int]]:
    from difflib import SequenceMatcher

    many = max(len(base), len(side)) > _MANY
    blocks = SequenceMatcher(None, base, side, autojunk=many).get_matching_blocks()
    return [(a, b, size) for a, b, size in blocks if size]
