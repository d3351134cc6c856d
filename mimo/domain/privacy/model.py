"""What the detectors find: where something stands and what kind of thing it is, never the thing."""

import re
from collections.abc import Iterable
from typing import NamedTuple


class Finding(NamedTuple):
    """Something in a text that should not be there, or not be shown."""

    kind: str
    """Such as `github_token` or `email`."""
    start: int
    end: int
    line: int
    """Counted from 1."""


def finding(text: str, kind: str, start: int, end: int) -> Finding:
    """Returns a finding with the line on which it begins."""
    return Finding(kind, start, end, text.count("\n", 0, start) + 1)


def disjoint(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Returns the findings in their order, those that overlap as one of the first one's kind."""
    kept: list[Finding] = []
    for one in sorted(found, key=lambda one: (one.start, -one.end)):
        if kept and one.start < kept[-1].end:
            kept[-1] = kept[-1]._replace(end=max(one.end, kept[-1].end))
        else:
            kept.append(one)
    return tuple(kept)


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


def excerpt(text: str, found: tuple[Finding, ...], at: Finding) -> str:
    """Returns the surroundings of one finding in its line, with every finding masked."""
    head = text.rfind("\n", 0, at.start) + 1
    tail = text.find("\n", at.end)
    tail = len(text) if tail < 0 else tail
    near = [one for one in found if head <= one.start and one.end <= tail]
    start = max(head, at.start - _AROUND, *(one.end for one in near if one.end <= at.start), head)
    end = min(tail, at.end + _AROUND, *(one.start for one in near if one.start >= at.end), tail)
    shown = f"{text[start : at.start]}{mark(at.kind)}{text[at.end : end]}"
    return re.sub(r"\s+", " ", shown).strip()
