"""Which of many int8 vectors are nearest to a query's: an exact scan with numpy."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BLOCK = 1024
"""Rows at a time: 1 MB of float32 stays in the cache, and is too little for BLAS to use threads."""


class Matrix:
    """Vectors in one block of memory, each with its name."""

    def __init__(self, names: Sequence[bytes], vectors: Sequence[bytes]) -> None:
        """Take the vectors, all of one length and none of them empty."""
        self._names = names
        self._places: dict[bytes, int] = {}
        self._rows = _matrix(vectors)

    def nearest(self, query: bytes, k: int) -> list[tuple[bytes, int]]:
        """Returns the `k` names of the largest dot products with `query`, largest first.

        Where products are equal, the vector that was given first stands first.
        """
        return [(self._names[place], product) for place, product in _best(query, self._rows, k)]

    def among(self, query: bytes, names: Iterable[bytes], k: int) -> list[tuple[bytes, int]]:
        """Returns the same of those of `names` that are here."""
        import numpy as np

        self._places = self._places or {name: place for place, name in enumerate(self._names)}
        found = (self._places.get(name, -1) for name in names)
        places = np.unique(np.fromiter(found, dtype=np.intp))
        places = places[places >= 0]
        best = _best(query, self._rows[places], k)
        return [(self._names[places[place]], product) for place, product in best]


def products(query: bytes, vectors: Sequence[bytes]) -> list[int]:
    """Returns the dot product of `query` with each of `vectors`, none of them empty."""
    if not vectors:
        return []
    return [int(product) for product in _products(query, _matrix(vectors)).tolist()]


def _best(query: bytes, rows: "NDArray[np.int8]", k: int) -> list[tuple[int, int]]:
    """Returns the numbers of the `k` rows with the largest products, and these, largest first."""
    import numpy as np

    found = _products(query, rows)
    k = min(k, len(found))
    if k < 1:
        return []
    least = np.partition(found, -k)[-k]
    places = np.flatnonzero(found >= least)
    best = places[np.argsort(-found[places], kind="stable")][:k]
    return [(place, int(found[place])) for place in best.tolist()]


def _matrix(vectors: Sequence[bytes]) -> "NDArray[np.int8]":
    import numpy as np

    width = len(vectors[0]) if vectors else 0
    return np.frombuffer(b"".join(vectors), dtype=np.int8).reshape(len(vectors), width)


def _products(query: bytes, rows: "NDArray[np.int8]") -> "NDArray[np.float32]":
    """Returns the dot products; float32 holds them exactly, for they stay below 2**24."""
    import numpy as np

    numbers = np.frombuffer(query, dtype=np.int8).astype(np.float32)
    found = np.empty(len(rows), dtype=np.float32)
    for start in range(0, len(rows), _BLOCK):
        found[start : start + _BLOCK] = rows[start : start + _BLOCK].astype(np.float32) @ numbers
    return found
