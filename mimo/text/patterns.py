"""Regular expressions that anybody may have written, in time that grows with the text alone.

The engine is RE2: it has no look-around and no back-references, and never tries a text twice.
Upper and lower case are the same, `^` and `$` are the ends of a line.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

LONGEST = 512
"""Characters of a pattern."""
_MEMORY = 1 << 20
"""Bytes that one pattern may take; a pattern that needs more is refused."""
_KEPT = 2_048


class Unusable(NamedTuple):
    """Why a pattern can't be used."""

    reason: str


@lru_cache(maxsize=_KEPT)
def compiled(pattern: str, *, literal: bool = False) -> "Any | Unusable":
    """Returns a pattern ready for `lines`, or why it can't be used."""
    if len(pattern) > LONGEST:
        return Unusable(f"it has more than {LONGEST} characters")
    try:
        import re2
    except ImportError:
        return Unusable("the package google-re2, which compares patterns, is not installed")
    options = re2.Options()
    options.case_sensitive = literal
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        # Alone first, so that a complaint names what was written.
        text = re2.escape(pattern) if literal else pattern
        re2.compile(text.encode(), options)
        made = re2.compile(f"(?m:{text})".encode(), options)
    except (re2.error, UnicodeEncodeError) as error:
        told = error.args[0] if error.args else "it can't be read"
        return Unusable(told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told))
    if made.search(b""):
        return Unusable("it matches an empty text, and so any code")
    return made


def lines(pattern: "Any", text: bytes) -> Iterator[int]:
    """Yields the 0-based line on which each match of a compiled pattern begins."""
    line, counted = 0, 0
    for found in pattern.finditer(text):
        start = found.start()
        line += text.count(b"\n", counted, start)
        counted = start
        yield line
