"""BERT's tokenizer in plain Python: a cold search needs no tokenizer library."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable
from functools import cache, cached_property, lru_cache
from itertools import chain, islice
from pathlib import Path

from mimo.text.clean import compiled

FOLDER = Path(__file__).parents[2] / "model"
"""The folder of the packaged models."""

MAX_CHARACTERS = 3_072
"""The length to which texts are cut: that of 512 tokens of 6 characters, as model2vec does."""

SCANS = 20
"""The number of pieces searched in the file's bytes; building a table takes as long as about 20."""


class Vocabulary:
    """A list of word pieces, one a line; the id of a piece is its line number, from 0."""

    def __init__(self, lines: bytes) -> None:
        """Takes the list in UTF-8, without a final newline."""
        self._lines = b"\n%b\n" % lines
        self._scans = 0

    def find(self, piece: str) -> int | None:
        """Returns the id of a piece, or None.

        The first few calls search the lines, so that a short query needs no table.
        """
        if self._scans >= SCANS:
            return self._table.get(piece)
        self._scans += 1
        place = self._lines.find(b"\n%b\n" % piece.encode())
        return None if place < 0 else self._lines.count(b"\n", 0, place)

    @cached_property
    def _table(self) -> dict[str, int]:
        pieces = self._lines[1:-1].decode().split("\n")
        return dict(zip(pieces, range(len(pieces)), strict=True))


UNKNOWN = 1
"""The id of `[UNK]`."""

_MAX_WORD = 100
"""Longer words are unknown as a whole."""

_SPECIAL = {"[PAD]": 0, "[UNK]": UNKNOWN}
_SPECIAL_PATTERN = r"(\[PAD\]|\[UNK\])"
_ASCII_SYMBOLS = "$+<=>^`|~"

_CHINESE = (
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0x2F800, 0x2FA1F),
)  # fmt: skip

# BERT's tokenizer has the tables of Unicode 8: later marks and punctuation are letters to it. These
# are the first and last character of each range in turn; unassigned ones are letters too.
_LATER = (
    0x61D, 0x61D, 0x7FD, 0x7FD, 0x890, 0x8E2, 0x9FD, 0x9FE, 0xA76, 0xA76, 0xAFA, 0xAFF,
    0xB55, 0xB55, 0xC04, 0xC3C, 0xC77, 0xC77, 0xC84, 0xC84, 0xD00, 0xD00, 0xD3B, 0xD3C,
    0xD81, 0xD81, 0xEBA, 0xEBA, 0xECE, 0xECE, 0x180F, 0x1886, 0x1ABF, 0x1ACE, 0x1B7D, 0x1B7E,
    0x1DF6, 0x1DFB, 0x2E43, 0x2E5D, 0xA82C, 0xA82C, 0xA8C5, 0xA8C5, 0xA8FF, 0xA8FF,
    0xA9BD, 0xA9BD, 0x10D24, 0x10F89, 0x11070, 0x11074, 0x110C2, 0x110CD, 0x111CF, 0x111CF,
    0x1123E, 0x11241, 0x1133B, 0x1133B, 0x11438, 0x1145E, 0x11660, 0x1166C, 0x116B9, 0x116B9,
    0x1182F, 0x1183B, 0x11938, 0x11FFF, 0x12FF1, 0x13455, 0x16E97, 0x16F4F, 0x16FE2, 0x16FE4,
    0x1CF00, 0x1CF46, 0x1E000, 0x1E4EF, 0x1E944, 0x1E95F,
)  # fmt: skip

_RECLASSIFIED = {0x166D: " \u166d ", 0x1734: "", 0x111C9: " \U000111c9 "}
"""Characters whose class in Unicode changed after version 8."""


class _Characters(dict[int, str]):
    """The replacements of characters for `str.translate`, computed on first use."""

    def __missing__(self, code: int) -> str:
        text = self[code] = _normalised(code)
        return text


class WordPiece:
    """BERT's tokenizer: cuts text into word pieces, with a cache of words."""

    def __init__(self, find: Callable[[str], int | None]) -> None:
        """Takes the vocabulary as a function from a piece to its id; inner pieces begin with ##."""
        self._find = find
        self._characters = _Characters()
        self._pieces = lru_cache(maxsize=1 << 15)(self._cut)

    def ids(self, text: str, limit: int) -> list[int]:
        """Returns the ids of the first `limit` pieces of `text`, `UNKNOWN` among them."""
        return list(islice(chain.from_iterable(map(self._pieces, self._words(text))), limit))

    def is_whole(self, word: str) -> bool:
        """Returns whether a normalised word is one piece."""
        pieces = self._pieces(word)
        return len(pieces) == 1 and pieces != (UNKNOWN,)

    def _words(self, text: str) -> Iterable[str]:
        """Returns normalised words and punctuation marks, and special tokens unchanged."""
        if "[" not in text:
            return text.translate(self._characters).split()
        sections = compiled(_SPECIAL_PATTERN).split(text)
        return chain.from_iterable(
            [section] if section in _SPECIAL else section.translate(self._characters).split()
            for section in sections
        )

    def _cut(self, word: str) -> tuple[int, ...]:
        """Returns the longest pieces of `word`; only `UNKNOWN` if a part of it has no piece."""
        if word in _SPECIAL:
            return (_SPECIAL[word],)
        if len(word) > _MAX_WORD:
            return (UNKNOWN,)
        pieces: list[int] = []
        start, prefix = 0, ""
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = self._find(prefix + word[start:end])
                if piece is not None:
                    break
            else:
                return (UNKNOWN,)
            pieces.append(piece)
            start, prefix = end, "##"
        return tuple(pieces)


def _normalised(code: int) -> str:
    """Returns the replacement of a character: empty, lower case, or a word between spaces."""
    character = chr(code)
    if character in "\t\n\r":
        return " "
    if code in (0, 0xFFFD):
        return ""
    if code in _RECLASSIFIED:
        return _RECLASSIFIED[code]
    if any(low <= code <= high for low, high in _CHINESE):
        return f" {unicodedata.normalize('NFD', character)} "
    category = unicodedata.category(character)
    if category == "Cn" or _is_later(code):
        return character
    if category.startswith("C"):
        return ""
    if character.isspace():
        return " "
    parts = unicodedata.normalize("NFD", character)
    return "".join(map(_folded, parts))


def _folded(part: str) -> str:
    """Returns a decomposed character: lower case; marks removed; punctuation between spaces."""
    category = unicodedata.category(part)
    if category == "Mn":
        return ""
    if category.startswith("P") or part in _ASCII_SYMBOLS:
        return f" {part} "
    return part.lower()


def _is_later(code: int) -> bool:
    """Returns whether `code` is in one of the ranges of `_LATER`."""
    place = bisect_left(_LATER, code)
    return place < len(_LATER) and (place % 2 == 1 or _LATER[place] == code)


@cache
def packaged_pieces() -> WordPiece:
    """Returns the tokenizer of the English models, one for the whole process."""
    return WordPiece(Vocabulary((FOLDER / "vocab.txt").read_bytes()).find)
