"""Regular expressions from files of the project, matched in linear time.

The engine is RE2, which has no look-around, no back-references and no backtracking. Matching
ignores case; `^` and `$` match at the ends of a line.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

LONGEST = 512
"""Most characters of a pattern."""
_MEMORY = 1 << 20
"""Most bytes of a compiled pattern."""
_KEPT = 2_048


class Unusable(NamedTuple):
    """The reason that a pattern can't be used."""

    reason: str


@lru_cache(maxsize=_KEPT)
def compiled(pattern: str, *, literal: bool = False) -> "Any | Unusable":
    """Returns a compiled pattern for `lines`, or the reason that it can't be used."""
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
        # Alone first, so that an error quotes the pattern as it was written.
        text = re2.escape(pattern) if literal else pattern
        re2.compile(text.encode(), options)
        made = re2.compile(f"(?m:{text})".encode(), options)
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0] if error.args else "it can't be read"
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        return Unusable(text)
    if made.search(b""):
        return Unusable("it matches an empty text, and so any code")
    return made


def lines(pattern: "Any", text: bytes) -> Iterator[int]:
    """Yields the 0-based line on which each match of a compiled pattern begins."""
    line, counted = 0, 0
    for match in pattern.finditer(text):
        start = match.start()
        line += text.count(b"\n", counted, start)
        counted = start
        yield line
