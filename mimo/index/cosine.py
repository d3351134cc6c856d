"""Cosines of vectors of signed bytes that have one length: exact to half a percent after rounding.

Some are computed in plain Python, since importing numpy takes as long as thousands of them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from heapq import nsmallest
from operator import mul

LENGTH = 127
"""The length of a static vector."""

NUMPY_PAYS = 8_000
"""The number of cosines that take about as long in plain Python as importing numpy."""

BLOCK = 512
"""The number of vectors that are converted to floats at a time: they stay in the caches."""


def cosines(query: bytes, vectors: Sequence[bytes], length: int = LENGTH) -> list[float]:
    """Returns the cosine of `query` with each of `vectors`, in -1..1; 0 for an empty vector."""
    if not query:
        return [0.0] * len(vectors)
    if numpy_pays(len(vectors)):
        near = iter(_by_numpy(query, [vector for vector in vectors if vector], length))
        return [next(near) if vector else 0.0 for vector in vectors]
    # A list holds its numbers; a view would make them again for each vector.
    numbers = list(memoryview(query).cast("b"))
    return [
        clipped(_dot(numbers, memoryview(vector).cast("b")), length) if vector else 0.0
        for vector in vectors
    ]


def _by_numpy(query: bytes, vectors: Sequence[bytes], length: int) -> list[float]:
    import numpy as np

    numbers = np.frombuffer(query, np.int8).astype(np.float32)
    near: list[float] = []
    for start in range(0, len(vectors), BLOCK):
        some = vectors[start : start + BLOCK]
        rows = np.frombuffer(b"".join(some), np.int8).reshape(len(some), -1)
        # float32 holds the products exactly: they are below 2**24.
        products = (rows.astype(np.float32) @ numbers).astype(np.float64)
        near += (products / length**2).clip(-1.0, 1.0).tolist()
    return near


def _sum_of_products(p: Sequence[int], q: Sequence[int]) -> int:
    return sum(map(mul, p, q))


# Python 3.12 has a function that takes half the time.
_dot: Callable[[Sequence[int], Sequence[int]], int] = getattr(math, "sumprod", _sum_of_products)


def numpy_pays(count: int) -> bool:
    """Returns whether numpy is imported already, or worth importing for `count` products."""
    return "numpy" in sys.modules or count >= NUMPY_PAYS


def clipped(product: float, length: int) -> float:
    """Returns the cosine for the product of two vectors of a length."""
    return max(-1.0, min(1.0, product / length**2))


def first(near: Mapping[bytes, float], k: int) -> list[tuple[bytes, float]]:
    """Returns the `k` largest cosines with their names, largest first, equal ones by name."""
    return nsmallest(k, near.items(), key=lambda pair: (-pair[1], pair[0]))
