"""A text -> the stretches of it that are searched: small units to point at, passages to weigh.

Lines are packed into units of at most 60 words and, once more, into passages of at most 200. A
line that is longer is cut at the ends of its sentences, a sentence that is longer between words.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from mimo.domain.sentences import sentence_end
from mimo.domain.tokens import UNSPACED, tokenize
from mimo.frozen import frozen

UNIT_WORDS = 60
PASSAGE_WORDS = 200

_CHARACTERS_A_WORD = 2
"""What counts as a word where a script has no spaces: a pair of characters, as in the tokens."""

_LONGEST_WORD = 80
"""Characters; what has no space for longer (an address, encoded data) counts as several words."""

_USERS = frozenset({"user", "human"})
_ASSISTANTS = frozenset({"assistant", "ai"})


@frozen
class Unit:
    """At most 60 words of a text: what an answer points at."""

    text: str
    """As it stands in the text, line breaks included."""
    line0: int
    """The 0-based line of the text on which it begins."""
    tokens: tuple[str, ...]
    speakers: str = ""
    """Whom its lines begin with (`Caroline: …`), users and assistants apart: names joined by
    spaces, the words of one name by `_`."""


@frozen
class Analysis:
    """A text, cut up and tokenised."""

    units: tuple[Unit, ...]
    passages: tuple[tuple[str, ...], ...]
    """Tokens of each passage; of a chat with an assistant, the user's lines alone."""
    passage_texts: tuple[str, ...]
    """The passages as text: the mean of their vectors is the document's."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A line, or a part of one that is too long."""

    start: int
    end: int
    line: int
    words: int


def analyse(text: str) -> Analysis:
    """Returns the units and passages of `text`; none where it holds no word."""
    lines = list(_lines(text))
    units = tuple(_units(text, lines))
    said = _user_lines(text, lines)
    if said is None and len(units) <= 1:
        return Analysis(
            units=units,
            passages=tuple(unit.tokens for unit in units),
            passage_texts=tuple(unit.text for unit in units),
        )
    packed = [_joined(text, group) for group in _packed(text, said or lines, PASSAGE_WORDS)]
    worded = [(tokens, part) for part in packed if (tokens := tuple(tokenize(part)))]
    return Analysis(
        units=units,
        passages=tuple(tokens for tokens, _ in worded),
        passage_texts=tuple(part for _, part in worded),
    )


def _speaker(line: str) -> str:
    """Returns the name before the colon that a line begins with, or ``""``."""
    found = _prefix().match(line)
    return found[1].lower() if found else ""


def _lines(text: str) -> Iterator[_Piece]:
    start = 0
    for number, line in enumerate(text.split("\n")):
        end = start + len(line)
        if line and not line.isspace():
            yield _Piece(start, end, number, _words(line))
        start = end + 1


def _words(text: str) -> int:
    """Returns how many words a stretch of text counts as."""
    spaced = len(text.split())
    if len(text) > _LONGEST_WORD * spaced:
        spaced = len(_word().findall(text))
    if text.isascii():
        return spaced
    return max(spaced, len(_unspaced().findall(text)) // _CHARACTERS_A_WORD)


def _units(text: str, lines: list[_Piece]) -> Iterator[Unit]:
    for group in _packed(text, lines, UNIT_WORDS):
        part = text[group[0].start : group[-1].end]
        if tokens := tuple(tokenize(part)):
            yield Unit(text=part, line0=group[0].line, tokens=tokens, speakers=_speakers(part))


def _speakers(text: str) -> str:
    if ":" not in text:
        return ""
    names = dict.fromkeys(_speaker(line) for line in text.split("\n"))
    people = [name for name in names if name not in _USERS | _ASSISTANTS]
    return " ".join(filter(None, ("_".join(tokenize(name)) for name in people)))


def _packed(text: str, lines: Iterable[_Piece], limit: int) -> Iterator[list[_Piece]]:
    """Yields runs of neighbouring pieces that hold at most `limit` words together."""
    group: list[_Piece] = []
    size = 0
    for line in lines:
        for piece in _cut(text, line, limit):
            if group and size + piece.words > limit:
                yield group
                group, size = [], 0
            group.append(piece)
            size += piece.words
    if group:
        yield group


def _cut(text: str, line: _Piece, limit: int) -> Iterator[_Piece]:
    if line.words <= limit:
        yield line
        return
    start = line.start
    ends = [found.end() for found in sentence_end().finditer(text, line.start, line.end)]
    for end in [*ends, line.end]:
        if end > start:
            yield from _sentence(text, start, end, line.line, limit)
        start = end


def _sentence(text: str, start: int, end: int, line: int, limit: int) -> Iterator[_Piece]:
    words = _words(text[start:end])
    if words <= limit:
        yield _Piece(start, end, line, words)
        return
    size = 0
    for found in _word().finditer(text, start, end):
        word = _words(found[0])
        if size and size + word > limit:
            yield _Piece(start, found.start(), line, size)
            start, size = found.start(), 0
        size += word
    yield _Piece(start, end, line, size)


def _user_lines(text: str, lines: list[_Piece]) -> list[_Piece] | None:
    """Returns the user's lines of a chat with an assistant; None for any other text."""
    if ":" not in text:
        return None
    turn = ""
    speakers = set()
    said = []
    for piece in lines:
        name = _speaker(text[piece.start : piece.start + 40])
        if name in _USERS or name in _ASSISTANTS:
            turn = name
            speakers.add(name)
        if turn in _USERS:
            said.append(piece)
    return said if speakers & _USERS and speakers & _ASSISTANTS else None


def _joined(text: str, group: list[_Piece]) -> str:
    """Returns the text of pieces that need not stand next to each other."""
    parts = [text[group[0].start : group[0].end]]
    for before, piece in pairwise(group):
        between = "\n" if piece.line != before.line else ""
        parts.append(between + text[piece.start : piece.end])
    return "".join(parts)


@cache
def _word() -> re.Pattern[str]:
    return re.compile(rf"\S{{1,{_LONGEST_WORD}}}\s*")


@cache
def _unspaced() -> re.Pattern[str]:
    return re.compile(f"[{UNSPACED}]")


@cache
def _prefix() -> re.Pattern[str]:
    return re.compile(r"\s*([^\W\d_][\w .'-]{0,30}?)\s*:(?=\s)")
