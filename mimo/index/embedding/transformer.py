"""The network of the encoders: BERT in numpy, and the file that its weights are mapped from.

The network and its arithmetic: J. Devlin et al., "BERT" (2019); sentence vectors as the mean of the
tokens: N. Reimers, I. Gurevych, "Sentence-BERT" (2019). The large products are computed in signed
bytes, which processors multiply in a tenth of the time, and to the same sums everywhere.
"""

from __future__ import annotations

import json
import mmap
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mimo.errors import Invalid
from mimo.frozen import NamedTuple
from mimo.index.embedding import ENCODED_LENGTH

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float32]

MAGIC = b"MINDENC2"
"""The first bytes of a file of weights, whose last is its version."""

ALIGNMENT = 64

BATCH_TOKENS = 96
"""The number of tokens in a batch: its activations (0.6 MB) then stay in the processor's caches."""

BLOCK = 32
"""The numbers in a block of 4 bits each (Q4_0), which takes 18 bytes with its scale."""

_PART = 1 << 14
"""The bytes of blocks unpacked at a time, so that their numbers stay in the processor's caches."""

_HALF = np.float32(128)
"""The worth of a step of the first half of a number, in steps of the second."""

_LEAST = np.float32(1e-20)
"""Added to the step, so that a row of zeros is not divided by zero."""


class Weights:
    """A file of weights, mapped into memory: nothing but its header is read before it is used."""

    def __init__(self, path: Path) -> None:
        """Takes the path of a file that scripts/build_encoder.py or build_languages.py wrote."""
        self._path = path

    @cached_property
    def _file(self) -> memoryview:
        try:
            with self._path.open("rb") as file:
                return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError) as error:
            raise Invalid(f"the encoder's weights can't be read ({error})") from error

    @cached_property
    def header(self) -> dict[str, Any]:
        """The shape of the network, and the kind, shape and offset of each array."""
        (size,) = struct.unpack("<I", self._file[8:12])
        if self._file[:8] != MAGIC:
            raise Invalid(f"`{self._path}` holds no weights of an encoder")
        header: dict[str, Any] = json.loads(bytes(self._file[12 : 12 + size]))
        return header

    @cached_property
    def arrays(self) -> dict[str, Any]:
        """The arrays by name."""
        (size,) = struct.unpack("<I", self._file[8:12])
        start = -(-(12 + size) // ALIGNMENT) * ALIGNMENT
        return {
            name: np.frombuffer(
                self._file, dtype=f"<{kind}", count=int(np.prod(shape)), offset=start + offset
            ).reshape(shape)
            for name, (kind, shape, offset) in self.header["arrays"].items()
        }

    @cached_property
    def network(self) -> Network:
        """The network, with its matrices in the form that products need."""
        header, arrays = self.header, self.arrays
        heads, tokens = header["heads"], arrays["tokens"]
        scales = arrays.get("tokens.scale")

        def rows(ids: NDArray[np.intp]) -> Array:
            if scales is None:
                return unpacked(tokens[ids])
            table: Array = tokens[ids] * scales[ids][..., None]
            return table

        def dense(name: str) -> Dense:
            matrix, bias = arrays[name], arrays[f"{name}.bias"]
            if matrix.dtype == np.int8:
                # What attention compares needs 15 bits: with 8, some answers move by a place.
                short = not name.endswith("qkv")
                return Dense(matrix, arrays[f"{name}.scale"], bias, is_short=short)
            # The source of 4-bit weights has no more digits than one byte can hold.
            parts = np.array_split(matrix, -(-matrix.size // _PART))
            matrices, steps = zip(*(rounded(unpacked(part)) for part in parts), strict=True)
            matrix, scale = np.concatenate(matrices), np.concatenate(steps)
            if name.endswith("qkv"):
                scale[: header["width"]] /= np.float32(np.sqrt(header["width"] // heads))
            return Dense(matrix, scale, bias, is_short=True)

        def norm(name: str) -> tuple[Array, Array]:
            return arrays[f"{name}.weight"], arrays[f"{name}.bias"]

        layers = [
            Layer(
                qkv=dense(f"layer{number}.qkv"),
                out=dense(f"layer{number}.out"),
                norm1=norm(f"layer{number}.norm1"),
                up=dense(f"layer{number}.up"),
                down=dense(f"layer{number}.down"),
                norm2=norm(f"layer{number}.norm2"),
            )
            for number in range(header["layers"])
        ]
        return Network(
            rows, arrays["positions"], norm("norm"), layers, heads=heads, epsilon=header["epsilon"]
        )

    def sums(self, texts: Sequence[Sequence[int]]) -> Array:
        """Returns the sums of the network, which is not made for texts without ids."""
        if not any(texts):
            return np.zeros((len(texts), self.header["width"]), np.float32)
        return self.network.sums(texts)


class Layer(NamedTuple):
    """A layer of the network; a norm is a weight and a bias."""

    qkv: Dense
    """The products of attention, joined; those of the query are divided by a root of its width."""
    out: Dense
    norm1: tuple[Array, Array]
    up: Dense
    down: Dense
    norm2: tuple[Array, Array]


class Network:
    """A BERT encoder."""

    def __init__(
        self,
        rows: Callable[[NDArray[np.intp]], Array],
        positions: Array,
        norm: tuple[Array, Array],
        layers: Sequence[Layer],
        *,
        heads: int,
        epsilon: float,
    ) -> None:
        """Takes a function from ids of tokens to their rows, and the parts of the network.

        The row of the tokens' type is added to `positions` already.
        """
        self._rows = rows
        self._positions = positions
        self._norm = norm
        self._layers = layers
        self._heads = heads
        self._epsilon = np.float32(epsilon)

    @property
    def width(self) -> int:
        """The length of a vector."""
        return int(self._positions.shape[1])

    def sums(self, texts: Sequence[Sequence[int]], *, cls_only: bool = False) -> Array:
        """Returns the sum of the last layer's vectors of each text's tokens; (texts, width).

        A text is given as ids, with those of both ends. It is zeros for no ids. With `cls_only`,
        the vector of the first token takes the place of the sum.
        """
        sums = np.zeros((len(texts), self.width), np.float32)
        for batch in _batches(texts):
            ids = np.array([texts[place] for place in batch], np.intp)
            outputs = self._last_layer(ids)
            sums[batch] = outputs[:, 0] if cls_only else outputs.sum(axis=1)
        return sums

    def _last_layer(self, ids: NDArray[np.intp]) -> Array:
        texts, length = ids.shape
        x: Array = np.asarray(self._rows(ids) + self._positions[:length], np.float32)
        x = x.reshape(texts * length, self.width)
        _normalise(x, *self._norm, self._epsilon)
        for layer in self._layers:
            x += self._attention(x, layer, texts)
            _normalise(x, *layer.norm1, self._epsilon)
            x += layer.down(_gelu(layer.up(x)))
            _normalise(x, *layer.norm2, self._epsilon)
        return x.reshape(texts, length, self.width)

    def _attention(self, x: Array, layer: Layer, texts: int) -> Array:
        qkv = layer.qkv(x).reshape(texts, -1, 3, self._heads, self.width // self._heads)
        q, k, v = qkv.transpose(2, 0, 3, 1, 4)
        weights = q @ k.transpose(0, 1, 3, 2)
        weights -= weights.max(axis=-1, keepdims=True)
        np.exp(weights, out=weights)
        weights /= weights.sum(axis=-1, keepdims=True)
        mixed = (weights @ v).transpose(0, 2, 1, 3).reshape(x.shape)
        return layer.out(mixed)


class Dense:
    """A product with a matrix of signed bytes, plus a bias."""

    def __init__(
        self, matrix: NDArray[np.int8], scale: Array, bias: Array, *, is_short: bool = False
    ) -> None:
        """Takes the matrix (outputs x inputs), and a scale and a bias for each output.

        With `is_short`, rows are rounded to 8 bits instead of 15, in half the time.
        """
        self._product = _product(matrix)
        self._scale = scale
        self._bias = bias
        self._is_short = is_short
        self._steps = np.float32(127 if is_short else 127 * 128)

    def __call__(self, x: Array) -> Array:
        """Returns the product of each row."""
        step = np.abs(x).max(axis=1, keepdims=True)
        step /= self._steps
        step += _LEAST
        numbers = x / step
        np.rint(numbers, out=numbers)
        if self._is_short:
            result: Array = self._product(numbers.astype(np.int8)).astype(np.float32)
        else:
            # Two rows of bytes for each.
            integers = numbers.astype(np.int16)
            count = len(x)
            halves = np.empty((2 * count, x.shape[1]), np.int8)
            np.right_shift(integers, 7, out=halves[:count], casting="unsafe")
            np.bitwise_and(integers, 127, out=halves[count:], casting="unsafe")
            products = self._product(halves)
            result = np.multiply(products[:count], _HALF, dtype=np.float32, casting="unsafe")
            np.add(result, products[count:], out=result, dtype=np.float32, casting="unsafe")
        result *= step
        result *= self._scale
        result += self._bias
        return result


def rounded(matrix: Array) -> tuple[NDArray[np.int8], Array]:
    """Returns a matrix as signed bytes, and the scale of each of its rows."""
    scale = np.maximum(np.abs(matrix).max(axis=1) / np.float32(127), _LEAST)
    return np.rint(matrix / scale[:, None]).astype(np.int8), scale


def unpacked(blocks: NDArray[np.uint8]) -> Array:
    """Returns the numbers of blocks of 4 bits; (..., bytes) becomes (..., numbers).

    A block has a scale in float16 and 16 bytes. Byte j holds number j in its low and number j + 16
    in its high half, each plus 8.
    """
    split = blocks.reshape(*blocks.shape[:-1], -1, 2 + BLOCK // 2)
    scales = split[..., :2].copy().view("<f2").astype(np.float32)
    numbers = np.empty((*split.shape[:-1], BLOCK), np.float32)
    np.bitwise_and(split[..., 2:], 15, out=numbers[..., : BLOCK // 2], casting="unsafe")
    np.right_shift(split[..., 2:], 4, out=numbers[..., BLOCK // 2 :], casting="unsafe")
    numbers -= np.float32(8)
    numbers *= scales
    return numbers.reshape(*blocks.shape[:-1], -1)


def unit(rows: Array) -> Array:
    """Returns rows at length 1; a row of zeros stays one."""
    lengths = np.sqrt(np.einsum("tw,tw->t", rows, rows))
    return np.asarray(rows / np.where(lengths, lengths, 1)[:, None], np.float32)


def quantised(rows: Array) -> list[bytes]:
    """Returns each row as signed bytes of length `ENCODED_LENGTH`; empty for a row of zeros."""
    lengths = np.sqrt(np.einsum("tw,tw->t", rows, rows))
    scaled = rows * (ENCODED_LENGTH / np.where(lengths, lengths, 1))[:, None]
    integers = np.rint(scaled).clip(-127, 127).astype(np.int8)
    return [
        row.tobytes() if length else b""
        for row, length in zip(integers, lengths.tolist(), strict=True)
    ]


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
    product = np.asarray(numkong.dots_packed(rows, numkong.dots_pack(rows[::-1].copy())))
    wide = rows.astype(np.int64)
    return numkong if np.array_equal(product, wide @ wide[::-1].T) else None


def _batches(texts: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yields the places of texts of the same length; empty texts are left out.

    Padding would change the order in which numbers are added, so that a text's vector would depend
    on the texts beside it.
    """
    places = sorted(filter(texts.__getitem__, range(len(texts))), key=lambda n: len(texts[n]))
    for length, group in groupby(places, key=lambda n: len(texts[n])):
        equal, size = list(group), max(1, BATCH_TOKENS // length)
        yield from (equal[n : n + size] for n in range(0, len(equal), size))


def _normalise(x: Array, weight: Array, bias: Array, epsilon: np.float32) -> None:
    """Normalises each row in place (J. L. Ba et al., "Layer normalization", 2016)."""
    width = np.float32(x.shape[1])
    x -= np.add.reduce(x, axis=1, keepdims=True) / width
    x /= np.sqrt(np.einsum("tw,tw->t", x, x) / width + epsilon)[:, None]
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
