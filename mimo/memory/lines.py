"""Three-way merging of a text, line by line."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import Any

UNDECIDED: Any = object()
"""Marks a value that both sides changed differently."""
_MANY_LINES = 20_000
"""Longer stretches in which no line occurs once count as changed: comparing takes a bit a pair."""


def one_sided(base: Any, ours: Any, theirs: Any) -> Any:
    """Returns the value of the side that changed it; `UNDECIDED` if both did."""
    if theirs in (base, ours):
        return ours
    return theirs if ours == base else UNDECIDED


def merged_lines(base: str, ours: str, theirs: str) -> tuple[str, ...]:
    """Returns the text with the changes of both sides, or two texts if these conflict.

    Each of the two has all changes that don't conflict.
    """
    if (text := one_sided(base, ours, theirs)) is not UNDECIDED:
        return (text,)
    sides = (base.split("\n"), ours.split("\n"), theirs.split("\n"))
    our_lines: list[str] = []
    second: list[str] = []
    at_base = at_ours = at_theirs = 0
    for start, left, right, length in _common(*sides):
        changed = (sides[1][at_ours:left], sides[2][at_theirs:right])
        merged = one_sided(sides[0][at_base:start], *changed)
        same = sides[0][start : start + length]
        our_lines += [*(changed[0] if merged is UNDECIDED else merged), *same]
        second += [*(changed[1] if merged is UNDECIDED else merged), *same]
        at_base, at_ours, at_theirs = start + length, left + length, right + length
    return tuple(dict.fromkeys(("\n".join(our_lines), "\n".join(second))))


def _common(
    base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]
) -> list[tuple[int, int, int, int]]:
    """Returns (in base, in ours, in theirs, length) of the stretches that all three share."""
    left, right = _matches(base, ours), _matches(base, theirs)
    stretches, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        (a, b, n), (c, d, m) = left[i], right[j]
        start, end = max(a, c), min(a + n, c + m)
        if start < end:
            stretches.append((start, b + start - a, d + start - c, end - start))
        if a + n < c + m:
            i += 1
        else:
            j += 1
    return [*stretches, (len(base), len(ours), len(theirs), 0)]


def _matches(base: Sequence[str], side: Sequence[str]) -> list[tuple[int, int, int]]:
    """Returns (in base, in side, length) of the stretches that a text kept.

    Lines that are in both texts once divide them first, so that a change far away has no effect on
    how the lines here are matched. Between them, changes are moved down as far as possible.
    """
    blocks, i, j = [], 0, 0
    for line, side_line in [*_unique(base, side), (len(base), len(side))]:
        start = _shared(base[i:line], side[j:side_line])
        blocks.append((i, j, start))
        i, j = i + start, j + start
        end = _shared(base[i:line][::-1], side[j:side_line][::-1])
        base_lines, second = base[i : line - end], side[j : side_line - end]
        if max(len(base_lines), len(second)) <= _MANY_LINES:
            blocks += [(i + a, j + b, 1) for a, b in _subsequence(base_lines, second)]
        blocks.append((line - end, side_line - end, end + (line < len(base))))
        i, j = line + 1, side_line + 1
    return [block for block in blocks if block[2]]


def _unique(base: Sequence[str], side: Sequence[str]) -> list[tuple[int, int]]:
    """Returns the places of lines that are in both texts once: most of those in the same order."""
    counts, side_counts = Counter(base), Counter(side)
    places = {line: place for place, line in enumerate(side)}
    pairs = [
        (place, places[line])
        for place, line in enumerate(base)
        if line.strip() and counts[line] == side_counts[line] == 1
    ]
    lowest: list[int] = []
    ends: list[int] = []
    parents: list[int] = []
    for number, (_, position) in enumerate(pairs):
        length = bisect_left(lowest, position)
        parents.append(ends[length - 1] if length else -1)
        lowest[length : length + 1] = [position]
        ends[length : length + 1] = [number]
    chain, number = [], ends[-1] if ends else -1
    while number >= 0:
        chain.append(pairs[number])
        number = parents[number]
    return chain[::-1]


def _subsequence(base: Sequence[str], second: Sequence[str]) -> list[tuple[int, int]]:
    """Returns the places of a longest common subsequence, as early in the texts as possible.

    The rows of the usual table are integers with a bit for each line of `base`: 1 if the row does
    not grow there (Hyyrö 2004). So repeated lines cost no more than others.
    """
    masks: dict[str, int] = {}
    for place, line in enumerate(base):
        masks[line] = masks.get(line, 0) | 1 << place
    ones = (1 << len(base)) - 1
    rows = [ones]
    for line in second:
        common = rows[-1] & masks.get(line, 0)
        rows.append((rows[-1] + common | rows[-1] - common) & ones)
    pairs, i, j = [], len(base), len(second)
    while i and j:
        if rows[j] >> (i - 1) & 1:
            i -= 1
            continue
        j -= 1
        if rows[j] >> (i - 1) & 1:
            i -= 1
            pairs.append((i, j))
    return pairs[::-1]


def _shared(base: Sequence[str], second: Sequence[str]) -> int:
    """Returns the number of lines with which both begin."""
    differ = (n for n, (a, b) in enumerate(zip(base, second, strict=False)) if a != b)
    return next(differ, min(len(base), len(second)))


def changes_of(base: str, text: str) -> set[tuple[int, int, tuple[str, ...]]]:
    """Returns the stretches of the lines of the base that a text replaces, with the new lines."""
    old, new = base.split("\n"), text.split("\n")
    changes, at_old, at_new = set(), 0, 0
    for i, j, size in [*_matches(old, new), (len(old), len(new), 0)]:
        if (i, j) != (at_old, at_new):
            changes.add((at_old, i, tuple(new[at_new:j])))
        at_old, at_new = i + size, j + size
    return changes
