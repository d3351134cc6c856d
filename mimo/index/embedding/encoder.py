"""The encoder: a BERT network in numpy, which compares texts by what they mean in context.

A static model adds up the vectors of words; this one reads them together, so that it finds an
answer that shares no word with the question. It takes a few milliseconds for a query and imports
numpy. The network and its arithmetic: J. Devlin et al., "BERT" (2019); sentence vectors as the mean
of the tokens: N. Reimers, I. Gurevych, "Sentence-BERT" (2019). The large products are computed in
signed bytes, which processors multiply in a tenth of the time, and to the same sums everywhere.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

from mimo.errors import Invalid
from mimo.index.embedding import ENCODED_LENGTH
from mimo.index.embedding.packaged import (
    FOLDER,
    GLOSSARY_SHA256,
    MAX_CHARACTERS,
    UNKNOWN,
    Vocabulary,
    WordPiece,
    packaged_model,
)

# The matrices are small, so that threads cost more than they give, and they would outlive a fork.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

MAGIC = b"MINDENC2"
"""The first bytes of a file of weights, whose last is its version."""

ALIGNMENT = 64

BATCH_TOKENS = 96
"""The number of tokens in a batch: its activations (0.6 MB) then stay in the processor's caches."""

_OFFSET = 997
"""The distance of our ids of word pieces from BERT's: we dropped its unused ones."""

_BERT_UNKNOWN = 100

_HALF = np.float32(128)
"""The worth of a step of the first half of a number, in steps of the second."""

_STEPS = np.float32(127 * 128)
"""The number of steps to which the largest number of a row is rounded."""

_LEAST = np.float32(1e-20)
"""Added to the step, so that a row of zeros is not divided by zero."""


class Encoder:
    """An `Embedder` of the packaged network; its first text opens the file.

    A vector has 384 signed bytes. Texts longer than 254 word pieces are cut.
    """

    def __init__(self, path: Path = FOLDER / "encoder.bin") -> None:
        """Takes the path of the weights, as scripts/build_encoder.py writes them."""
        self._path = path
        self._packaged = packaged_model()

    @cached_property
    def model(self) -> str:
        """The name of the network, with the beginnings of the hashes of its source and glossary."""
        return f"all-MiniLM-L6-v2-w8a15:{self._header['source'][:12]}+{GLOSSARY_SHA256[:12]}"

    @property
    def dims(self) -> int:
        """The length of a vector."""
        return int(self._header["width"])

    def encode(self, text: str) -> bytes:
        """Returns the vector of `text`; empty if it has no word piece or is not English.

        Of other languages the network knows the letters only: it would compare how words look.
        """
        return self.encode_many([text])[0]

    def encode_many(self, texts: Sequence[str]) -> list[bytes]:
        """Returns the vector of each text. Raises `Invalid` if the weights can't be read."""
        limit = self._header["limit"] - 2
        whole = (text[:MAX_CHARACTERS].encode("utf-8", "ignore").decode() for text in texts)
        rows = [self._word_piece.ids(self._packaged.readable(text), limit) for text in whole]
        vectors = [b""] * len(rows)
        for batch in _batches(rows):
            for place, vector in zip(batch, self._forward([rows[n] for n in batch]), strict=True):
                vectors[place] = vector.tobytes()
        return vectors

    @cached_property
    def _file(self) -> memoryview:
        try:
            with self._path.open("rb") as file:
                return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError) as error:
            raise Invalid(f"the encoder's weights can't be read ({error})") from error

    @cached_property
    def _header(self) -> dict[str, Any]:
        """The shape of the network, and the kind, shape and offset of each array."""
        (size,) = struct.unpack("<I", self._file[8:12])
        if self._file[:8] != MAGIC:
            raise Invalid(f"`{self._path}` holds no weights of an encoder")
        header: dict[str, Any] = json.loads(bytes(self._file[12 : 12 + size]))
        return header

    @cached_property
    def _arrays(self) -> dict[str, Any]:
        """The arrays, mapped into memory: nothing is read yet."""
        (size,) = struct.unpack("<I", self._file[8:12])
        start = -(-(12 + size) // ALIGNMENT) * ALIGNMENT
        return {
            name: np.frombuffer(
                self._file, dtype=f"<{kind}", count=int(np.prod(shape)), offset=start + offset
            ).reshape(shape)
            for name, (kind, shape, offset) in self._header["arrays"].items()
        }

    @cached_property
    def _layers(self) -> list[dict[str, Any]]:
        """The arrays of each layer, those of its products joined."""
        layers = []
        for number in range(self._header["layers"]):
            prefix = f"layer{number}."
            layer = {
                name.removeprefix(prefix): array
                for name, array in self._arrays.items()
                if name.startswith(prefix)
            }
            for name in ("qkv", "out", "up", "down"):
                layer[name] = _Dense(layer[name], layer[f"{name}.scale"], layer[f"{name}.bias"])
            layers.append(layer)
        return layers

    @cached_property
    def _word_piece(self) -> WordPiece:
        return WordPiece(Vocabulary((FOLDER / "vocab.txt").read_bytes()).find)

    def _forward(self, rows: Sequence[Sequence[int]]) -> NDArray[np.int8]:
        """Returns the vectors of texts, given as our ids of their word pieces; (texts, width).

        The texts have the same number of word pieces.
        """
        ids = self._ids(rows)
        texts, length = ids.shape
        tokens = self._arrays["tokens"][ids] * self._arrays["tokens.scale"][ids][..., None]
        x: Array = tokens + self._arrays["positions"][:length]
        x = x.reshape(texts * length, self.dims)
        _normalise(x, self._arrays["norm.weight"], self._arrays["norm.bias"], self._epsilon)
        for layer in self._layers:
            x += self._attention(x, layer, texts)
            _normalise(x, layer["norm1.weight"], layer["norm1.bias"], self._epsilon)
            x += layer["down"](_gelu(layer["up"](x)))
            _normalise(x, layer["norm2.weight"], layer["norm2.bias"], self._epsilon)
        pooled: Array = x.reshape(texts, length, self.dims).sum(axis=1)
        pooled *= ENCODED_LENGTH / np.sqrt(np.einsum("tw,tw->t", pooled, pooled))[:, None]
        vectors: NDArray[np.int8] = np.rint(pooled).clip(-127, 127).astype(np.int8)
        return vectors

    @property
    def _epsilon(self) -> np.float32:
        return np.float32(self._header["epsilon"])

    def _ids(self, rows: Sequence[Sequence[int]]) -> NDArray[np.intp]:
        """Returns the network's ids of texts, between those of both ends."""
        start, end = self._header["cls"], self._header["sep"]
        pieces = [[_BERT_UNKNOWN if id == UNKNOWN else id + _OFFSET for id in row] for row in rows]
        return np.array([[start, *row, end] for row in pieces], np.intp)

    def _attention(self, x: Array, layer: dict[str, Any], texts: int) -> Array:
        heads = self._header["heads"]
        qkv = layer["qkv"](x).reshape(texts, -1, 3, heads, self.dims // heads)
        q, k, v = qkv.transpose(2, 0, 3, 1, 4)
        weights = q @ k.transpose(0, 1, 3, 2)  # The weights of q are scaled by 1/sqrt(d) already.
        weights -= weights.max(axis=-1, keepdims=True)
        np.exp(weights, out=weights)
        weights /= weights.sum(axis=-1, keepdims=True)
        mixed = (weights @ v).transpose(0, 2, 1, 3).reshape(x.shape)
        result: Array = layer["out"](mixed)
        return result


class _Dense:
    """A product with a matrix of signed bytes, plus a bias."""

    def __init__(self, matrix: NDArray[np.int8], scale: Array, bias: Array) -> None:
        """Takes the matrix (outputs x inputs), and a scale and a bias for each output."""
        self._product = _product(matrix)
        self._scale = scale
        self._bias = bias

    def __call__(self, x: Array) -> Array:
        """Returns the product of each row, rounded to 15 bits: as two rows of bytes.

        One byte for each number would move some answers by a place.
        """
        step = np.maximum(x.max(axis=1, keepdims=True), -x.min(axis=1, keepdims=True))
        step /= _STEPS
        step += _LEAST
        numbers = x / step
        whole = np.rint(numbers, out=numbers).astype(np.int16)
        count = len(x)
        halves = np.empty((2 * count, x.shape[1]), np.int8)
        np.right_shift(whole, 7, out=halves[:count], casting="unsafe")
        np.bitwise_and(whole, 127, out=halves[count:], casting="unsafe")
        products = self._product(halves)
        result: Array = np.multiply(products[:count], _HALF, dtype=np.float32, casting="unsafe")
        np.add(result, products[count:], out=result, dtype=np.float32, casting="unsafe")
        result *= step
        result *= self._scale
        result += self._bias
        return result


def _product(matrix: NDArray[np.int8]) -> Callable[[NDArray[np.int8]], NDArray[Any]]:
    """Returns the function that multiplies rows of signed bytes with a matrix of them.

    numpy converts the bytes to float32, which holds nearly every sum exactly, and takes 10 times as
    long and 4 times the memory.
    """
    if dots := _dots():
        packed = dots.dots_pack(matrix)
        return lambda rows: np.asarray(dots.dots_packed(rows, packed))
    wide = matrix.T.astype(np.float32)
    return lambda rows: rows.astype(np.float32) @ wide


@lru_cache(maxsize=1)
def _dots() -> Any:
    """Returns the module `numkong`; None if it is missing or computes another product here."""
    try:
        import numkong
    except ImportError:
        return None
    numbers = np.arange(7 * 384, dtype=np.int64) * 7919 % 255 - 127
    rows = numbers.reshape(7, 384).astype(np.int8)
    made = np.asarray(numkong.dots_packed(rows, numkong.dots_pack(rows[::-1].copy())))
    wide = rows.astype(np.int64)
    return numkong if np.array_equal(made, wide @ wide[::-1].T) else None


@lru_cache(maxsize=1)
def packaged_encoder() -> Encoder:
    """Returns the packaged encoder, one for the whole process: its matrices take 11 MB."""
    return Encoder()


def _batches(rows: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yields the places of rows of the same length; empty rows are left out.

    Padding would change the order in which numbers are added, so that a text's vector would depend
    on the texts beside it.
    """
    places = sorted(filter(rows.__getitem__, range(len(rows))), key=lambda n: len(rows[n]))
    for length, group in groupby(places, key=lambda n: len(rows[n])):
        equal, most = list(group), max(1, BATCH_TOKENS // (length + 2))
        yield from (equal[n : n + most] for n in range(0, len(equal), most))


def _normalise(x: Array, weight: Array, bias: Array, epsilon: np.float32) -> None:
    """Normalises each row in place (J. L. Ba et al., "Layer normalization", 2016)."""
    x -= x.mean(axis=1, keepdims=True)
    spread = np.einsum("tw,tw->t", x, x) / np.float32(x.shape[1])
    x /= np.sqrt(spread + epsilon)[:, None]
    x *= weight
    x += bias


def _gelu(x: Array) -> Array:
    """Returns GELU in its tanh form (D. Hendrycks, K. Gimpel, 2016); numpy has no erf.

    The cosine of the resulting vectors with the exact ones is above 0.9999.
    """
    inner = x * x
    inner *= np.float32(0.044715 * 0.7978845608)
    inner += np.float32(0.7978845608)
    inner *= x
    np.tanh(inner, out=inner)
    inner += np.float32(1)
    inner *= np.float32(0.5)
    inner *= x
    return inner
