"""Cosines of int8 vectors of length 127: plain Python for some, numpy for many."""

import math
import sys
from collections.abc import Callable, Sequence
from operator import mul


def _sum_of_products(p: Sequence[int], q: Sequence[int]) -> int:
    return sum(map(mul, p, q))


# From Python 3.12 on, in half the time.
_dot: Callable[[Sequence[int], Sequence[int]], int] = getattr(math, "sumprod", _sum_of_products)

_SQUARE = 127 * 127

NUMPY_PAYS = 8_000
"""So many cosines in plain Python take about as long as importing numpy."""


def cosine(a: bytes, b: bytes) -> float:
    """Returns the cosine of two int8 vectors, in -1..1; 0 where either is empty.

    Each is taken to have length 127, which rounding leaves true within half a percent.
    """
    return clipped(products_with(a)(b))


def cosines(query: bytes, vectors: Sequence[bytes]) -> list[float]:
    """Returns the cosine of `query` with each of `vectors`, the very numbers of `cosine`."""
    if not numpy_pays(len(vectors)):
        return list(map(clipped, map(products_with(query), vectors)))
    from mimo.index.nearest import products

    found = [0.0] * len(vectors)
    places = [place for place, vector in enumerate(vectors) if query and vector]
    numbers = products(query, [vectors[place] for place in places])
    for place, product in zip(places, numbers, strict=True):
        found[place] = clipped(product)
    return found


def numpy_pays(count: int) -> bool:
    """Returns whether numpy is there already, or worth importing for `count` products."""
    return "numpy" in sys.modules or count >= NUMPY_PAYS


def products_with(query: bytes) -> Callable[[bytes], int]:
    """Returns the function from a vector to its dot product with `query`; 0 where one is empty."""
    if not query:
        return lambda vector: 0
    # A list, because its numbers exist already, while a view makes them again for each vector.
    numbers = list(memoryview(query).cast("b"))
    return lambda vector: _dot(numbers, memoryview(vector).cast("b")) if vector else 0


def clipped(product: int) -> float:
    """Returns the cosine that a dot product stands for."""
    return max(-1.0, min(1.0, product / _SQUARE))
