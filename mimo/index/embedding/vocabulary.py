"""The pieces of words that a model knows, and their ids."""

from functools import cached_property

SCANS = 20
"""So many pieces are looked for in the file's bytes: making a table takes as long as some 20."""


class Vocabulary:
    """A list of pieces, one a line; the id of a piece is the number of its line, from 0."""

    def __init__(self, lines: bytes) -> None:
        """Take the list in UTF-8, without an end of the last line."""
        self._lines = b"\n%b\n" % lines
        self._scans = 0

    def find(self, piece: str) -> int | None:
        """Returns the id of a piece, or None where there is no such line.

        The first few times the lines are searched, so that a short query needs no table of them.
        """
        if self._scans >= SCANS:
            return self._table.get(piece)
        self._scans += 1
        place = self._lines.find(b"\n%b\n" % piece.encode())
        return None if place < 0 else self._lines.count(b"\n", 0, place)

    @cached_property
    def _table(self) -> dict[str, int]:
        pieces = self._lines[1:-1].decode().split("\n")
        return dict(zip(pieces, range(len(pieces)), strict=True))
