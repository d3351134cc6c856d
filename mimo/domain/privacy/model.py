"""What the detectors find: where something stands and what kind of thing it is, never the thing."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

Span = tuple[str, int, int]
"""A kind, and where it begins and ends."""


class Finding(NamedTuple):
    """Something in a text that should not be there, or not be shown."""

    kind: str
    """Such as `github_token` or `email`."""
    start: int
    end: int
    line: int
    """Counted from 1."""


def findings(text: str, spans: Iterable[Span]) -> tuple[Finding, ...]:
    """Returns what stands at the spans, in order, overlapping ones as one of the first's kind."""
    found: list[Finding] = []
    line, last = 1, 0
    for kind, start, end in sorted(spans, key=lambda one: (one[1], -one[2])):
        if found and start < found[-1].end:
            found[-1] = found[-1]._replace(end=max(end, found[-1].end))
            continue
        line += text.count("\n", last, start)
        last = start
        found.append(Finding(kind, start, end, line))
    return tuple(found)


APART = "\x00"
"""What keeps texts apart that are looked through as one."""

STAND_IN = "REDACTED-"
"""How what stands in the place of a key begins: it is a key itself, by the rules for keys."""


def mark(kind: str) -> str:
    """Returns what stands in the place of something that is not shown."""
    return f"[REDACTED:{kind}]"


def without(text: str, found: Iterable[Finding]) -> str:
    """Returns the text with a mark in the place of each finding, which must be disjoint."""
    parts, last = [], 0
    for one in found:
        parts += [text[last : one.start], mark(one.kind)]
        last = one.end
    return "".join([*parts, text[last:]])


_AROUND = 24
"""Characters of a line that an excerpt shows on either side."""


def excerpts(text: str, found: Sequence[Finding]) -> Iterator[str]:
    """Yields the surroundings of each finding in its line, with every finding masked."""
    ends = [0, *(one.end for one in found)]
    starts = [*(one.start for one in found), len(text)]
    for number, at in enumerate(found):
        start = max(ends[number], at.start - _AROUND)
        start = max(start, text.rfind("\n", start, at.start) + 1)
        end = min(starts[number + 1], at.end + _AROUND)
        tail = text.find("\n", at.end, end)
        shown = f"{text[start : at.start]}{mark(at.kind)}{text[at.end : end if tail < 0 else tail]}"
        yield re.sub(r"\s+", " ", shown).strip()
