"""Regular expressions from files of the project, matched in linear time.

The engine is RE2, which has no look-around, no back-references and no backtracking. `compiled`
ignores case, and its `^` and `$` match at the ends of a line.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from mimo.frozen import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LONGEST = 512
"""Most characters of a pattern."""
_MEMORY = 1 << 20
"""Most bytes of a compiled pattern."""
_CACHE_SIZE = 2_048


class Unusable(NamedTuple):
    """The reason that a pattern can't be used."""

    reason: str


@lru_cache(maxsize=_CACHE_SIZE)
def compiled(pattern: str, *, literal: bool = False) -> Any | Unusable:
    """Returns a pattern ready for `lines`, or the reason why it can't be used."""
    result = _compiled(pattern, case_sensitive=literal, literal=literal, by_line=True)
    if not isinstance(result, Unusable) and result.search(b""):
        return Unusable("it matches an empty text, and so any code")
    return result


@lru_cache(maxsize=_CACHE_SIZE)
def compiled_exactly(pattern: str) -> Any | Unusable:
    """Returns a pattern in which case matters and `^` and `$` are the ends of the whole text."""
    return _compiled(pattern, case_sensitive=True)


def _compiled(
    pattern: str, *, case_sensitive: bool, literal: bool = False, by_line: bool = False
) -> Any | Unusable:
    if len(pattern) > LONGEST:
        return Unusable(f"it has more than {LONGEST} characters")
    try:
        import re2
    except ImportError:
        return Unusable("the package google-re2, which compares patterns, is not installed")
    options = re2.Options()
    options.case_sensitive = case_sensitive
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        text = re2.escape(pattern) if literal else pattern
        # Alone first, so that an error names what was written.
        alone = re2.compile(text.encode(), options)
        return re2.compile(f"(?m:{text})".encode(), options) if by_line else alone
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0] if error.args else "it can't be read"
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        return Unusable(text)


def lines(pattern: Any, text: bytes) -> Iterator[int]:
    """Yields the 0-based line on which each match of a compiled pattern begins."""
    line, counted = 0, 0
    for match in pattern.finditer(text):
        start = match.start()
        line += text.count(b"\n", counted, start)
        counted = start
        yield line
