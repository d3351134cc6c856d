"""Decisions that bytes make, so that mutated bytes make structured inputs.

The same bytes make the same input. Where they end, every decision is the first one, so that each
input is finite, and libFuzzer can shorten it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")

DEEPEST = 4
"""The depth of JSON values."""

_SCALARS: Sequence[Any] = (
    None, True, False, 0, 1, -1, 0.5, 1e308, 2**53, 10**40, -(2**63), "", "a", "true", "5",
    "null", "2026-11-20T12:00:00Z", "\0", "\ud800", "é", [], {},
)  # fmt: skip


class Choices:
    """The decisions of some bytes, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data, self._place = data, 0

    def __bool__(self) -> bool:
        """Returns whether some bytes are left."""
        return self._place < len(self._data)

    def number(self, below: int) -> int:
        """Returns a number from 0 up to, and without, `below`."""
        size = 1 if below <= 256 else 2 if below <= 65_536 else 4
        return int.from_bytes(self.some(size), "big") % below

    def one_of(self, listed: Sequence[T]) -> T:
        """Returns an item of a list."""
        return listed[self.number(len(listed))]

    def seldom(self, times: int = 8) -> bool:
        """Returns True for one of some bytes, which is not the one that missing bytes are."""
        return self.number(times) == times - 1

    def some(self, size: int) -> bytes:
        """Returns the next bytes, fewer at the end."""
        start, self._place = self._place, self._place + size
        return self._data[start : self._place]

    def raw(self) -> str:
        """Returns a short text of the next bytes."""
        return self.some(self.number(64)).decode("utf-8", "replace")

    def rest(self) -> bytes:
        """Returns all bytes that are left."""
        return self.some(len(self._data))

    def json(self, depth: int = 0) -> Any:
        """Returns JSON data, and sometimes a text that is not UTF-8."""
        match self.number(6 if depth < DEEPEST else 3):
            case 0:
                return self.raw()
            case 1:
                return self.one_of(_SCALARS)
            case 2:
                return self.number(65_536)
            case 3:
                return [self.json(depth + 1) for _ in range(self.number(4))]
            case _:
                return {self.raw(): self.json(depth + 1) for _ in range(self.number(4))}
