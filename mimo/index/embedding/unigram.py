"""SentencePiece's unigram tokenizer in plain Python: the cheapest path through each word.

T. Kudo, "Subword Regularization" (2018). Words end at spaces, so each word is solved once.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain, islice

_START = "\u2581"
"""The first character of a word's first piece."""

_SEARCHES = 1_000
"""The number of pieces found by bisection; building a table takes as long as some 3,000."""

_SHORT = 32
"""The length up to which a word is kept with its pieces; Chinese sentences have no spaces."""

_NEVER = float("-inf")


class Pieces:
    """The sorted pieces of a vocabulary; the id of a piece is its place, from `first` on."""

    def __init__(self, text: bytes, ends: Sequence[int], first_id: int, longest: int) -> None:
        """Takes all pieces as one text in UTF-8, and the offset at which each one ends.

        `longest` is the number of characters of the longest piece.
        """
        self.longest = longest
        self._text, self._ends, self._first = text, ends, first_id
        self._searches = 0

    def find(self, piece: str) -> int | None:
        """Returns the id of a piece, or None; the first calls need no table."""
        if self._searches >= _SEARCHES:
            return self._table.get(piece)
        self._searches += 1
        target = piece.encode()
        place = bisect_left(range(len(self._ends)), target, key=self._piece)
        is_there = place < len(self._ends) and self._piece(place) == target
        return self._first + place if is_there else None

    def _piece(self, place: int) -> bytes:
        return self._text[self._ends[place - 1] if place else 0 : self._ends[place]]

    @cached_property
    def _table(self) -> dict[str, int]:
        places = range(len(self._ends))
        return {self._piece(place).decode(): self._first + place for place in places}


class Unigram:
    """A tokenizer; may be used by several threads."""

    def __init__(
        self,
        pieces: Pieces,
        scores: Sequence[float],
        exceptions: Mapping[int, str],
        ranges: Sequence[tuple[int, int]],
        unknown: tuple[int, float],
    ) -> None:
        """Takes pieces, the score of each id, a normalisation, and the unknown id with its score.

        Characters of `ranges` (first, last) are normalised by NFKC, `exceptions` otherwise.
        """
        self._pieces, self._scores = pieces, scores
        self._characters = _Characters(exceptions, ranges)
        self._unknown, self._penalty = unknown
        self._of_short_word = lru_cache(maxsize=1 << 15)(self._of_word)

    def ids(self, text: str, limit: int) -> list[int]:
        """Returns the ids of the first `limit` pieces of `text`, the unknown one among them."""
        words = text.translate(self._characters).split(" ")
        pieces = (
            self._of_short_word(word) if len(word) <= _SHORT else self._of_word(word)
            for word in words
            if word
        )
        return list(islice(chain.from_iterable(pieces), limit))

    def _of_word(self, word: str) -> list[int]:
        word = _START + word
        find, longest, scores = self._pieces.find, self._pieces.longest, self._scores
        best = [0.0] + [_NEVER] * len(word)
        back = [(0, 0)] * (len(word) + 1)
        for start in range(len(word)):
            score = best[start]
            for end in range(start + 1, min(len(word), start + longest) + 1):
                piece = find(word[start:end])
                if piece is not None and score + scores[piece] > best[end]:
                    best[end], back[end] = score + scores[piece], (start, piece)
            if score + self._penalty > best[start + 1]:
                best[start + 1], back[start + 1] = score + self._penalty, (start, self._unknown)
        ids: list[int] = []
        end = len(word)
        while end:
            end, piece = back[end]
            if piece != self._unknown or ids[-1:] != [piece]:  # Unknown neighbours are one.
                ids.append(piece)
        return ids[::-1]


class _Characters(dict[int, str]):
    """The replacements of characters for `str.translate`, computed on first use."""

    def __init__(self, exceptions: Mapping[int, str], ranges: Sequence[tuple[int, int]]) -> None:
        super().__init__(exceptions)
        self._ranges = ranges

    def __missing__(self, code: int) -> str:
        character = chr(code)
        place = bisect_left(self._ranges, code, key=lambda ends: ends[1])
        if place < len(self._ranges) and self._ranges[place][0] <= code:
            character = unicodedata.normalize("NFKC", character)
        self[code] = character
        return character
