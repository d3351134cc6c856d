"""Which edges a text that is about to be written runs into."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from mimo.domain.context.note import Note
from mimo.domain.hooks.event import Edit
from mimo.domain.tokens import QUESTION_WORDS, tokenize

_CODE_SPAN = re.compile(r"(?<!`)`([^`\n]{4,200})`(?!`)")
_SPECIAL = frozenset(".^$*+?{}[]|()")
_FEWEST_WORDS = 2
_MOST_READ = 200_000
_MOST_PATTERNS = 100
_LONGEST_PATTERN = 512

Pieces = tuple[str, ...]
"""Texts in lower case that must stand on one line, in this order."""


class Hit(NamedTuple):
    """An edge, and where a text meets it."""

    note: Note
    path: str
    line: int
    """1-based, in the text that is to be written."""


def met(edges: Iterable[Note], edits: Sequence[Edit]) -> list[Hit]:
    """Returns the edges that are met, the worst first, each where it is met first.

    An edge is met where its patterns for code, or the code that its title names, stand in the
    text; one without either, where one line has all words of its title.
    """
    texts = [(edit.path, edit.text[:_MOST_READ].split("\n")) for edit in edits]
    hits = [hit for note in edges if (hit := next(_places(note, texts), None))]
    return sorted(hits, key=lambda hit: hit.note.extra.get("severity") != "critical")


def pieces(pattern: str) -> Pieces | None:
    """Returns what a pattern looks for, in time that grows with the text alone; None if it can't.

    Only plain text, `.*` and escaped characters are understood: anybody may have written it.
    """
    found, rest = [""], pattern[: _LONGEST_PATTERN + 1]
    while rest:
        if rest.startswith(".*"):
            found.append("")
            rest = rest[2:]
        elif rest.startswith("\\b"):
            rest = rest[2:]
        elif rest[0] == "\\" and len(rest) > 1 and not rest[1].isalnum():
            found[-1] += rest[1]
            rest = rest[2:]
        elif rest[0] in _SPECIAL or rest[0] == "\\":
            return None
        else:
            found[-1] += rest[0]
            rest = rest[1:]
    said = tuple(piece.lower() for piece in found if piece.strip())
    return said if said and len(pattern) <= _LONGEST_PATTERN else None


def _places(note: Note, texts: list[tuple[str, list[str]]]) -> Iterator[Hit]:
    patterns = _patterns(note)
    words = frozenset() if patterns else frozenset(tokenize(note.title)) - QUESTION_WORDS
    for path, lines in texts:
        for number, line in enumerate(lines, 1):
            bare = line.lower()
            if any(_stands(one, bare) for one in patterns) or (
                len(words) >= _FEWEST_WORDS and words.issubset(tokenize(line))
            ):
                yield Hit(note, path, number)


def _patterns(note: Note) -> list[Pieces]:
    detection = note.extra.get("detection")
    told = detection.get("code") if isinstance(detection, Mapping) else None
    listed = told[:_MOST_PATTERNS] if isinstance(told, list) else []
    found = [pieces(one) for one in listed if isinstance(one, str)]
    spans = [] if listed else [(span.lower(),) for span in _CODE_SPAN.findall(note.title)]
    return [one for one in [*found, *spans] if one]


def _stands(pieces_: Pieces, line: str) -> bool:
    start = 0
    for piece in pieces_:
        place = line.find(piece, start)
        if place < 0:
            return False
        start = place + len(piece)
    return True
