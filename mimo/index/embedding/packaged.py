"""The packaged static model: through model2vec if there is much text, else read in plain Python.

The vector of a text is the mean of the rows of its tokens but `[UNK]`, scaled to length 127 and
rounded to int8. The model reads English, and Korean by its gloss; other texts have no vector.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, cached_property, lru_cache
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING

from mimo.errors import Invalid
from mimo.index.embedding.wordpiece import FOLDER, UNKNOWN, packaged_pieces

if TYPE_CHECKING:
    from mimo.index.embedding.static import OwnModel

SHA256 = "8377b02827b2003807c7705c5b191ff20f0b7f51fd752333c5026c23c13b5458"
"""The hash of `model.safetensors`; hashing 7.5 MB would take longer than a search."""

DIMS = 256

MAX_TOKENS = 512
"""As in config.json; `[UNK]` counts."""

BULK_CHARACTERS = 100_000
"""From this length, model2vec saves more time than loading it takes."""

_BIAS = 128
_TO_UNSIGNED = bytes((value + _BIAS) % 256 for value in range(256))


class PackagedModel:
    """An `Embedder` of the packaged model; the first text opens its files."""

    model = f"all-MiniLM-L6-v2-d256-int8:{SHA256[:12]}"

    def encode(self, text: str) -> bytes:
        """Returns the vector of `text`; empty if it has no token of the model."""
        return _quantised(self._mean(self.tokens(text)))

    def encode_many(self, texts: Sequence[str]) -> list[bytes]:
        """Returns the same vectors as `encode`."""
        from mimo.index.embedding.language import prepared, readable

        if "model2vec" in sys.modules or sum(map(len, texts)) >= BULK_CHARACTERS:
            with suppress(Invalid):  # model2vec or numpy is missing: some systems have no wheel.
                return self._bulk.encode_many([readable(prepared(text)) for text in texts])
        return list(map(self.encode, texts))

    def tokens(self, text: str) -> list[int]:
        """Returns the ids of the tokens in the vector of `text`."""
        from mimo.index.embedding.language import prepared, readable  # A list needs no words.

        ids = packaged_pieces().ids(readable(prepared(text)), MAX_TOKENS)
        return [id for id in ids if id != UNKNOWN]

    def _mean(self, tokens: list[int]) -> array[float]:
        """Returns the mean of the tokens' rows, in float32 as in model2vec; empty for no tokens."""
        if not tokens:
            return array("f")
        total = sum(map(self._row, tokens))
        lanes = memoryview(total.to_bytes(4 * DIMS, "little")).cast("I")
        count = len(tokens)
        bias = _BIAS * count
        return array("f", [(lane - bias) / count for lane in lanes])

    @cached_property
    def _bulk(self) -> OwnModel:
        from mimo.index.embedding.static import OwnModel

        return OwnModel(str(FOLDER))

    @cached_property
    def _row(self) -> Callable[[int], int]:
        """Returns a token's row as an integer of 32-bit lanes: adding two adds all numbers."""
        english = _mapped(FOLDER / "model.safetensors")
        start = 8 + int.from_bytes(english[:8], "little")

        def row(token: int) -> int:
            lanes = bytearray(4 * DIMS)
            offset = start + token * DIMS
            lanes[::4] = english[offset : offset + DIMS].translate(_TO_UNSIGNED)
            return int.from_bytes(lanes, "little")

        return lru_cache(maxsize=4096)(row)


@cache
def packaged_model() -> PackagedModel:
    """Returns the packaged model, one for the whole process: it keeps what it has read."""
    return PackagedModel()


def _mapped(path: Path) -> mmap:
    with path.open("rb") as file:
        return mmap(file.fileno(), 0, access=ACCESS_READ)


def _quantised(mean: array[float]) -> bytes:
    """Returns `mean` at length 127 in int8; empty if its length is 0."""
    length = math.hypot(*mean)
    if not length:
        return b""
    scale = 127 / length
    return array("b", [round(value * scale) for value in mean]).tobytes()
