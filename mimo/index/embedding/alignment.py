"""Comparison of a question and a text word by word, which works across languages.

The mean of a text's rows shows what the text is about, but in a short question one word mostly
decides, and it has another form or another language in the answer. So each word of the question is
compared with the closest word of the text.
"""

from __future__ import annotations

import re
from _thread import allocate_lock
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from mimo.text.tokens import HANGUL, KANA_HAN, KOREAN_QUESTION_WORDS, QUESTION_WORDS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHANCE = 0.3
"""The cosine of two words up to which they do not correspond at all."""

_MOST_WORDS = 20_000
"""The number of words whose vectors are kept, 20 MB."""

_WORDS = re.compile(rf"[{HANGUL}]+|([{KANA_HAN}]+)|[^\W\d_{HANGUL}{KANA_HAN}]+|\d+")


class Aligner:
    """Compares texts word by word; may be used by several threads."""

    def __init__(
        self,
        tokens: Callable[[str], list[int]],
        rows: Callable[[NDArray[np.intp]], NDArray[np.float32]],
    ) -> None:
        """Takes the functions of a model from a word to tokens, and from tokens to their rows."""
        import numpy as np

        self._tokens = lru_cache(maxsize=_MOST_WORDS)(tokens)
        self._rows = rows
        self._vectors = rows(np.empty(0, np.intp))
        self._places: dict[tuple[int, ...], int] = {}
        self._turn = allocate_lock()

    def correspondence(self, query: str, texts: Sequence[str]) -> list[float]:
        """Returns the share of the query's words that correspond to a word of each text, 0..1.

        A word counts by the length of its row, which is short for common words.
        """
        import numpy as np

        asked = self._words(query)
        held = [self._words(text) for text in texts]
        words: dict[tuple[int, ...], int] = {}
        for word in (word for some in held for word in some):
            words.setdefault(word, len(words))
        with self._turn:
            self._make({*asked, *words})
            rows, columns = (
                self._vectors[[self._places[word] for word in some]] for some in (asked, words)
            )
        lengths = np.linalg.norm(rows, axis=1)
        if not lengths.any():
            return [0.0] * len(texts)
        weights = lengths / lengths.sum()
        shares = np.maximum((_unit(rows) @ _unit(columns).T - CHANCE) / (1 - CHANCE), 0)
        return [
            float(weights @ shares[:, [words[word] for word in some]].max(axis=1)) if some else 0.0
            for some in held
        ]

    def _words(self, text: str) -> list[tuple[int, ...]]:
        """Returns the rows of each distinct word, without question words unless there are others.

        Chinese and Japanese have no spaces: each of their pieces is a word.
        """
        subject: dict[tuple[int, ...], None] = {}
        every: dict[tuple[int, ...], None] = {}
        for match in _WORDS.finditer(text):
            word = match[0]
            tokens = tuple(self._tokens(word))
            words = [(token,) for token in tokens] if match[1] else [tokens] * bool(tokens)
            every.update(dict.fromkeys(words))
            if word.lower() not in QUESTION_WORDS and word not in KOREAN_QUESTION_WORDS:
                subject.update(dict.fromkeys(words))
        return list(subject or every)

    def _make(self, words: set[tuple[int, ...]]) -> None:
        """Makes the vectors of words that have none yet: the sums of their rows."""
        import numpy as np

        if len(self._places) + len(words) > _MOST_WORDS:
            self._places, self._vectors = {}, self._vectors[:0]
        new = sorted(words - self._places.keys())
        if not new:
            return
        ids = np.array([token for word in new for token in word], np.intp)
        starts = np.cumsum([0, *(len(word) for word in new[:-1])])
        first = len(self._vectors)
        self._places.update((word, first + place) for place, word in enumerate(new))
        self._vectors = np.vstack([self._vectors, np.add.reduceat(self._rows(ids), starts)])


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    import numpy as np

    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths, lengths, 1), np.float32)
