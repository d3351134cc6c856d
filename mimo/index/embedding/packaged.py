"""The model in the package, read without numpy or a tokenizer library.

The vector of a text is the mean of its tokens' rows without `[UNK]`, as `StaticModel.encode` of
model2vec makes it, brought to length 127 and rounded to int8.
"""

import math
from array import array
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING

from mimo.index.embedding.vocabulary import Vocabulary
from mimo.index.embedding.wordpiece import UNKNOWN, WordPiece

if TYPE_CHECKING:
    from model2vec import StaticModel

FOLDER = Path(__file__).parents[2] / "model"

SHA256 = "8377b02827b2003807c7705c5b191ff20f0b7f51fd752333c5026c23c13b5458"
"""Of `model.safetensors`; written down, because hashing 7.5 MB costs more than a search."""

DIMS = 256

MAX_TOKENS = 512
"""As config.json says; `[UNK]` counts."""

MAX_CHARACTERS = MAX_TOKENS * 6
"""Where model2vec cuts a text before it looks at it; 6 is its pieces' median length."""

BULK_CHARACTERS = 1_000_000
"""From here on, loading numpy and model2vec takes less time than they save."""

_BIAS = 128
_TO_UNSIGNED = bytes((value + _BIAS) % 256 for value in range(256))


class PackagedModel:
    """An `Embedder` of the packaged model; its files are opened when the first text comes."""

    model = f"all-MiniLM-L6-v2-d256-int8:{SHA256[:12]}"
    dims = DIMS

    def encode(self, text: str) -> bytes:
        """Returns the vector of `text`; empty where it holds no known token."""
        return _quantised(self._mean(self.tokens(text)))

    def encode_many(self, texts: Sequence[str]) -> list[bytes]:
        """Returns the same vectors as `encode`, through model2vec where there is much text."""
        if sum(map(len, texts)) < BULK_CHARACTERS:
            return [self.encode(text) for text in texts]
        from mimo.index.embedding.bulk import vectors

        return vectors(self._static_model, [_readable(text) for text in texts])

    def tokens(self, text: str) -> list[int]:
        """Returns the ids of the tokens that make up the vector of `text`."""
        ids = self._word_piece.ids(_readable(text), MAX_TOKENS)
        return [token for token in ids if token != UNKNOWN]

    def _mean(self, tokens: list[int]) -> "array[float]":
        """Returns the mean of the tokens' rows, in float32 as model2vec has it; empty for none."""
        if not tokens:
            return array("f")
        total = sum(map(self._row, tokens))
        lanes = memoryview(total.to_bytes(4 * DIMS, "little")).cast("I")
        count = len(tokens)
        bias = _BIAS * count
        return array("f", [(lane - bias) / count for lane in lanes])

    @cached_property
    def _row(self) -> Callable[[int], int]:
        """A token's row as one wide integer of 32-bit lanes: adding two adds all 256 numbers."""
        with (FOLDER / "model.safetensors").open("rb") as file:
            start = 8 + int.from_bytes(file.read(8), "little")
            matrix = mmap(file.fileno(), 0, access=ACCESS_READ)

        def row(token: int) -> int:
            lanes = bytearray(4 * DIMS)
            first = start + token * DIMS
            lanes[::4] = matrix[first : first + DIMS].translate(_TO_UNSIGNED)
            return int.from_bytes(lanes, "little")

        return lru_cache(maxsize=4096)(row)

    @cached_property
    def _word_piece(self) -> WordPiece:
        return WordPiece(Vocabulary((FOLDER / "vocab.txt").read_bytes()).find)

    @cached_property
    def _static_model(self) -> "StaticModel":
        from mimo.index.embedding.bulk import load_packaged

        return load_packaged(FOLDER, dims=DIMS, max_tokens=MAX_TOKENS)


def _readable(text: str) -> str:
    """Returns the part of `text` that counts, without lone surrogates, which UTF-8 can't hold."""
    return text[:MAX_CHARACTERS].encode("utf-8", "ignore").decode()


def _quantised(mean: "array[float]") -> bytes:
    """Returns `mean` at length 127 in int8; empty where it has no length."""
    length = math.hypot(*mean)
    if not length:
        return b""
    scale = 127 / length
    return array("b", [round(value * scale) for value in mean]).tobytes()
